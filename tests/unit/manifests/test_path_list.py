"""Lists of paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from beam_tfrecord.errors import ConfigError
from beam_tfrecord.manifests.formats.path_list import ListFormat, label_form
from tests.contracts import ManifestFormatContract, Sample, describe, read, rows_of

FORMAT = ListFormat(piece_bytes=20, block_bytes=8)


def written(folder: Path, text: str, name: str = "train.txt") -> Sample:
    path = folder / name
    path.write_bytes(text.encode())
    return Sample(str(path), [])


class TestList(ManifestFormatContract):
    format = FORMAT

    def sample(self, folder: Path) -> Sample:
        sample = written(folder, "cat/a.jpg 0\nmy dog/b 2.jpg 12\n\n  c.JPEG\t007\r\nd.png 1")
        rows = [(1, "cat/a.jpg", "0"), (2, "my dog/b 2.jpg", "12"), (4, "  c.JPEG", "007"), (5, "d.png", "1")]
        return Sample(sample.uri, [(f"{sample.uri}:{n}", {"image": i, "label": k}) for n, i, k in rows])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return written(folder, "".join(f"{name}\n" for name in names))

    def damaged(self, folder: Path) -> Sample:
        sample = written(folder, "a.jpg 0\nb\0.jpg 1\nc.jpg\n")
        rows = [(1, "a.jpg", "0"), (3, "c.jpg", "")]  # the empty label is told when the row is parsed
        return Sample(
            sample.uri,
            [(f"{sample.uri}:{n}", {"image": i, "label": k}) for n, i, k in rows],
            [(f"{sample.uri}:2", "bad_row")],
        )

    def empty(self, folder: Path) -> Sample:
        return written(folder, "\n\n")


@pytest.mark.parametrize(
    ("lines", "form"),
    [
        (["a.jpg", "b c.jpg", "photo 2.jpg"], ""),
        (["a.jpg 1", "b.jpg 0"], "number"),
        (["a.jpg -1"], "number"),
        (["no_suffix 1", "other 2"], "number"),
        (["no_suffix 1", "other"], ""),  # may as well be a name with a blank
        (["a.jpg cat", "b c.png\tbig dog"], "name"),
        (["a.jpg cat", "b.jpg"], ""),
        (["a.jpg x.jpg", "b.jpg"], ""),
        (["a.jpg 1", "b.jpg"], "number"),
        ([], ""),
    ],
)
def test_labels_are_told_from_paths_with_blanks(lines: list[str], form: str) -> None:
    assert label_form(lines) == form


def test_paths_without_labels(tmp_path: Path) -> None:
    sample = written(tmp_path, "a b.jpg\nc.jpg \n")
    assert [fields for _, fields in rows_of(read(FORMAT, sample))] == [{"image": "a b.jpg"}, {"image": "c.jpg"}]


def test_a_list_has_no_columns(tmp_path: Path) -> None:
    sample = Sample(written(tmp_path, "a.jpg 1\n").uri, [], options={"label_column": "label"})
    with pytest.raises(ConfigError, match="--label_column"):
        describe(FORMAT, sample)
