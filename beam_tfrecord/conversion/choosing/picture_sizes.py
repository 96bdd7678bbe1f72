"""Sizes of pictures that no manifest states, for boxes whose size cannot be told without."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from beam_tfrecord.annotations.base import annotation_is_upright
from beam_tfrecord.core.elements import Entry, Frame
from beam_tfrecord.errors import ElementError
from beam_tfrecord.images import convert_image
from beam_tfrecord.options.config import ConvertConfig, ImagePolicy
from beam_tfrecord.storage import Storage

Size = tuple[int, int]
THREADS = 48  # as many as read pictures ahead of a writer


class PictureSizes:
    """Looks up the size of the picture that annotations were drawn in."""

    def __init__(self, config: ConvertConfig, storage: Storage) -> None:
        images = config.images
        # As it will be read, but with no pixel changed, and only what has to be decoded.
        plain = ImagePolicy(validate="header", max_pixels=images.max_pixels, orientation=images.orientation)
        self._policy = replace(plain, animated="first")
        self._box_frame = config.features.box_frame
        self._storage = storage

    def of_all(self, items: Sequence[Entry | Frame]) -> list[Size | None]:
        """Those of several pictures, which are read side by side: each read may wait for an object store."""
        unknown = [item for item in items if _stated(item) is None]
        with ThreadPoolExecutor(max(1, min(THREADS, len(unknown)))) as pool:
            found = dict(zip(map(id, unknown), pool.map(self.of, unknown), strict=True))
        return [found.get(id(item), _stated(item)) for item in items]

    def of(self, item: Entry | Frame) -> Size | None:
        """(width, height): as the manifest states it, else as the file has it; None when it cannot be read."""
        stated = _stated(item)
        if stated is not None or not item.uri:
            return stated
        try:
            image = convert_image(self._storage.read(item.uri, item.member), self._policy)
        except ElementError:
            return None  # told when the record is made
        is_upright, _ = annotation_is_upright(None, image.frame, self._box_frame, item.stated_frame)
        return image.frame.turned_size if is_upright else image.frame.source_size


def _stated(item: Entry | Frame) -> Size | None:
    return item.stated_size if item.stated_size is not None and min(item.stated_size) > 0 else None
