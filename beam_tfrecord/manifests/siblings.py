"""Files that belong together by their names: an image, its annotation, its masks."""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from beam_tfrecord.core.account import AGAINST_OWN_NAME, BY_OWN_NAME, STATED_IMAGES, AccountBuilder
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.base import Files, Piece, Source
from beam_tfrecord.manifests.filenames import JunkCounter, is_image_name, junk_part
from beam_tfrecord.manifests.layout import IMAGE_FOLDERS
from beam_tfrecord.manifests.text.spelling import Spellings, plain_form
from beam_tfrecord.manifests.text.uri_text import folder_of, name_of

ITEMS_PER_PIECE = 2000  # small files that one worker opens in a row

READERS = 16  # of those that are open at a time

LABEL_FOLDERS = frozenset(
    {
        *("labels", "label", "annotations", "annotation", "annots", "annot", "anns", "ann", "xml", "xmls"),
        *("json", "jsons", "txt", "label_2", "gt", "bboxes", "bbox"),
        *("labeltxt", "labeltxt-v1.0", "labeltxt-v1.5", "labeltxt-v2.0", "annfiles", "gtfine", "gtcoarse"),
    }
)

Part = TypeVar("Part")
Result = TypeVar("Result")


def parent(uri: str) -> str:
    """The folder that a file or folder lies in; ``.`` for a bare name."""
    return folder_of(uri) or "."


def without_suffix(path: str) -> str:
    """A path without the ending of its last part."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + (name.rpartition(".")[0] or name)


def stem_name(path: str) -> str:
    """The name of an image without folders and ending, in the one form of all its spellings."""
    return without_suffix(name_of(plain_form(path)))


def key_of(path: str) -> str:
    """What an image and its label file have in common: the path without ending and without folders of either kind."""
    *folders, name = path.split("/")
    kept = [folder for folder in folders if folder.lower() not in IMAGE_FOLDERS | LABEL_FOLDERS]
    return "/".join([*kept, without_suffix(name)])


def label_path(image: str) -> str:
    """Where YOLO tools look for the label file of an image."""
    folders = without_suffix(image).split("/")
    places = [place for place, name in enumerate(folders[:-1]) if name == "images"]
    if places:
        folders[places[-1]] = "labels"
    return "/".join(folders) + ".txt"


def relative_files(files: Files, folder: str) -> tuple[list[str], int]:
    """(paths below a folder, sorted by code point; how many pieces of junk were left out)."""
    if not files.is_folder(folder):
        return [], 0
    start = len(folder.rstrip("/")) + 1
    paths, junk = [], JunkCounter()
    for info in files.walk(folder):
        path = info.uri[start:]
        part = junk_part(path)
        if part is None:
            paths.append(path)
        else:
            junk.add(part)
    return paths, len(junk)


def read_small(files: Files, uri: str, what: str) -> bytes:
    """A small file whole. what: it is, for messages. Raises RowError."""
    try:
        with files.open(uri) as stream:
            return stream.read()
    except FileNotFoundError:
        raise RowError("bad_annotation", f"the {what} {uri} does not exist") from None
    except OSError as error:
        raise RowError("read_failed", f"the {what} {uri} cannot be read: {error}") from None


def pieces_of(source: Source, count: int) -> Iterator[Piece]:
    """Pieces that are ranges of places in a list of ``count`` items; one, empty, when there are none."""
    for start in range(0, max(count, 1), ITEMS_PER_PIECE):
        yield Piece(source, start, min(start + ITEMS_PER_PIECE, count))


def items_of(piece: Piece, items: Sequence[Part]) -> Sequence[Part]:
    """The items of a piece that :func:`pieces_of` made."""
    return items[piece.start :] if piece.end < 0 else items[piece.start : piece.end]


def in_parallel(function: Callable[[Part], Result], items: Iterable[Part]) -> Iterator[Result]:
    """``function`` of each item, in order, with a few calls at a time: it opens a small file, which may be far away.

    An exception of the function is raised where its result would stand.
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(READERS) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= 2 * READERS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class ImageFinder:
    """Finds the image that an annotation means among those that are there."""

    def __init__(self, paths: Sequence[str]) -> None:
        """paths: below the folder of images, sorted."""
        images = [path for path in paths if is_image_name(path)]
        self._paths = frozenset(images)
        # The first of several that share a stem or key.
        self._by_path = Spellings({path: path for path in images})
        self._by_stem = Spellings({without_suffix(path): path for path in reversed(images)})
        self._by_key = Spellings({key_of(path): path for path in reversed(images)})

    def find(self, stated: str, own: str) -> str | None:
        """Path of the image, or None.

        stated: as the annotation spells it, perhaps with folders of another machine or without an ending. own: the path
        of the annotation below its folder, without ending. What is stated wins when it is there, in the folder of the
        annotation before others; else the image that is called like the annotation; else one that is called as stated,
        whatever its ending. Each name is looked for as it is spelled, and then in its other spellings. Raises RowError
        where several images are called so in others.
        """
        if "\\" in stated and stated in self._paths:
            return stated
        stated = stated.replace("\\", "/")
        name = name_of(stated)
        beside = posixpath.join(posixpath.dirname(own), name)
        spelled = ([stated] if "/" in stated else []) + ([beside, name] if name else [])
        for path in spelled[:-1]:
            if found := self._by_path.find(path):
                return found
        keys = ([key_of(beside)] if name else []) + [key_of(f"{own}.xml")]
        for key in keys:  # train/annotations/x.xml and train/images/x.jpg
            if "/" in key and (found := self._by_key.find(key)):
                return found
        if found := self._by_path.find(name):
            return found
        for stem in (own, *(without_suffix(path) for path in spelled), *spelled):
            if found := self._by_stem.find(stem):
                return found
        return next((found for key in keys if (found := self._by_key.find(key))), None)

    def own(self, own: str, named: str = "") -> str | None:
        """Path of the image that is called like an annotation, None where that is none, or not one.

        named: the image that the name of the annotation tells, where the two are not called alike.
        """
        try:
            return self.find(named, own)
        except RowError:
            return None

    def tell(self, told: AccountBuilder, stated: str, found: str | None, own: str) -> None:
        """Tell where the names of an image and of its label file differ, and by which it was found.

        found: what :meth:`find` gave for the same names.
        """
        if not stated.strip() or found is None:
            return
        is_by_own = stem_name(found) != stem_name(stated)
        if is_by_own or self.own(own) not in (None, found):
            told.find(STATED_IMAGES)
            told.use(STATED_IMAGES, BY_OWN_NAME if is_by_own else AGAINST_OWN_NAME)

    def __contains__(self, path: str) -> bool:
        return path in self._paths
