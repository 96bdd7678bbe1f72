"""What lies where a manifest's images lie: which of the files its rows name, and what the others are.

A manifest tells of images one by one; only a listing tells of those it does not name. The listing happens once, when
the dataset is planned, and ends where a folder holds much more than the manifest: that is no folder of this collection.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from beam_tfrecord.conversion.planning.blocks import Hashes
from beam_tfrecord.conversion.planning.survey import HashSketch, file_hash, loose_form, lower_name, spelling_hash
from beam_tfrecord.core.account import AS_IMAGE, NO_ACCOUNT, Account, AccountBuilder, Decision
from beam_tfrecord.manifests.base import FileInfo, Source
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.leftovers import Reads, tell_files
from beam_tfrecord.manifests.own_outputs import LEFT_OUT, datasets_among, spelled_below
from beam_tfrecord.manifests.siblings import without_suffix
from beam_tfrecord.manifests.split_names import split_above
from beam_tfrecord.manifests.text.uri_text import with_slash
from beam_tfrecord.options.config import ConvertConfig

Walk = Callable[[str], Iterator[FileInfo]]
FILES_PER_IMAGE = 20  # a folder with more files than this for each image that is named, and SPARE more, is not listed
SPARE = 10_000


def take_census(
    source: Source, used: HashSketch, others: HashSketch, manifests: Collection[str], config: ConvertConfig, walk: Walk
) -> tuple[Account, tuple[Decision, ...], frozenset[str]]:
    """The account of the files below ``source.census``; none, and a decision that says so, where they are too many. And
    the folders called like splits that those which rows name lie in.

    used, others: hashes of the files that the rows of this and of the other inputs name (by uri; those of rejected rows
    as the manifest spells them). manifests: uris of all inputs. config: names the
    folder that is written to, of which nothing is told, and files of labels and names.
    """
    if not source.census:
        return NO_ACCOUNT, (), frozenset()
    limit = FILES_PER_IMAGE * used.count + SPARE
    if used.hashes is None or others.hashes is None:
        why = f"{used.count:,} images are too many"
        return NO_ACCOUNT, (Decision("files beside the images", "not counted", why),), frozenset()
    # Rows spell what lies in the working folder without it, unless an option names it: --input . or ./list.csv.
    is_here = source.census == "." and not source.base.startswith(".")
    folder = "" if is_here else with_slash(source.census)
    written = tuple(map(with_slash, spelled_below(source.census, config.output.output))) or ("\0",)
    uris = (info.uri for info in walk(source.census))
    spelled = (uri.removeprefix("./") if is_here else uri for uri in uris if not uri.startswith(written))
    files = list(itertools.islice(spelled, limit + 1))
    if len(files) > limit:
        why = f"{source.census} holds more than {limit:,} files"
        return NO_ACCOUNT, (Decision("files beside the images", "not counted", why),), frozenset()
    paths = [uri.removeprefix(folder) for uri in files]
    below = f"{source.base.rstrip('/')}/" if source.base else ""
    names = (files, [uri.removeprefix(below) for uri in files])
    exact = [_hashed(texts, file_hash) for texts in names]
    loose = [_hashed(texts, hash_of) for texts in names for hash_of in (spelling_hash, _lower_hash, _stem_hash)]
    own, elsewhere = (_named(exact, loose, paths, sketch) for sketch in (used.hashes, others.hashes))
    files_of_options = (
        config.labels.labels,
        config.choosing.map_labels,
        *(file.uri for file in config.choosing.exclude),
    )
    reads = Reads.of(source.details, source.uri)
    reads = replace(reads, manifests=(*reads.manifests, *(uri for uri in files_of_options if isinstance(uri, str))))
    told = AccountBuilder()
    tell_files(
        told,
        folder,
        paths,
        {path: AS_IMAGE for path, named in zip(paths, own, strict=True) if named},
        {path for path, uri, named in zip(paths, files, elsewhere, strict=True) if named or uri in manifests},
        reads,
        [*source.details.get(LEFT_OUT, ()), *(folder + output for output in datasets_among(paths))],
        is_input=source.census == source.uri,
    )
    splits = frozenset(split_above(path) for path, named in zip(paths, own, strict=True) if named)
    return told.account(), (), splits - {""}


def _hashed(texts: Iterable[str], hash_of: Callable[[str], int]) -> Hashes:
    return np.array(list(map(hash_of, texts)), np.uint64)


def _lower_hash(uri: str) -> int:
    """By which a file is known to rows that name it in lower case."""
    return file_hash(lower_name(uri))


def _stem_hash(uri: str) -> int:
    """By which an image is known to rows that name it without its ending."""
    return spelling_hash(without_suffix(uri) if is_image_name(uri) else uri)


def _named(
    exact: Sequence[Hashes], loose: Sequence[Hashes], paths: Sequence[str], known: bytes
) -> npt.NDArray[np.bool_]:
    """Whether each file is known: by either of its names as they are spelled, or by another spelling of one of them
    where no other file is called as that is spelled.
    """
    array = np.unique(np.frombuffer(known, np.uint64))
    is_named: npt.NDArray[np.bool_] = np.any([np.isin(own, array) for own in exact], axis=0)
    may_be = np.any([np.isin(own, array) for own in loose], axis=0) & ~is_named
    if may_be.any():
        taken = {loose_form(path) for path, named in zip(paths, is_named, strict=True) if named}
        for place in np.flatnonzero(may_be).tolist():
            spelled = loose_form(paths[place])
            is_named[place] = taken.isdisjoint((spelled, without_suffix(spelled)))
    return is_named
