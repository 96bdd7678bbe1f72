"""The manifests that a folder of images is read by: one, or several.

Several are one for each split (``train/_annotations.coco.json``, ``valid/...``), or one for each folder of images
(``00000/GT-00000.csv``). Each is read by its own format. The images of all have their paths below the folder, and where
a manifest gives them ids (COCO counts anew in each file), the name of its split, else of its folder, stands in front:
``train/17``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

from beam_tfrecord.core.account import COLUMNS, Decision, merge_accounts
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import AmbiguousManifestError, ConfigError, ElementError, ManifestError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source, from_plain, stated_labels, to_plain
from beam_tfrecord.manifests.columns import LOOKS_LIKE
from beam_tfrecord.manifests.endings import ENDING, missing_ending, named_file, with_ending
from beam_tfrecord.manifests.leftovers import Reads
from beam_tfrecord.manifests.registry import FORMATS, detect_format, has_suffix
from beam_tfrecord.manifests.siblings import parent
from beam_tfrecord.manifests.split_names import is_split_folder, split_above
from beam_tfrecord.manifests.text.spelling import find_other
from beam_tfrecord.manifests.text.uri_text import name_of, scheme_of, with_slash
from beam_tfrecord.options.config import ManifestConfig

_ROWS_TRIED = 5
_SHOWN = 20  # manifests that are named
_MOST_FOLDERS = 50  # that are tried as the place of the images of a manifest


def find_manifest(
    files: Files,
    folder: str,
    paths: Sequence[str],
    image_folders: Collection[str],
    split: str | None,
    config: ManifestConfig,
) -> Source | None:
    """The source of the manifests, the nearest to the top, that name images of a folder; None when there are none.

    paths: files that may be manifests, below the folder. image_folders: those that images lie in. Raises ManifestError
    when there are several, and not one for each split.
    """
    found: dict[str, Source] = {}
    for _, group in groupby(sorted(paths, key=_depth), _depth):
        for path in group:
            source = _try_manifest(files, folder, path, image_folders, split, config)
            if source is not None:
                found[path] = source
        if found:
            break
    telling = {path: source for path, source in found.items() if _tells(source)} or found
    source = _of_splits(folder, telling, split) if len(telling) > 1 else next(iter(telling.values()), None)
    if source is None or len(telling) == len(found):
        return source
    why = "of their images they tell nothing but where they lie, and others tell more"
    left = {path: other for path, other in found.items() if path not in telling}
    surprises = tuple(
        (
            "columns_not_read",
            f"{path} was left out, though its column {named.example!r} {reason}: join it to {source.uri}",
        )
        for path, other in left.items()
        for reason, named in other.account.named.get(COLUMNS, {}).items()
        if reason.startswith(LOOKS_LIKE)
    )
    decided = (Decision("tables left out", ", ".join(left), why), *source.decisions)
    return replace(source, decisions=decided, surprises=(*source.surprises, *surprises))


def find_own_tables(
    files: Files, folder: str, paths: Sequence[str], split: str | None, config: ManifestConfig
) -> Source | None:
    """The source of tables that lie one in each folder of images, as GTSRB's ``00000/GT-00000.csv`` do, where each
    names images of its own folder and tells something of them; None where one does not. paths: of the tables.
    """
    parts = []
    for path in paths:
        own = path.rpartition("/")[0]
        source = _try_manifest(files, folder, path, {own}, split, config)
        if source is None or source.base != parent(source.uri) or not _tells(source):
            return None
        parts.append((split_above(path), source))
    return join_sources(folder, parts, split, "the names of folders")


def _tells(source: Source) -> bool:
    """Whether a manifest says anything of its images: of a table, whether a column with it is read."""
    roles = source.details.get("roles")
    return roles is None or any(roles[part] for part in ("label", "classes", "boxes", "mask", "captions", "columns"))


def _depth(path: str) -> int:
    return path.count("/")


def _of_splits(folder: str, found: Mapping[str, Source], split: str | None) -> Source:
    """The source of a manifest for each split. Raises ManifestError when they are not."""
    by_folder = [_one_split(path.split("/")[:-1]) for path in found]
    if _are_different(by_folder):
        return join_sources(folder, list(zip(by_folder, found.values(), strict=True)), split, "the names of folders")
    by_name = [_one_split(re.findall("[a-z]+", name_of(path).lower())) for path in found]
    if _are_different(by_name):
        return join_sources(folder, list(zip(by_name, found.values(), strict=True)), split, "the names of the files")
    named = zip(by_name if _are_different(by_name) else [""] * len(found), found.values(), strict=True)
    inputs = [f"--input {name}{'=' * bool(name)}{source.uri}" for name, source in named]
    if all(parent(source.uri) == source.base for source in found.values()):
        cure = f"give each as an --input of its own, such as {' '.join(inputs)}"
    else:
        places = (f"{given} --images {source.base}" for given, source in zip(inputs, found.values(), strict=True))
        cure = f"convert those that are wanted, such as {'; '.join(places)}"
    raise ManifestError(
        f"{folder} holds several manifests of its images ({', '.join(found)}): {cure}; or --format folder to use none"
    )


def _one_split(words: Iterable[str]) -> str:
    """The only one of some words that is the name of a split, in lower case; '' when there is none or several."""
    found = [word.lower() for word in words if is_split_folder(word)]
    return found[0] if len(found) == 1 else ""


def _are_different(splits: Sequence[str]) -> bool:
    return all(splits) and len(set(splits)) == len(splits)


def _try_manifest(
    files: Files,
    folder: str,
    path: str,
    image_folders: Collection[str],
    split: str | None,
    config: ManifestConfig,
) -> Source | None:
    """The source of a manifest whose first rows name images that are there.

    Raises ManifestError where a document of annotations cannot be read: images without them are not what is wanted.
    """
    uri = with_slash(folder) + path
    try:
        manifest = FORMATS[detect_format(files, uri)]
    except (ManifestError, ConfigError):
        return None
    if has_suffix(path.lower(), manifest.beside):  # it tells of one image
        return None
    try:
        source = manifest.describe(files, uri, split, config)
        items = list(islice(manifest.rows(files, Piece(source), config), _ROWS_TRIED))
    except AmbiguousManifestError:
        raise
    except (ManifestError, ConfigError) as error:
        if manifest.leads:
            raise ManifestError(f"{error}. To convert the images without it: --format folder") from None
        return None
    images = [image for image in map(_image_of, items) if image]
    found = f"manifest {path} in the folder {folder}"
    if any(scheme_of(image) or _is_there(files, source.base, image) for image in images):
        return replace(source, details={**source.details, "found": found})
    ending = missing_ending(files, source.base, images)
    if ending:
        return with_ending(replace(source, details={**source.details, "found": found}), ending)
    if config.images is not None or not images:
        return None
    below_it = sorted(_with_those_above(image_folders), key=lambda below: (below.count("/"), below))[:_MOST_FOLDERS]
    bases = [files.join(folder, below) if below else folder for below in below_it]
    fitting = [base for base in bases if all(_is_there(files, base, image) for image in images)]
    if not fitting:
        endings = {base: ending for base in bases if (ending := missing_ending(files, base, images))}
        fitting, ending = list(endings), next(iter(endings.values()), "")
    if len(fitting) != 1:
        return None
    (base,) = fitting
    source = manifest.describe(files, uri, split, replace(config, images=base))
    told = Decision("images", base, "the first images that the manifest names lie there")
    source = replace(source, details={**source.details, "found": found}, decisions=(told, *source.decisions))
    return with_ending(source, ending) if ending else source


def _image_of(item: Item) -> str:
    """The image that a row names, also one that cannot be used; '' for none."""
    if isinstance(item, RejectedRow):
        return item.finding.uri
    return str(item.fields.get("image") or "") if isinstance(item, Row) else ""


def _with_those_above(folders: Collection[str]) -> set[str]:
    """Folders, and all that they lie in."""
    found: set[str] = set()
    for folder in folders:
        parts = folder.split("/") if folder else []
        found.update("/".join(parts[:count]) for count in range(len(parts) + 1))
    return found


def _is_there(files: Files, base: str, image: str) -> bool:
    with suppress(ValueError, ElementError):  # of join, for a path that leads out of a bucket; of two spellings
        uri = files.join(base, image)
        return files.is_file(uri) or find_other(uri, files.is_file, is_image=True) is not None
    return False


def check_names_all(
    files: Files,
    source: Source,
    config: ManifestConfig,
    total: int,
    masks: Collection[str],
    unclear: ManifestError,
) -> None:
    """Where the folders make no layout, a manifest stands for the collection only if it names every image of it.

    total: number of images. masks: uris of those that are masks of others, which it need not name.
    Raises ManifestError that tells of both.
    """
    named: set[str] = set()
    for item in FORMATS[source.format].rows(files, Piece(source), config):
        if not isinstance(item, Row):
            continue
        for place in ("image", "mask", "instance_mask"):
            if item.fields.get(place):
                with suppress(ValueError):  # of join, for a path that leads out of a bucket
                    named.add(files.join(source.base, item.fields[place]))
    if len(named.union(masks)) < total:
        raise ManifestError(
            f"{unclear}. There is a manifest as well, {source.uri}, which names {len(named):,} of the {total:,} "
            f"images: give it as --input to convert just these"
        )


def join_sources(folder: str, parts: Sequence[tuple[str, Source]], split: str | None, why: str) -> Source:
    """One source of several manifests.

    folder: holds all of their images. parts: (split, source) of each; '' for one of no split. split: named by the user
    for all of them. why: where the names of the splits come from. Raises ManifestError where the manifests state
    classes that contradict each other.
    """
    sources = [source for _, source in parts]
    splits = list(dict.fromkeys(name for name, _ in parts if name))
    labels, ids = None, None
    if all(source.labels is not None for source in sources):
        labels, ids = stated_labels(sources)
    read = list(dict.fromkeys(uri for source in sources for uri in Reads.of(source.details, source.uri).manifests))
    own = [replace(source, split=name or None) for name, source in parts]
    named = [f"{name}{': ' * bool(name)}{source.uri.removeprefix(with_slash(folder))}" for name, source in parts]
    told = "; ".join(named[:_SHOWN]) + (f"; and {len(named) - _SHOWN:,} more" if len(named) > _SHOWN else "")
    decisions = [Decision("manifests", told, "each names images of the folder")]
    if split is None and splits:
        decisions.append(Decision("split", ", ".join(splits), why))
    return Source(
        folder,
        SeveralFormat.name,
        split,
        folder,
        labels,
        ids,
        {"parts": [to_plain(source) for source in own], **Reads(read).to_details()},
        account=merge_accounts(source.account for source in sources),
        decisions=(*decisions, *dict.fromkeys(decided for source in sources for decided in source.decisions)),
        surprises=tuple(dict.fromkeys(surprise for source in sources for surprise in source.surprises)),
    )


class SeveralFormat(ManifestFormat):
    """Made by :func:`join_sources`, of what a folder turns out to hold."""

    name = "manifests"

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        raise ConfigError(f"{uri}: give the folder with --format auto, or each manifest as an --input of its own")

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        for number in range(len(source.details["parts"])):
            yield Piece(source, number, number + 1)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        parts: Sequence[Mapping[str, Any]] = piece.source.details["parts"]
        for part in map(from_plain, parts[piece.start :] if piece.end < 0 else parts[piece.start : piece.end]):
            placer = _Placer(files, with_slash(piece.source.base), part)
            for item in FORMATS[part.format].rows(files, Piece(part), config):
                yield placer.place(item, keeps_ids=config.id_column is not None)


class _Placer:
    """Gives the rows of one manifest the paths that their images have below the whole folder."""

    def __init__(self, files: Files, folder: str, part: Source) -> None:
        self._files, self._folder, self._part = files, folder, part

    def place(self, item: Item, keeps_ids: bool) -> Item:
        if isinstance(item, RejectedRow):
            finding = item.finding
            return replace(item, finding=replace(finding, uri=self._path(finding.uri))) if finding.uri else item
        if not isinstance(item, Row):
            return item
        fields = {**item.fields}
        if fields.get("image"):
            fields["image"] = self._path(str(fields["image"]))
        if fields.get("id") and not keeps_ids:
            fields["id"] = f"{self._part.split or self._part.base.removeprefix(self._folder)}/{fields['id']}"
        if self._part.split and not fields.get("split"):
            fields["split"] = self._part.split
        return item._replace(fields=fields)

    def _path(self, image: str) -> str:
        try:
            named = named_file(image, self._part.details.get(ENDING, ""))
            return self._files.join(self._part.base, named).removeprefix(self._folder)
        except ValueError:  # it leads out of a bucket, which is told when it is read
            return image
