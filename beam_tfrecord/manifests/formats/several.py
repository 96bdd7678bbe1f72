"""A folder that is read by several manifests: one for each split (``train/_annotations.coco.json``, ``valid/...``), or
one for each folder of images (``00000/GT-00000.csv``).

Each is read by its own format. The images of all have their paths below the folder, and where a manifest gives them ids
(COCO counts anew in each file), the name of its split, else of its folder, stands in front: ``train/17``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from beam_tfrecord.core.account import Decision, merge_accounts
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source, from_plain, stated_labels, to_plain
from beam_tfrecord.manifests.endings import ENDING, named_file
from beam_tfrecord.manifests.leftovers import Reads
from beam_tfrecord.manifests.registry import FORMATS
from beam_tfrecord.manifests.text.uri_text import with_slash
from beam_tfrecord.options.config import ManifestConfig

_SHOWN = 20  # manifests that are named


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
        {"parts": [to_plain(source) for source in own], **Reads([source.uri for source in sources]).to_details()},
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
