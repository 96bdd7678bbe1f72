"""Small text files beside a manifest: encodings, lines, and names as they are spelled."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.formats.voc import VocFormat
from beam_tfrecord.manifests.formats.yolo import YoloFormat
from beam_tfrecord.manifests.formats.yolo_data import read_names_file
from beam_tfrecord.manifests.text.lines import decode_text, read_lines, split_lines
from beam_tfrecord.manifests.text.xml_tree import parse_xml
from beam_tfrecord.manifests.text.yaml_text import load_yaml
from beam_tfrecord.options.config import ManifestConfig
from tests.annotation_tools import fields_by_image, read_items, rejects, write
from tests.local_files import LocalFiles

ODD_NAMES = ["no", "NO", "yes", "on", "off", "y", "n", "true", "null", "~", "007", "010", "0x10", "0o7", "1.10", "1e3"]
ODD_NAMES += [
    "12:30",
    "1_000",
    "2024-01-02",
    "2024-01-02 03:04:05",
    ".5",
    ".inf",
    ".nan",
    "+1",
    "-0",
    "1.0",
    "1",
    "=",
    "<",
]


def yolo_names(root: Path, yaml_text: str, **options: str) -> dict[int, str]:
    write(root / "images/a.jpg", "pixels")
    write(root / "data.yaml", yaml_text)
    source = read_items(YoloFormat(), root, **options)[0]
    return dict(zip(source.category_ids or (), source.labels or (), strict=True))


def test_names_in_a_yaml_are_what_is_written(tmp_path: Path) -> None:
    wanted = dict(enumerate(ODD_NAMES))
    flow = f"train: images\nnames: [{', '.join(ODD_NAMES)}]\n"
    block = "train: images\nnames:\n" + "".join(f"  - {name}\n" for name in ODD_NAMES)
    mapping = "train: images\nnames:\n" + "".join(f"  {number}: {name}\n" for number, name in wanted.items())
    assert yolo_names(tmp_path, flow) == yolo_names(tmp_path, block) == yolo_names(tmp_path, mapping) == wanted


@given(st.lists(st.one_of(st.sampled_from(ODD_NAMES), st.text(min_size=1)), min_size=1), st.booleans())
def test_texts_written_by_pyyaml_come_back(names: list[str], flow: bool) -> None:
    dumped = yaml.safe_dump({"names": names, "more": {"0": names[0]}}, default_flow_style=flow, allow_unicode=True)
    assert load_yaml(dumped) == yaml.safe_load(dumped)  # which takes a few characters for line ends


@given(st.lists(st.from_regex(r"[A-Za-z0-9.~+-][A-Za-z0-9.:_+-]{0,6}[A-Za-z0-9]", fullmatch=True), min_size=1))
def test_unquoted_texts_are_those_of_a_loader_that_knows_only_texts(names: list[str]) -> None:
    text = "names:\n" + "".join(f"- {name}\n" for name in names)
    assert load_yaml(text) == yaml.load(text, yaml.BaseLoader)


def test_anchors_and_merged_keys_are_followed() -> None:
    text = "base: &b {0: no, 1: dog}\nnames:\n  <<: *b\n  2: off\nagain: *b\n"
    assert load_yaml(text)["names"] == {"0": "no", "1": "dog", "2": "off"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("train: images\nnames: [a]\nnames: [b]\n", "line 1: the key 'names' is given twice"),
        ("train: images\nnames:\n  0: a\n  0: b\n", "line 3: the key '0' is given twice"),
        ("train: images\nnames:\n  0: a\n  00: b\n", "the class 0 is called 'a' and 'b'"),
        ("train: images\nnames: [a]\n---\nnames: [b]\n", "another document"),
        ("train: images\nnames: [a, [b]]\n", r"1: \['b'\] is no class id and name"),
        ("train: images\nnames: [a, ]\nnc: 2\n", "nc is 2, but there are 1 names"),
        ("train: {a: b}\nnames: [a]\n", "train is"),
        ("train: images\nnames: [a, a]\n", "both called 'a'"),
    ],
)
def test_a_yaml_that_can_be_read_in_two_ways_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ManifestError, match=told):
        yolo_names(tmp_path, text)


@pytest.mark.parametrize("nothing", ["", "~", "null"])
def test_a_split_without_images_and_keypoints_that_are_none(tmp_path: Path, nothing: str) -> None:
    text = f"train: images\ntest: {nothing}\npath: {nothing}\nkpt_shape: {nothing}\nnames: [null]\n"
    assert yolo_names(tmp_path, text) == {0: "null"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_blank_line_moves_no_id(tmp_path: Path, encoding: str, end: str) -> None:
    names = write(
        tmp_path / "classes.txt", end.join(["cat", "", "a\x0cb", "c\u2028d", "e\x85f", "", ""]).encode(encoding)
    )
    assert read_names_file(LocalFiles(), str(names)) == {0: "cat", 2: "a\x0cb", 3: "c\u2028d", 4: "e\x85f"}


def test_labels_mean_the_line_of_their_name(tmp_path: Path) -> None:
    write(tmp_path / "images/a.jpg", "pixels")
    write(tmp_path / "predefined_classes.txt", "\ncat\n\ndog\n")
    write(tmp_path / "labels/a.txt", "1 .5 .5 .1 .1\n3 .5 .5 .1 .1")
    _, items = read_items(YoloFormat(), tmp_path)
    assert [box["class"] for box in fields_by_image(items)["images/a.jpg"]["boxes"]] == ["cat", "dog"]
    write(tmp_path / "labels/a.txt", "2 .5 .5 .1 .1")
    assert rejects(read_items(YoloFormat(), tmp_path)[1])[0][0] == "unknown_category"


@pytest.mark.parametrize(
    ("name", "place"), [("classes.txt", "classes.txt: line 2"), ("data.yaml", "data.yaml: line 2")]
)
def test_bytes_of_another_encoding_are_an_error_with_their_line(tmp_path: Path, name: str, place: str) -> None:
    write(tmp_path / "images/a.jpg", "pixels")
    write(tmp_path / "labels/a.txt", "0 .5 .5 .1 .1")
    text = "train: images\nnames: [苹果, 犬]\n" if name == "data.yaml" else "cat\n苹果\n"
    write(tmp_path / name, text.encode("gbk"))
    with pytest.raises((ManifestError, ConfigError), match=rf"{place} is not UTF-8.*--encoding"):
        read_items(YoloFormat(), tmp_path / name if name == "data.yaml" else tmp_path)
    source = read_items(YoloFormat(), tmp_path / name if name == "data.yaml" else tmp_path, encoding="gbk")[0]
    assert source.labels == (("苹果", "犬") if name == "data.yaml" else ("cat", "苹果"))


def test_nul_bytes_are_told_with_their_line() -> None:
    with pytest.raises(ValueError, match="line 2 holds NUL"):
        decode_text(b"a\nb\0c\n")


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=5)), st.booleans()
)
def test_lines_are_those_that_python_reads_from_a_file(lines: list[str], ends: bool) -> None:
    text = "\n".join(lines) + "\n" * ends
    kept = lines[:-1] if lines and not ends and not lines[-1] else lines  # nothing stands behind the last line end
    assert split_lines(text) == ([""] if ends and not lines else kept)


def test_a_packed_list_is_read_like_the_others(tmp_path: Path) -> None:
    import gzip

    assert read_lines(LocalFiles(), str(write(tmp_path / "a.txt", gzip.compress(b"a\nb")))) == ["a", "b"]


XML = (
    '<?xml version="1.0" encoding="{}"?>\n<annotation>\n<filename>a.jpg</filename><object><name>{}</name>'
    "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox></object></annotation>"
)


@pytest.mark.parametrize(
    ("declared", "codec", "name"),
    [
        ("gb2312", "gb2312", "猫"),
        ("gb2312", "gbk", "囧"),
        ("GBK", "gbk", "狗"),
        ("gb18030", "gb18030", "猫"),
        ("Shift_JIS", "cp932", "①犬"),
        ("big5", "big5", "貓"),
        ("euc-kr", "cp949", "고양이"),
        ("windows-1251", "cp1251", "кот"),
        ("ISO-8859-1", "latin-1", "chaîne"),
        ("utf-16", "utf-16", "猫"),
        ("UTF-8", "utf-8-sig", "猫"),
        ("UTF-16", "utf-8", "猫"),  # as .NET's StringWriter says of any text
    ],
)
def test_xml_is_read_in_the_encoding_that_it_declares(declared: str, codec: str, name: str) -> None:
    assert _name(parse_xml(XML.format(declared, name).encode(codec))) == name


def _name(root: object) -> object:
    return root.find("object").text_of("name")  # type: ignore[attr-defined]


def test_xml_in_another_encoding_than_declared_is_told_and_can_be_named(tmp_path: Path) -> None:
    write(tmp_path / "JPEGImages/a.jpg", "pixels")
    write(tmp_path / "Annotations/a.xml", XML.format("utf-8", "苹果").encode("gbk"))
    [(code, message)] = rejects(read_items(VocFormat(), tmp_path)[1])
    assert code == "bad_annotation"
    assert "line 3 is not UTF-8" in message
    assert "--encoding" in message
    _, items = read_items(VocFormat(), tmp_path, encoding="gbk")
    assert fields_by_image(items)["a.jpg"]["boxes"][0]["class"] == "苹果"


def test_stems_with_blanks_are_whole(tmp_path: Path) -> None:
    for stem in ("my cat 1", "dog"):
        write(tmp_path / f"JPEGImages/{stem}.jpg", "pixels")
        write(tmp_path / f"Annotations/{stem}.xml", XML.format("utf-8", "x"))
    write(tmp_path / "ImageSets/Main/train.txt", "my cat 1  1\n\ndog -1\n")
    _, items = read_items(VocFormat(), tmp_path)
    assert {item.fields["split"] for item in items} == {"train"}
    assert len(items) == 2


@pytest.mark.parametrize("name", ["nonsense", "rot13", "base64", "idna", "punycode", "hex"])
def test_what_is_no_encoding_of_texts_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"--encoding.*is no encoding"):
        ManifestConfig(encoding=name)


def test_names_of_encodings_are_those_of_python() -> None:
    assert [ManifestConfig(encoding=name, input=("a",)).encoding for name in ("UTF8", "latin1", "GB2312", "Auto")] == [
        "utf-8",
        "iso8859-1",
        "gb2312",
        "auto",
    ]
