"""What is cut out of texts before they are shown."""

from __future__ import annotations

import json

import pytest

from beam_tfrecord.core.public_text import public_text
from beam_tfrecord.errors import ConfigError, ImageError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://h/a.jpg?X-Goog-Signature=abc&b=c", "https://h/a.jpg"),
        ("https://h/list.csv?sig=abc:12", "https://h/list.csv:12"),
        ("--input https://h/a?sig=x: there is no such file", "--input https://h/a: there is no such file"),
        ("reading 'http://h/a?s=1' failed, then \"https://b/c?d=e\".", "reading 'http://h/a' failed, then \"https://b/c\"."),
        ("https://h/a?se=2026-01-01T00:00:00Z&sig=a,b;c:12", "https://h/a:12"),
        ("https://h/my file's.csv?sig=x:4: a bad row", "https://h/my file's.csv:4: a bad row"),
        ("https://h/a: no column (did you mean 'b'?); see", "https://h/a: no column (did you mean 'b'?); see"),
        ("ftp://me:pa55@h/a.jpg", "ftp://h/a.jpg"),
        ("HTTPS://me:pa55@h:1/a?b", "HTTPS://h:1/a"),
        ("https://console.cloud.google.com/j?project=a-b; x", "https://console.cloud.google.com/j?project=a-b; x"),
        ("https://console.cloud.google.com/x?project=a&sig=b", "https://console.cloud.google.com/x"),
        ("https://evil/console.cloud.google.com/x?project=a", "https://evil/console.cloud.google.com/x"),
        ("gs://b/what?.jpg", "gs://b/what?.jpg"),
        ("gs://b@c/d", "gs://b@c/d"),
        ("photos/what?.jpg and a@b", "photos/what?.jpg and a@b"),
    ],
)  # fmt: skip
def test_addresses_lose_what_gives_access(text: str, shown: str) -> None:
    assert public_text(text) == shown


def test_json_stays_json() -> None:
    values = {"a": "https://h/x?sig=1", "b": ["http://u:p@h/y?z=2", "https://h/ü?q"], "c": 1}
    assert json.loads(public_text(json.dumps(values))) == {
        "a": "https://h/x",
        "b": ["http://h/y", "https://h/ü"],
        "c": 1,
    }


def test_errors_tell_no_signature_whatever_their_message() -> None:
    assert str(ConfigError("https://h/a?sig=x: no")) == "https://h/a: no"
    assert ImageError("missing_file", "https://h/a?sig=x is gone").message == "https://h/a is gone"
