"""How deep the masks of a dataset are, told by some of their files before the first record is written.

All masks of one feature are stored with one depth, so that its spec can state it: a reader that is told 16 bits
multiplies a mask of 8 bits by 257, and one that is told 8 bits loses half of a mask of 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from beam_tfrecord.annotations.mask_images import HEAD, is_deep, is_deep_head
from beam_tfrecord.conversion.planning.survey import SizeSample
from beam_tfrecord.errors import ElementError
from beam_tfrecord.storage import Storage

THREADS = 16


def deep_kinds(samples: Mapping[str, Iterable[SizeSample]], storage: Storage) -> frozenset[str]:
    """The kinds any of whose sampled masks has more than 8 bits. Masks that cannot be read are told later, by row.

    Raises StorageError when a place cannot be used at all.
    """
    with ThreadPoolExecutor(THREADS, thread_name_prefix="masks") as pool:
        found = {
            kind: pool.map(lambda sample: _is_deep(sample, storage), samples_of_kind)
            for kind, samples_of_kind in samples.items()
        }
        return frozenset(kind for kind, answers in found.items() if any(answers))


def _is_deep(sample: SizeSample, storage: Storage) -> bool:
    try:
        if sample.member is None:
            answer = is_deep_head(storage.read_range(sample.uri, 0, HEAD))
            if answer is not None:
                return answer
        return is_deep(storage.read(sample.uri, sample.member))
    except FileNotFoundError:
        return _is_deep_elsewhere(sample, storage)
    except (OSError, ElementError):
        return False


def _is_deep_elsewhere(sample: SizeSample, storage: Storage) -> bool:
    """The same of a mask that may be there under another spelling."""
    try:
        found = storage.find_other(sample.uri)
    except ElementError:
        return False
    return found is not None and _is_deep(sample._replace(uri=found.uri), storage)
