from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.storage import Glob, escape_glob, has_glob, join, name_of, parent, public_uri, scheme_of
from beam_tfrecord.storage.uris import bucket_and_name

NAMES = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("uri", "scheme"),
    [
        ("gs://bucket/x", "gs"),
        ("HTTPS://host/x", "https"),
        ("custom+fs.2://x", "custom+fs.2"),
        ("file:///tmp/x", ""),
        ("/tmp/x", ""),
        ("x", ""),
        ("C:/windows", ""),
        ("folder/gs://not", ""),
        ("2fa://x", ""),
        ("", ""),
    ],
)
def test_the_scheme_of_a_uri(uri: str, scheme: str) -> None:
    assert scheme_of(uri) == scheme


@pytest.mark.parametrize(
    ("base", "path", "joined"),
    [
        ("photos", "a.jpg", "photos/a.jpg"),
        ("photos/", "a.jpg", "photos/a.jpg"),
        ("/", "a.jpg", "/a.jpg"),
        ("", "a.jpg", "a.jpg"),
        ("photos", "/abs/a.jpg", "/abs/a.jpg"),
        ("photos", "gs://b/a.jpg", "gs://b/a.jpg"),
        ("gs://b", "/abs/a.jpg", "/abs/a.jpg"),
        ("photos", "../a.jpg", "photos/../a.jpg"),
        ("gs://b", "a.jpg", "gs://b/a.jpg"),
        ("gs://b/", "c%20d #1?.jpg", "gs://b/c%20d #1?.jpg"),
        ("gs://b/manifests", "../images/a.jpg", "gs://b/images/a.jpg"),
        ("gs://b/m", "./a.jpg", "gs://b/m/a.jpg"),
        ("gs://b/m", "..", "gs://b/"),
        ("gs://b/m/n", "../o/", "gs://b/m/o/"),
        ("gs://b/m", "a..b/.c.jpg", "gs://b/m/a..b/.c.jpg"),
        ("az://account/box/m", "../o/a.jpg", "az://account/box/o/a.jpg"),
        ("az://account/box", "a.jpg", "az://account/box/a.jpg"),
        ("https://h/data", "a b#1?%20.jpg", "https://h/data/a%20b%231%3F%2520.jpg"),
        ("https://h/data?sig=1", "ü.jpg", "https://h/data/%C3%BC.jpg"),
    ],
)
def test_joining(base: str, path: str, joined: str) -> None:
    assert join(base, path) == joined


@pytest.mark.parametrize("path", ["../../a.jpg", "../..", "x/../../../a.jpg"])
def test_joining_never_leaves_a_bucket(path: str) -> None:
    with pytest.raises(ValueError, match="leads out of gs://b/"):
        join("gs://b/m", path)


@given(NAMES)
def test_joined_names_stay_literal(name: str) -> None:
    segments = name.split("/")
    if "://" in name or segments[0] == "" or {".", ".."} & set(segments):
        return
    assert join("gs://bucket/folder", name) == "gs://bucket/folder/" + name
    assert bucket_and_name("gs://bucket/folder/" + name) == ("bucket", "folder/" + name)


