"""CSV and TSV."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.base import Piece
from beam_tfrecord.manifests.formats.table import CsvFormat, TsvFormat
from beam_tfrecord.options.config import ManifestConfig
from tests.contracts import ManifestFormatContract, Sample, describe, read, rejects_of, rows_of
from tests.local_files import LocalFiles

SMALL = CsvFormat(piece_bytes=20, block_bytes=8)


def written(folder: Path, content: str | bytes, name: str = "data.csv", **options: Any) -> Sample:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Sample(str(path), [], options=options)


def fields_of(folder: Path, content: str | bytes, name: str = "data.csv", **options: Any) -> list[dict[str, Any]]:
    items = read(CsvFormat(), written(folder, content, name, **options))
    assert not rejects_of(items)
    return [fields for _, fields in rows_of(items)]


def as_csv(rows: Sequence[Sequence[str]], delimiter: str = ",", end: str = "\n") -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator=end).writerows(rows)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("filename, cat, dog\na.jpg, 1, 0\nb.jpg, 0, 1\n", ["cat", "dog"]),
        ("image,MEL,NV,BCC\na,0.0,1.0,0.0\nb,1.0,0.0,0.0\n", ["NV", "MEL"]),
        ("image;cat;dog\na.jpg;1;1\nb.jpg;0;0\n", [["cat", "dog"], []]),
        ("image,width,index,is_train,cat,dog\na.jpg,9,0,1,1,0\nb.jpg,8,1,0,0,1\n", ["cat", "dog"]),
        ("image,cat,dog\na.jpg,1,-1\nb.jpg,0,1\n", [None, None]),
        ("image,cat,dog\na.jpg,1,\nb.jpg,0,1\n", [None, None]),
        ("image,cat\na.jpg,1\nb.jpg,0\n", [None, None]),
        ("image,label,cat,dog\na.jpg,x,1,0\nb.jpg,y,0,1\n", ["x", "y"]),
    ],
)
def test_columns_of_0_and_1_are_a_label_each(tmp_path: Path, text: str, labels: list[Any]) -> None:
    assert [fields.get("label") for fields in fields_of(tmp_path, text)] == labels


def test_columns_that_options_name_are_no_labels(tmp_path: Path) -> None:
    text = "image,cat,dog,old\na.jpg,1,0,1\nb.jpg,0,1,0\n"
    assert [fields["label"] for fields in fields_of(tmp_path, text, columns="old:int64")] == ["cat", "dog"]
    assert [fields["label"] for fields in fields_of(tmp_path, text, label_column="old")] == ["1", "0"]
    assert "label" not in fields_of(tmp_path, text, label_pattern="(?P<label>.)")[0]


def test_a_class_column_with_something_else_is_a_reject_that_names_it(tmp_path: Path) -> None:
    rows = "".join(f"{number}.jpg,{number % 2},{1 - number % 2}\n" for number in range(200))
    items = read(CsvFormat(), written(tmp_path, f"image,cat,dog\n{rows}a.jpg,1,2\n"))
    (reject,) = [item for item in items if isinstance(item, RejectedRow)]
    assert "'dog'" in reject.finding.message
    assert len(rows_of(items)) == 200


class TestCsv(ManifestFormatContract):
    format = SMALL

    def sample(self, folder: Path) -> Sample:
        text = (
            "image,label,split\n"
            "a.jpg,cat,train\n"
            "\n"
            'b.jpg,"big, ""black""",TEST\n'
            'c.jpg,"two\nlines",\n'
            "   \n"
            "d.jpg,007,validation\r\n"
            "e.jpg, spaces ,train"
        )
        sample = written(folder, text)
        rows = [
            (2, {"image": "a.jpg", "label": "cat", "split": "train"}),
            (4, {"image": "b.jpg", "label": 'big, "black"', "split": "test"}),
            (5, {"image": "c.jpg", "label": "two\nlines"}),
            (8, {"image": "d.jpg", "label": "007", "split": "validation"}),
            (9, {"image": "e.jpg", "label": " spaces ", "split": "train"}),
        ]
        return Sample(sample.uri, [(f"{sample.uri}:{line}", fields) for line, fields in rows])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return written(folder, as_csv([("image", "label"), *((name, "x") for name in names)]))

    def damaged(self, folder: Path) -> Sample:
        text = (
            b"image,label\n"
            b"a.jpg,cat\n"
            b"b.jpg,cat,dog\n"
            b"c.jpg\n"
            b",cat\n"
            b'd.jpg,"cat" or dog\n'
            b"e.jpg,c\x00t\n"
            b"f.jpg,cat\rg.jpg,dog\n"
            b"h.jpg,\n"
            b"i.jpg,cat,,\n"
        )
        sample = written(folder, text)
        rows = [(2, "a.jpg", "cat"), (9, "h.jpg", ""), (10, "i.jpg", "cat")]
        return Sample(
            sample.uri,
            [(f"{sample.uri}:{line}", {"image": image, "label": label}) for line, image, label in rows],
            [(f"{sample.uri}:{line}", "bad_row") for line in (3, 4, 5, 6, 7, 8)],
        )

    def empty(self, folder: Path) -> Sample:
        return written(folder, "image,label\n")


