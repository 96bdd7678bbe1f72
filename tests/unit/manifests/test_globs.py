"""Globs of images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from beam_tfrecord.manifests import detect_format
from beam_tfrecord.manifests.formats.globs import GlobFormat
from tests.contracts import ManifestFormatContract, Sample, describe, read, rows_of
from tests.local_files import LocalFiles
from tests.samples import write_files


def written(folder: Path, names: Sequence[str], pattern: str) -> Sample:
    write_files(folder, dict.fromkeys(names, b"\xff\xd8\xff"))
    return Sample(f"{folder}/{pattern}", [])


class TestGlob(ManifestFormatContract):
    format = GlobFormat()

    def sample(self, folder: Path) -> Sample:
        sample = written(folder, ["b.jpg", "a1.jpg", "a0/x.jpg", "a/y.jpg", "a/.hidden/z.jpg", "._b.jpg"], "**/*.jpg")
        names = ["a/y.jpg", "a0/x.jpg", "a1.jpg", "b.jpg"]
        return Sample(sample.uri, [(f"{folder}/{name}", {"image": name}) for name in names], ignored=2)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return written(folder, names, "*")

    def damaged(self, folder: Path) -> Sample:
        """Nothing is opened, so nothing is found damaged; a file of another kind is told when it is read."""
        write_files(folder, {"a.jpg": b"", "b.jpg": b"<html>"})
        return Sample(f"{folder}/*.jpg", [(f"{folder}/{name}", {"image": name}) for name in ("a.jpg", "b.jpg")])

    def empty(self, folder: Path) -> Sample:
        return Sample(f"{folder}/*.jpg", [])

    def test_is_recognised(self, tmp_path: Path) -> None:
        """A single file, that is: a glob is no file whose bytes could be looked at, see test_inputs.py."""
        write_files(tmp_path, {"a.JPG": b"no image", "b": b"\xff\xd8\xff\xe0"})
        assert (
            detect_format(LocalFiles(), f"{tmp_path}/a.JPG") == detect_format(LocalFiles(), f"{tmp_path}/b") == "glob"
        )


def test_paths_are_those_below_the_folder_that_is_spelled_out(tmp_path: Path) -> None:
    sample = written(tmp_path, ["fruit/red/apple01.jpg", "fruit/green/pear.jpg"], "fruit/*/*.jpg")
    assert describe(GlobFormat(), sample).base == f"{tmp_path}/fruit"
    assert [fields["image"] for _, fields in rows_of(read(GlobFormat(), sample))] == [
        "green/pear.jpg",
        "red/apple01.jpg",
    ]


def test_a_single_file_may_have_any_name(tmp_path: Path) -> None:
    sample = written(tmp_path, ["x/[1]*.jpg", "x/1.jpg"], "x/[1]*.jpg")
    assert describe(GlobFormat(), sample).base == f"{tmp_path}/x"
    assert rows_of(read(GlobFormat(), sample)) == [(f"{tmp_path}/x/[1]*.jpg", {"image": "[1]*.jpg"})]
