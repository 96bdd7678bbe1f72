from __future__ import annotations

import pytest

from beam_tfrecord.manifests.text import xml_tree
from beam_tfrecord.manifests.text.xml_tree import parse_xml


def test_elements_have_texts_children_and_lines() -> None:
    root = parse_xml(b"<a>\n <b> x&amp;<!-- no -->y </b>\n <c><b>deep</b></c>\n <b>2</b>\n</a>")
    assert (root.name, root.line) == ("a", 1)
    assert [(child.name, child.line) for child in root.children] == [("b", 2), ("c", 3), ("b", 4)]
    assert root.find("b").text.strip() == "x&y"
    with pytest.raises(ValueError, match="line 4: <a> has <b> twice"):
        root.text_of("b")
    assert root.text_of("d") is None
    assert len(root.all("b")) == 2
    assert root.find("c") is root.children[1]


def test_the_stated_encoding_is_followed() -> None:
    assert parse_xml('<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1")).text == "é"
    assert parse_xml("<a>é</a>".encode("utf-16")).text == "é"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "line 1"),
        (b"<a>\n<b></a>", "line 2: mismatched tag"),
        (b"<a>\n\n&what;</a>", "line 3: undefined entity"),
        (b"no xml", "line 1"),
        (b"\xff\xfe\xfd", "line 1"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', "unknown encoding"),
        (b"<a>" * 200 + b"</a>" * 200, "nested"),
    ],
)
def test_what_is_no_xml_is_told_with_its_line(data: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_xml(data)


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY % a SYSTEM "http://localhost/x.dtd">%a;',
    ],
)
def test_entities_are_refused_before_they_do_anything(declaration: str) -> None:
    with pytest.raises(ValueError, match="entity 'a' is declared"):
        parse_xml(f"<!DOCTYPE x [{declaration}]><x>&a;</x>".encode())


def test_an_external_dtd_is_not_read() -> None:
    assert parse_xml(b'<!DOCTYPE a SYSTEM "file:///nowhere.dtd"><a>x</a>').text == "x"


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_tree, "MAX_BYTES", 10)
    with pytest.raises(ValueError, match="20 bytes"):
        parse_xml(b"<a>0123456789012</a>")