class TestTsv(ManifestFormatContract):
    format = TsvFormat(piece_bytes=20, block_bytes=8)

    def sample(self, folder: Path) -> Sample:
        sample = written(folder, 'path\tclass\na, b.jpg\tx;y\nb.jpg\t"tab\there"\n', "data.tsv")
        rows = [(2, "a, b.jpg", "x;y"), (3, "b.jpg", "tab\there")]
        return Sample(sample.uri, [(f"{sample.uri}:{n}", {"image": i, "label": k}) for n, i, k in rows])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return written(folder, as_csv([("image",), *((name,) for name in names)], "\t"), "data.tsv")

    def damaged(self, folder: Path) -> Sample:
        sample = written(folder, "path\tclass\na.jpg\tx\nb.jpg x\n", "data.tsv")
        good = [(f"{sample.uri}:2", {"image": "a.jpg", "label": "x"})]
        return Sample(sample.uri, good, [(f"{sample.uri}:3", "bad_row")])

    def empty(self, folder: Path) -> Sample:
        return written(folder, "", "data.tsv")


# ---------------------------------------------------------------------------------------------------------------------
# Round trips and pieces


cells = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
tables = st.lists(st.tuples(cells, cells), max_size=12)


@given(rows=tables, delimiter=st.sampled_from(",;\t|"), end=st.sampled_from(["\n", "\r\n"]))
def test_whatever_the_csv_module_writes_comes_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], delimiter: str, end: str
) -> None:
    # The csv module writes a carriage return without quotes when lines do not end with one (mended in Python 3.13).
    assume(end == "\r\n" or not any("\r" in cell for row in rows for cell in row))
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    content = as_csv([("image", "label"), *((f"{image}.jpg", label) for image, label in rows)], delimiter, end)
    path.write_bytes(content.encode())
    items = read(CsvFormat(), Sample(str(path), []))
    assert [(f["image"], f["label"]) for _, f in rows_of(items)] == [(f"{image}.jpg", label) for image, label in rows]
    line = 1 + 1
    for (origin, _), row in zip(rows_of(items), rows, strict=True):
        assert origin == f"{path}:{line}"
        line += as_csv([(f"{row[0]}.jpg", row[1])], delimiter, end).count("\n")


# Quotes and line ends where they must not be, too: what one piece makes of them, several must.
rough = st.text(st.sampled_from('ab,"\n\r ;'), max_size=60)


@given(text=rough, piece=st.integers(1, 20), block=st.integers(1, 12), spaces=st.booleans())
def test_pieces_of_any_size_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, piece: int, block: int, spaces: bool
) -> None:
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_bytes((("image, label\n" if spaces else "image,label\n") + text).encode())
    manifest, sample = CsvFormat(piece, block), Sample(str(path), [])

    def told(in_pieces: bool) -> tuple[list[Any], str]:
        files, source = LocalFiles(), describe(manifest, sample)
        config = ManifestConfig(input=(sample.uri,))
        items: list[Any] = []
        try:
            for part in manifest.pieces(files, source) if in_pieces else [Piece(source)]:
                items.extend(manifest.rows(files, part, config))
        except ManifestError as error:
            return items, str(error)
        return items, ""

    assert told(in_pieces=True) == told(in_pieces=False)


def test_a_large_file_is_cut_and_a_small_one_is_not(tmp_path: Path) -> None:
    sample = written(tmp_path, "image,label\n" + "a.jpg,cat\n" * 100)
    source = describe(SMALL, sample)
    assert len(list(SMALL.pieces(LocalFiles(), source))) > 20
    assert len(list(CsvFormat().pieces(LocalFiles(), source))) == 1


