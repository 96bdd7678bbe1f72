"""Quotes in tables: each line is a row, a reject, or told of; what csv and pandas write is read as it was."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.formats.openimages import OpenImagesFormat
from beam_tfrecord.manifests.formats.table import CsvFormat, TsvFormat
from beam_tfrecord.manifests.formats.vertex import VertexFormat
from beam_tfrecord.manifests.text.csv_text import LONGEST_CELL
from tests.annotation_tools import read_items, write

ROWS = [f"z{number}.jpg,fox" for number in range(1, 30)]


def lines_of(path: Path, form: CsvFormat | None = None, **options: Any) -> list[Any]:
    return read_items(form or CsvFormat(), path, **options)[1]


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize(
    ("opening", "closing", "told"),
    [
        ('z1.jpg,"fox', 'z4.jpg,"hen', "t.csv:2: a quote opens .* line 3"),  # text behind the closing quote
        ('z1.jpg,"big fox', 'z4.jpg,small fox"', "t.csv:2: a quote opens .* line 3"),
        ('"z1.jpg,fox', 'z4.jpg,hen"', "t.csv:2: a quote opens .* line 3"),
        ('z1.jpg,"fox', "z4.jpg,hen", "t.csv: the file ends inside of a quoted cell.* line 2"),
    ],
)
def test_a_quote_that_takes_in_rows_is_an_error(
    tmp_path: Path, delimiter: str, opening: str, closing: str, told: str
) -> None:
    lines = ["image,label", opening, "z2.jpg,hen", "z3.jpg,owl", closing, *ROWS[4:]]
    path = write(tmp_path / "t.csv", "".join(f"{line.replace(',', delimiter)}\n" for line in lines))
    with pytest.raises(ManifestError, match=told):
        lines_of(path, TsvFormat() if delimiter == "\t" else None)
    small = CsvFormat(piece_bytes=64, block_bytes=16)
    with pytest.raises(ManifestError, match=told):
        lines_of(path, small)


def test_two_rows_that_one_cell_takes_in(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"t\.csv:3: .* line 4"):
        lines_of(write(tmp_path / "t.csv", 'image,label\na.jpg,x\nb.jpg,"y\nc.jpg,z"\nd.jpg,x\n'))


def test_carriage_returns_hide_no_rows(tmp_path: Path) -> None:
    text = 'image,label\na.jpg,x\nb.jpg,"y\nc.jpg,z"\nd.jpg,x\n'
    within = text.replace("c.jpg,z", "c.jpg,z\rz")
    for content in (text.replace("\n", "\r"), text.replace("\n", "\r\n"), within, within.replace('z"', 'z"z')):
        with pytest.raises(ManifestError, match=r"t\.csv:3: .* line 4"):
            lines_of(write(tmp_path / "t.csv", content))


def test_a_cell_of_carriage_returns_and_line_ends_is_one_cell(tmp_path: Path) -> None:
    items = lines_of(write(tmp_path / "t.csv", 'image,note\na.jpg,"\n\r"\nb.jpg,"\r\n\rx"\n'), columns="note:string")
    assert [item.fields["columns"]["note"] for item in items] == ["\n\r", "\r\n\rx"]


def test_what_follows_a_closing_quote_may_be_of_any_length(tmp_path: Path) -> None:
    text = f'image,label\na.jpg,"x\ny"z{"w" * (LONGEST_CELL + 1)}\nb.jpg,x\n'
    damaged, row = lines_of(write(tmp_path / "t.csv", text))
    assert isinstance(damaged, RejectedRow)
    assert row.fields["image"] == "b.jpg"


def test_names_without_an_ending_are_known_by_their_shape(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="line 3"):
        lines_of(write(tmp_path / "t.csv", 'image,label\nimg_0001,"x\nimg_0002,y\nimg_0003,z"\n'))


def test_a_table_without_images(tmp_path: Path) -> None:
    for text in ('age,name\n31,"ann\n44,bob\n5,cid"\n', 'name,age\n"ann,31\nbob,44\ncid,5"\n'):
        with pytest.raises(ManifestError, match="line 3"):
            lines_of(write(tmp_path / "t.csv", text), columns="age:int64,name:string")


def test_line_ends_in_a_quoted_cell_are_right(tmp_path: Path) -> None:
    texts = ["one\ntwo", "a, b\nc, d", "no image.jpg\nhere, nor\n\nthere", "\n", '"quoted"\n,']
    buffer = StringIO()
    csv.writer(buffer).writerows([("image", "note"), *((f"{number}.jpg", text) for number, text in enumerate(texts))])
    items = lines_of(write(tmp_path / "t.csv", buffer.getvalue()), columns="note:string")
    assert [item.fields["columns"]["note"] for item in items] == texts


def test_a_quote_within_a_cell_is_literal(tmp_path: Path) -> None:
    items = lines_of(write(tmp_path / "t.csv", 'image,label\na.jpg,5" nail\nb"c.jpg,x"y"\nc.jpg,""\nd.jpg,z\n'))
    assert [item.fields["label"] for item in items] == ['5" nail', 'x"y"', "", "z"]
    assert items[1].fields["image"] == 'b"c.jpg'


def test_a_damaged_row_says_how_many_lines_it_takes_up(tmp_path: Path) -> None:
    items = lines_of(write(tmp_path / "t.csv", 'image,note,label\na.jpg,"one\ntwo"x,y\nb.jpg,n,x\n'))
    assert isinstance(items[0], RejectedRow)
    assert "(the row goes over 2 lines)" in items[0].finding.message
    assert isinstance(items[1], Row)


CELL = st.text(st.sampled_from(list('ab1 ,;"\n\t')), max_size=8)


@given(
    st.lists(CELL, min_size=1, max_size=6),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([1, 2**20]),
)
def test_what_the_csv_module_writes_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, notes: list[str], quoting: Any, end: str, piece: int
) -> None:
    buffer = StringIO(newline="")
    writer = csv.writer(buffer, quoting=quoting, lineterminator=end)
    writer.writerows([("image", "note", "label"), *((f"{number}.jpg", note, "x") for number, note in enumerate(notes))])
    path = write(tmp_path_factory.mktemp("t") / "t.csv", buffer.getvalue())
    items = lines_of(path, CsvFormat(piece_bytes=piece, block_bytes=16), columns="note:string")
    assert [item.fields["columns"]["note"] for item in items] == notes


def test_what_pandas_writes_is_read(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"image": ["a.jpg", "b.jpg"], "note": ['say "x",\nthen go', "y\tz"], "label": ["x", "y"]})
    for separator in (",", "\t", ";"):
        for quoting in (csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC):
            frame.to_csv(tmp_path / "t.csv", index=False, sep=separator, quoting=quoting)
            items = lines_of(tmp_path / "t.csv", columns="note:string")
            assert [item.fields["columns"]["note"] for item in items] == list(frame["note"])


def test_files_of_a_fixed_layout_have_no_cells_over_several_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "v.csv", 'gs://b/1.jpg,"fox\ngs://b/2.jpg,hen\ngs://b/3.jpg,owl"\n')
    with pytest.raises(ManifestError, match=r"v\.csv:1: .* line 2"):
        read_items(VertexFormat(), path)
    head = "ImageID,LabelName,XMin,XMax,YMin,YMax\n"
    path = write(tmp_path / "o.csv", head + 'a,"x,.1,.2,.1,.2\nb,x,.1,.2,.1,.2\nc,x",.1,.2,.1,.2\n')
    with pytest.raises(ManifestError, match=r"o\.csv:2: .* line 3"):
        read_items(OpenImagesFormat(), path)
