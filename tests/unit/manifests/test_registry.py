"""Finding the format of a source, and formats from outside of the package."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.manifests import FORMATS, describe_inputs, detect_format, register_format
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.registry import has_suffix
from beam_tfrecord.manifests.text.lines import TextForm, TextLines, look_at_text
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import FORMAT_NAMES
from tests.contracts import ManifestFormatContract, Sample
from tests.local_files import LocalFiles


def test_every_registry_line_leads_to_its_format() -> None:
    for name, manifest in FORMATS.items():
        assert isinstance(manifest, ManifestFormat)
        assert manifest.name == name
    assert set(FORMAT_NAMES) - {"auto"} <= set(FORMATS)
    assert len(FORMATS) == len(list(FORMATS))


def test_an_unknown_format_says_what_to_do() -> None:
    with pytest.raises(KeyError, match="registered in a module that the workers import"):
        FORMATS["toy"]
    assert FORMATS.get("toy") is None


def zipped(name: str = "cat/a.jpg") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "x")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "format_"),
    [
        ("a.csv", b"image,label\na.jpg,x\n", "csv"),
        ("A.CSV", b"image,label\na.jpg,x\n", "csv"),
        ("a.csv.gz", gzip.compress(b"image,label\na.jpg,x\n"), "csv"),
        ("a.csv", b"foo\nbar\n", "csv"),
        ("a.tsv", b"image\tlabel\na.jpg\tx\n", "tsv"),
        ("a.jsonl", b'{"image": "a.jpg"}\n', "jsonl"),
        ("a.json", b'{"image": "a.jpg"}\n{"image": "b.jpg"}\n', "jsonl"),
        ("a.txt", b"a.jpg 1\nb.jpg 0\n", "list"),
        ("a.txt", b"image,label\na.jpg,x\n", "csv"),
        ("a", b"image;label\na.jpg;x\n", "csv"),
        ("a", b"x/a.jpg\nx/b.jpg\n", "list"),
        ("a.parquet", b"PAR1", "parquet"),
        ("a", b"PAR1", "parquet"),
        ("a.csv", zipped(), "archive"),
        ("a.csv", b"", "csv"),
        ("a.jpg", b"", "glob"),
        ("a.json", b'{"images": [], "annotations": [], "categories": []}', "coco"),
        ("a.csv", b"gs://b/a.jpg,cat\ngs://b/b.jpg,dog\n", "vertex"),
        ("a.csv", b"ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\n", "openimages"),
        ("a.csv", b"filename,class,xmin,ymin,xmax,ymax\n", "csv"),
    ],
)
def test_formats_are_told_by_content_and_name(tmp_path: Path, name: str, data: bytes, format_: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert detect_format(LocalFiles(), str(tmp_path / name)) == format_


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.xlsx", zipped("xl/workbook.xml"), "save the sheet as CSV"),
        ("a.rar", b"Rar!\x1a\7", "a zip or tar"),
        ("a.bin", b"\0\1\2", "--format"),
        ("a.dat", b"hello world\n", "--format"),
    ],
)
def test_what_no_format_takes_is_explained(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match=said) as caught:
        detect_format(LocalFiles(), str(tmp_path / name))
    assert name in str(caught.value)


def test_suffixes_count_with_and_without_that_of_a_compression() -> None:
    assert has_suffix("a.csv.gz", (".csv",))
    assert has_suffix("a.tar.gz", (".tar.gz",))
    assert not has_suffix("a.gz", (".csv",))
    assert not has_suffix("a.csv", ())


# ---------------------------------------------------------------------------------------------------------------------
# A format from outside of the package: this is all that it takes.


class ToyFormat(ManifestFormat):
    """Lines of ``label: path``."""

    name = "toy"
    suffixes = (".toy",)

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        sample = look_at_text(files, uri)
        return Source(uri, self.name, split, str(Path(uri).parent), details={"text": sample.form.to_details()})

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        lines = TextLines(files, source.uri, TextForm(**source.details["text"]))
        for number, line in enumerate(lines, start=1):
            origin = f"{source.uri}:{number}"
            label, mark, path = line.strip().partition(": ")
            if mark:
                yield Row(origin, {"image": path, "label": label})
            elif label:
                yield rejected(origin, "bad_row", "the line is not of the form label: path")


@pytest.fixture
def toy() -> Iterator[None]:
    names = list(FORMAT_NAMES)
    register_format(ToyFormat())
    yield
    FORMATS.unregister("toy")
    FORMAT_NAMES[:] = names


@pytest.mark.usefixtures("toy")
class TestToy(ManifestFormatContract):
    format = ToyFormat()

    def sample(self, folder: Path) -> Sample:
        (folder / "data.toy").write_text("cat: a.jpg\n\ndog: b.jpg\n")
        uri = f"{folder}/data.toy"
        return Sample(
            uri, [(f"{uri}:1", {"image": "a.jpg", "label": "cat"}), (f"{uri}:3", {"image": "b.jpg", "label": "dog"})]
        )

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        (folder / "data.toy").write_text("".join(f"x: {name}\n" for name in names))
        return Sample(f"{folder}/data.toy", [])

    def damaged(self, folder: Path) -> Sample:
        (folder / "data.toy").write_text("cat: a.jpg\nb.jpg\n")
        uri = f"{folder}/data.toy"
        return Sample(uri, [(f"{uri}:1", {"image": "a.jpg", "label": "cat"})], [(f"{uri}:2", "bad_row")])

    def empty(self, folder: Path) -> Sample:
        (folder / "data.toy").write_text("")
        return Sample(f"{folder}/data.toy", [])

    def test_is_asked_for_by_its_name(self, tmp_path: Path) -> None:
        (tmp_path / "data.csv").write_text("cat: a.jpg\n")
        (found,) = describe_inputs(LocalFiles(), ManifestConfig(input=(f"{tmp_path}/data.csv",), format="toy"))
        assert found.format == "toy"