@pytest.mark.parametrize("name", ["data.csv.gz", "utf16.csv"])
def test_what_cannot_be_read_from_its_middle_is_one_piece(tmp_path: Path, name: str) -> None:
    text = "image,label\n" + "a.jpg,cat\n" * 100
    sample = written(tmp_path, gzip.compress(text.encode()) if name.endswith("gz") else text.encode("utf-16"), name)
    assert len(list(SMALL.pieces(LocalFiles(), describe(SMALL, sample)))) == 1
    assert len(read(SMALL, sample)) == 100


def test_rows_of_one_item_are_never_parted(tmp_path: Path) -> None:
    boxes = written(tmp_path, "image,class,xmin,ymin,xmax,ymax\n" + "a.jpg,cat,1,2,3,4\n" * 50)
    assert len(list(SMALL.pieces(LocalFiles(), describe(SMALL, boxes)))) == 1
    clips = written(tmp_path, "image,clip\n" + "a.jpg,1\n" * 50, sequence_column="clip")
    assert len(list(SMALL.pieces(LocalFiles(), describe(SMALL, clips)))) == 1


# ---------------------------------------------------------------------------------------------------------------------
# How a table is written

TABLE = "image,label\na.jpg,größe\nb.jpg,猫\n"
EXPECTED = [{"image": "a.jpg", "label": "größe"}, {"image": "b.jpg", "label": "猫"}]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"], ids=lambda name: name
)
def test_unicode_encodings_are_told_apart(tmp_path: Path, encoding: str) -> None:
    text = TABLE if "32" not in encoding else TABLE.replace("猫", "c")
    expected = EXPECTED if "32" not in encoding else [EXPECTED[0], {"image": "b.jpg", "label": "c"}]
    assert fields_of(tmp_path, text.encode(encoding)) == expected


@pytest.mark.parametrize(
    ("name", "pack"), [("data.csv.gz", gzip.compress), ("data.csv.bz2", bz2.compress), ("data.csv.xz", lzma.compress)]
)
def test_compressed_files_are_unpacked_whatever_their_name(tmp_path: Path, name: str, pack: Any) -> None:
    assert fields_of(tmp_path, pack(TABLE.encode()), name) == EXPECTED
    assert fields_of(tmp_path, pack(TABLE.encode()), "data.csv") == EXPECTED


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_all_systems(tmp_path: Path, end: str) -> None:
    assert fields_of(tmp_path, TABLE.replace("\n", end)) == EXPECTED


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path: Path, delimiter: str) -> None:
    rows = [("image", "label", "note"), ("a.jpg", "cat; dog, cow", "x|y\tz"), ("b.jpg", "dog", "plain, plain")]
    assert [f["label"] for f in fields_of(tmp_path, as_csv(rows, delimiter))] == ["cat; dog, cow", "dog"]


def test_excel_says_its_delimiter_itself(tmp_path: Path) -> None:
    items = read(CsvFormat(), written(tmp_path, "sep=;\r\nimage;label\r\na.jpg;cat\r\n"))
    assert rows_of(items) == [(f"{tmp_path}/data.csv:3", {"image": "a.jpg", "label": "cat"})]


def test_spaces_behind_delimiters_are_skipped_where_the_header_has_them(tmp_path: Path) -> None:
    assert fields_of(tmp_path, 'image, label\na.jpg, "big, black"\n') == [{"image": "a.jpg", "label": "big, black"}]


def test_a_quote_inside_of_a_cell_is_a_character(tmp_path: Path) -> None:
    assert fields_of(tmp_path, 'image,label\na.jpg,5" pipe\nb.jpg,x\n')[0]["label"] == '5" pipe'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.jpg,cat\nb.png,dog\n", [("a.jpg", "cat", None), ("b.png", "dog", None)]),
        ("train,a.jpg,cat\ntest,b.jpg,dog\n", [("a.jpg", "cat", "train"), ("b.jpg", "dog", "test")]),
        ("cat;x/a.JPG\n", [("x/a.JPG", "cat", None)]),
        ("a.jpg,class\nb.jpg,image\n", [("a.jpg", "class", None), ("b.jpg", "image", None)]),
    ],
)
def test_a_missing_header_is_noticed_where_the_columns_speak_for_themselves(
    tmp_path: Path, text: str, expected: list[tuple[str, str, str | None]]
) -> None:
    found = [(f["image"], f["label"], f.get("split")) for f in fields_of(tmp_path, text)]
    assert found == expected