@pytest.mark.parametrize(
    ("uri", "folder", "name"),
    [
        ("gs://b/a/x.jpg", "gs://b/a", "x.jpg"),
        ("gs://b/x.jpg", "gs://b", "x.jpg"),
        ("gs://b", "gs://b", ""),
        ("gs://b/a/", "gs://b", "a"),
        ("/tmp/x", "/tmp", "x"),
        ("/x", "/", "x"),
        ("x", ".", "x"),
        ("a/x?y#z", "a", "x?y#z"),
        ("https://h/a/x.jpg?sig=a/b", "https://h/a", "x.jpg"),
        ("gs://b/a/x?y", "gs://b/a", "x?y"),
    ],
)
def test_the_parts_of_a_uri(uri: str, folder: str, name: str) -> None:
    assert (parent(uri), name_of(uri)) == (folder, name)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://h/a.jpg?X-Goog-Signature=secret&x=1", "https://h/a.jpg"),
        ("https://user:password@h/a.jpg", "https://h/a.jpg"),
        ("HTTP://user@h:80/a@b.jpg?q", "HTTP://h:80/a@b.jpg"),
        ("https://h?secret", "https://h"),
        ("hdfs://user:pw@namenode:9000/a.jpg", "hdfs://namenode:9000/a.jpg"),
        ("gs://bucket/what?.jpg", "gs://bucket/what?.jpg"),
        ("s3://bucket/me@home.jpg", "s3://bucket/me@home.jpg"),
        ("photos/what?@.jpg", "photos/what?@.jpg"),
        ("https://h/a b.jpg", "https://h/a b.jpg"),
    ],
)
def test_what_may_be_shown_of_a_uri(uri: str, shown: str) -> None:
    assert public_uri(uri) == shown


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("a/*.jpg", ["a/x.jpg", "a/.jpg", "a/é.jpg"], ["a/x.jpeg", "a/b/x.jpg", "xa/x.jpg", "a/x.jpg/", "a/x.jpg\n"]),
        ("a?c", ["abc", "a.c", "aéc", "a\nc"], ["ac", "a/c", "abbc"]),
        ("**/x", ["x", "a/x", "a/b/x"], ["ax", "a/bx", "x/a"]),
        ("a/**/x", ["a/x", "a/b/x", "a/b/c/x"], ["ax", "a/bx", "x"]),
        ("a/**", ["a/x", "a/b/x", "a/"], ["a", "b/a/x"]),
        ("**.jpg", ["x.jpg", "a/b.jpg"], ["x.png"]),
        ("a**z", ["az", "abz", "a/b/z"], ["z"]),
        ("[ab]x", ["ax", "bx"], ["cx", "x", "abx"]),
        ("[!ab]x", ["cx", "!x"], ["ax", "/x", "x"]),
        ("[a-c]", ["a", "b", "c"], ["-", "d"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[]x]", ["]", "x"], ["[]x]", "[", ""]),
        ("[!]]", ["x"], ["]"]),
        ("[^a]", ["^", "a"], ["b"]),
        ("[\\d]", ["\\", "d"], ["1"]),
        ("[z-a]", [], ["a", "z", "-"]),
        ("x[1", ["x[1"], ["x1"]),
        ("[[]1]", ["[1]"], ["1"]),
        ("a[/]b", [], ["a/b"]),
        ("[&&~|]", ["&", "~", "|"], ["x"]),
        ("a+(b)$.{1}", ["a+(b)$.{1}"], ["aab"]),
        ("", [""], ["a"]),
    ],
)
def test_what_globs_match(pattern: str, matching: list[str], others: list[str]) -> None:
    assert [name for name in matching if not Glob(pattern).matches(name)] == []
    assert [name for name in others if Glob(pattern).matches(name)] == []


@given(st.text("ab*?[]!-.", max_size=8), st.text("ab*?[]!-.", max_size=6))
def test_within_a_folder_globs_are_those_of_fnmatch(pattern: str, name: str) -> None:
    if "**" not in pattern:
        assert Glob(pattern).matches(name) == fnmatch.fnmatchcase(name, pattern)


@given(
    st.lists(st.sampled_from(["**", "*", "a", "b", "a*", "?"]), min_size=1, max_size=5),
    st.lists(st.sampled_from(["a", "b", "ab", "c"]), min_size=1, max_size=5),
)
def test_folders_are_crossed_by_two_stars_only(pattern: list[str], name: list[str]) -> None:
    if pattern[-1] == "**":
        pattern = [*pattern, "*"]
    assert Glob("/".join(pattern)).matches("/".join(name)) == matches_by_segments(pattern, name)


@given(NAMES)
def test_an_escaped_name_matches_itself_only(name: str) -> None:
    assert Glob(escape_glob(name)).matches(name)
    assert not Glob(escape_glob(name)).matches(name + "x")
    assert Glob(name).literal_prefix == name[: len(Glob(name).literal_prefix)]
    assert Glob(name).is_literal == (Glob(name).literal_prefix == name)


def test_web_addresses_have_no_globs() -> None:
    assert has_glob("gs://b/*.jpg")
    assert has_glob("photos/[1].jpg")
    assert not has_glob("https://h/a.jpg?x[]=*")
    assert not has_glob("photos/a.jpg")


def matches_by_segments(pattern: list[str], name: list[str]) -> bool:
    """Globs once more, by trying everything."""
    if not pattern or not name:
        return not pattern and not name
    if pattern[0] == "**":
        return any(matches_by_segments(pattern[1:], name[skip:]) for skip in range(len(name) + 1))
    return fnmatch.fnmatchcase(name[0], pattern[0]) and matches_by_segments(pattern[1:], name[1:])
