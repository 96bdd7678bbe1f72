"""Pictures that stand in a manifest themselves, as data URIs (RFC 2397) or base64 (RFC 4648), in place of a path."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from beam_tfrecord.core.elements import Member
from beam_tfrecord.manifests.text.json_text import decode_json

JSON_PICTURE = "json_picture"  # the method of a Member that is a line of JSON; its last name is that of the column
_DATA_URI = re.compile(r"data:[^,]{0,200},", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]+={0,2}")
# How files of JPEG, PNG, GIF, WebP, TIFF, BMP, and of the family of HEIC and AVIF begin.
_BEGINNINGS = ("/9j/", "_9j_", "iVBORw0KGgo", "R0lGOD", "UklGR", "SUkq", "TU0A", "Qk", "AAAA")
_SHORTEST = 80  # characters: no whole picture takes fewer
_LONGEST_PATH = 4096


@dataclass(frozen=True, slots=True)
class InlineImage:
    """The cell of a picture that stands in its manifest.

    name: what it is called. filename: what the record tells as its path, where that is another one.
    """

    name: str
    member: Member
    filename: str = ""


def holds_picture(cell: Any) -> bool:
    """Whether a cell is a picture and no path: a data URI, or base64 that begins as a picture does or is no path."""
    if not isinstance(cell, str) or len(cell) < 5:
        return False
    if _DATA_URI.match(cell):
        return True
    text = cell.strip()
    is_likely = len(text) > _LONGEST_PATH or (len(text) >= _SHORTEST and text.startswith(_BEGINNINGS))
    return is_likely and _BASE64.fullmatch("".join(text.split())) is not None


def decode_picture(text: str) -> bytes:
    """The bytes of a picture. What the URI says of their type is not looked at. Raises ValueError."""
    found = _DATA_URI.match(text)
    if found is not None:
        body = text[found.end() :]
        if not re.search(r";\s*base64\s*,$", found[0], re.IGNORECASE):
            return unquote_to_bytes(body)
        text = unquote_to_bytes(body).decode("latin-1") if "%" in body else body
    text = "".join(text.split()).translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"it is no base64: {error}") from None


def picture_in_line(line: bytes, column: str) -> bytes:
    """The bytes of the picture in a column of a line of JSON. Raises ValueError."""
    value = decode_json(line.decode("utf-8"))
    cell = value.get(column) if isinstance(value, dict) else None
    if not isinstance(cell, str):
        raise ValueError("the line is not what it was when the manifest was read")
    return decode_picture(cell)