@pytest.mark.parametrize("text", ["1,a.jpg,cat,9\n2,b.jpg,dog,9\n", "a.jpg,b.jpg\n", "photo_1,cat\nphoto_2,dog\n"])
def test_a_missing_header_is_explained_where_they_do_not(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        describe(CsvFormat(), written(tmp_path, text))
    for said in ("header", "image", "filename", "path", "--image_column", text.split("\n", 1)[0]):
        assert said in str(caught.value)


# ---------------------------------------------------------------------------------------------------------------------
# Columns


def test_columns_named_by_options_win_over_usual_names(tmp_path: Path) -> None:
    text = "image,label,Photo File,kind,patient,nr,frame,mask\nno.jpg,no,a.jpg,cat,p1,0007,3,m.png\n"
    options = {"image_column": "photo_file", "label_column": "KIND", "group_column": "patient", "id_column": "nr"}
    options |= {"sequence_column": "patient", "order_column": "frame", "mask_column": "mask"}
    fields = fields_of(tmp_path, text, **options)[0]
    expected = {"image": "a.jpg", "label": "cat", "group": "p1", "id": "0007", "sequence": "p1", "order": "3"}
    assert fields == {**expected, "mask": f"{tmp_path}/m.png"}


def test_a_mask_that_leads_out_of_its_bucket_is_told(tmp_path: Path) -> None:
    class Bucket(LocalFiles):
        def join(self, base: str, path: str) -> str:
            if path.startswith(".."):
                raise ValueError(f"{path!r} leads out of gs://bucket")
            return super().join(base, path)

    sample = written(tmp_path, "image,mask\na.jpg,m.png\nb.jpg,../../m.png\nc.jpg,\n", mask_column="mask")
    items = read(CsvFormat(), sample, files=Bucket())
    assert [fields.get("mask") for _, fields in rows_of(items)] == [f"{tmp_path}/m.png", ""]
    assert rejects_of(items) == [(f"{sample.uri}:3", "unsafe_path")]


@pytest.mark.parametrize("cell", ["", "  ", '" "'])
def test_an_empty_mask_cell_says_that_there_is_no_mask(tmp_path: Path, cell: str) -> None:
    fields = fields_of(tmp_path, f"image,mask\na.jpg,m.png\nb.jpg,{cell}\n", mask_column="mask")
    assert [row["mask"] for row in fields] == [f"{tmp_path}/m.png", ""]


def test_the_mask_of_an_image_with_several_boxes_is_given_on_any_of_its_lines(tmp_path: Path) -> None:
    lines = ["image,class,xmin,ymin,xmax,ymax,mask"]
    lines += [f"{name}.jpg,x,1,2,3,4,{mask}" for name, mask in (("a", ""), ("b", "m.png"), ("a", "n.png"), ("b", ""))]
    fields = fields_of(tmp_path, "\n".join(lines), mask_column="mask")
    assert [(row["image"], row["mask"], row.get("notes")) for row in fields] == [
        ("a.jpg", f"{tmp_path}/n.png", None),
        ("b.jpg", f"{tmp_path}/m.png", None),
    ]


def test_declared_columns_are_kept_as_they_stand(tmp_path: Path) -> None:
    text = "image,age,Note\na.jpg, 7,\n"
    fields = fields_of(tmp_path, text, columns="age:int64,note:string")[0]
    assert fields["columns"] == {"age": " 7", "note": ""}


def test_a_table_without_images_needs_declared_columns(tmp_path: Path) -> None:
    assert fields_of(tmp_path, "a,b\n1,x\n", columns="a:int64") == [{"columns": {"a": "1"}}]
    with pytest.raises(ConfigError, match="--columns"):
        describe(CsvFormat(), written(tmp_path, "a,b\n1,x\n"))


def test_a_wrong_column_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--label_column clas.*did you mean 'class'.*'filename', 'class'"):
        describe(CsvFormat(), written(tmp_path, "filename,class\na.jpg,x\n", label_column="clas"))
    with pytest.raises(ConfigError, match=r"--columns weigth.*'weight'"):
        describe(CsvFormat(), written(tmp_path, "image,weight\na.jpg,1\n", columns="weigth:float"))


def test_two_columns_of_one_name_are_an_error_unless_they_have_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two columns are called 'label'"):
        describe(CsvFormat(), written(tmp_path, "image,label,label\na.jpg,x,y\n"))
    assert fields_of(tmp_path, ",image,\n0,a.jpg,1\n") == [{"image": "a.jpg"}]


def test_relative_paths_start_at_the_manifest_or_at_images(tmp_path: Path) -> None:
    sample = written(tmp_path, TABLE)
    assert describe(CsvFormat(), sample).base == str(tmp_path)
    assert describe(CsvFormat(), Sample(sample.uri, [], options={"images": "/elsewhere"})).base == "/elsewhere"


def test_one_row_per_box_is_one_row_per_image(tmp_path: Path) -> None:
    text = (
        "filename,width,height,class,xmin,ymin,xmax,ymax\n"
        "a.jpg,64,48,cat,1,2,3,4\n"
        "b.jpg,64,48,dog,1,2,3,4\n"
        "broken\n"
        "a.jpg,64,48,dog,5,6,7,8\n"
    )
    items = read(CsvFormat(), written(tmp_path, text))
    rows = [item for item in items if isinstance(item, Row)]
    assert [(row.fields["image"], row.source_rows, len(row.fields["boxes"])) for row in rows] == [
        ("a.jpg", 2, 2),
        ("b.jpg", 1, 1),
    ]
    assert rejects_of(items) == [(f"{tmp_path}/data.csv:4", "bad_row")]


# ---------------------------------------------------------------------------------------------------------------------
# Damage


def test_a_quote_that_is_never_closed_is_named(tmp_path: Path) -> None:
    sample = written(tmp_path, 'image,label\na.jpg,cat\nb.jpg,"open\nc.jpg,dog\n')
    with pytest.raises(ManifestError, match="begins on line 3"):
        read(CsvFormat(), sample)


def test_a_cell_that_swallows_the_rest_of_a_large_file_is_named(tmp_path: Path) -> None:
    sample = written(tmp_path, 'image,label\nb.jpg,"open\n' + f"c.jpg,{'x' * 10_000}\n" * 1_800 + '"\n')
    with pytest.raises(ManifestError, match=r"begins on line 2 .*not closed"):
        read(CsvFormat(), sample)


def test_bytes_that_are_no_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    text = "image,label\n" + f"a.jpg,{'x' * 993}\n" * 3_000
    sample = written(tmp_path, text.encode() + "b.jpg,größe\n".encode("latin-1"))
    with pytest.raises(ManifestError, match=r"line 3002 is not UTF-8 \(byte 0xf6 at offset 3000020\).*iconv"):
        read(CsvFormat(), sample)
    with pytest.raises(ManifestError, match="line 2 is not UTF-8"):
        describe(CsvFormat(), written(tmp_path, b"image,label\n\xe9.jpg,cat\n"))


def test_a_cut_compressed_file_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(as_csv([("image",), *((f"{i}.jpg",) for i in range(100_000))]).encode())
    sample = written(tmp_path, packed[:-1_000], "data.csv.gz")
    with pytest.raises(ManifestError, match=r"data.csv.gz ends in the middle"):
        read(CsvFormat(), sample)


def test_rows_stream(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "data.csv"
    path.write_text("image,label\n" + "".join(f"folder/{i}.jpg,{'cat' * 200}\n" for i in range(10_000)))
    files, config = LocalFiles(), ManifestConfig(input=(str(path),))
    source = CsvFormat().describe(files, str(path), None, config)
    tracemalloc.start()
    count = sum(1 for _ in CsvFormat().rows(files, Piece(source), config))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 10_000
    assert peak < 2 * 2**20


@pytest.mark.parametrize(
    ("line", "image"),
    [("a.jpg,x,y", "a.jpg"), ("a.jpg", "a.jpg"), ("x,y,b.png", "b.png"), ("x", ""), ("x,a.jpg,b.jpg", "")],
)
def test_a_row_of_the_wrong_width_tells_its_image(tmp_path: Path, line: str, image: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"image,label\nc.jpg,cat\n{line}\n")
    (item,) = [item for item in read(CsvFormat(), Sample(str(path), [])) if isinstance(item, RejectedRow)]
    assert (item.finding.code, item.finding.uri, item.finding.origin) == ("bad_row", image, f"{path}:3")
    assert type(item.finding.message) is str
    assert "cell" in item.finding.message
