"""JSON Lines whose image cells are the pictures themselves."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord.manifests.text.inline_images import decode_picture, holds_picture
from tests.end_to_end.datasets import by_name, conversion, converted, findings
from tests.samples import jpeg, png

PNG = png(Image.new("RGB", (20, 10), (200, 30, 40)))
JPEG = jpeg(Image.new("RGB", (30, 20), (10, 200, 40)))
PNG_TEXT, JPEG_TEXT = base64.b64encode(PNG).decode(), base64.b64encode(JPEG).decode()


def lines() -> list[bytes]:
    """What the pictures are is told by their bytes; a URI may say something else, or nothing."""
    cells: list[Any] = [
        f"data:image/jpeg;base64,{PNG_TEXT}",
        JPEG_TEXT,
        base64.urlsafe_b64encode(JPEG).decode().rstrip("="),
        "data:;base64," + "\n".join(PNG_TEXT[place : place + 76] for place in range(0, len(PNG_TEXT), 76)),
        "data:image/png," + "".join(f"%{byte:02x}" for byte in PNG),
    ]
    texts = [json.dumps({"image": cell, "label": "é"}, ensure_ascii=False) for cell in cells]
    texts[1] = texts[1].replace("/", "\\/")  # as PHP writes it
    return [text.encode() + b"\n" for text in texts]


STORINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain": ("a.jsonl", bytes),
    "with a mark": ("a.jsonl", lambda data: b"\xef\xbb\xbf" + data),
    "gzip": ("a.jsonl.gz", gzip.compress),
}


@pytest.mark.parametrize("storing", STORINGS)
def test_pictures_in_lines_are_read_by_their_bytes(tmp_path: Path, storing: str) -> None:
    name, store = STORINGS[storing]
    damaged = b'{"image": "no\0pe.jpg", "label": "x"}\n'  # characters that are taken out move no other line
    (tmp_path / name).write_bytes(store(b"".join([damaged, *lines()])))
    converted(tmp_path / name, tmp_path / "out", max_rejects=1)
    records = by_name(tmp_path / "out")
    assert {name: record["image/encoded"] for name, record in records.items()} == {
        f"a.jsonl{'.gz' * (storing == 'gzip')}:{number}": [data]
        for number, data in enumerate([PNG, JPEG, JPEG, PNG, PNG], start=2)
    }
    assert {name for record in records.values() for name in record["image/class/text"]} == {"é".encode()}
    assert conversion(tmp_path / "out")["rejected"]["total"] == 1


def test_what_is_no_picture_is_rejected_with_its_line(tmp_path: Path) -> None:
    cells = [f"data:image/png;base64,{PNG_TEXT}", "data:image/png;base64,====!", "data:;base64,", "data:,hello"]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"image": cell}) + "\n" for cell in cells))
    converted(path, tmp_path / "out", max_rejects=3)
    found = [(item["origin"].rpartition("/")[2], item["code"]) for item in findings(tmp_path / "out", "rejects")]
    assert found == [("a.jsonl:2", "corrupt_image"), ("a.jsonl:3", "empty_file"), ("a.jsonl:4", "not_an_image")]


def test_a_table_of_text_says_where_such_pictures_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'image,label\n"data:image/png;base64,{PNG_TEXT}",x\n{JPEG_TEXT},x\na.png,x\n')
    (tmp_path / "a.png").write_bytes(PNG)
    converted(path, tmp_path / "out", max_rejects=2)
    messages = [item["message"] for item in findings(tmp_path / "out", "rejects")]
    assert len(messages) == 2
    assert all("JSON Lines" in message and len(message) < 300 for message in messages)


@pytest.mark.parametrize("cell", ["a.jpg", "data.jpg", "/9j/a.jpg", "", "x" * 300, 5, None, "data:x", "Qk" * 20])
def test_paths_are_no_pictures(cell: Any) -> None:
    assert not holds_picture(cell)


def test_padding_and_blanks_make_no_difference() -> None:
    assert decode_picture("aGVsbG8") == decode_picture("aGVs\r\nbG8=") == decode_picture("data:;base64,aGVsbG8%3D")
