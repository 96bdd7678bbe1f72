"""Where extracted images go."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.tools.extracting.paths import ImagePaths, WantedPaths, clashing_paths, mask_path, safe_path

A, B = b"picture a", b"picture b"


@pytest.mark.parametrize("name", ["a.png", "x/y/ü 画像.jpg", "100%#?*[1].png", ".hidden/..x", "~/a", "-a", "c:d.png"])
def test_safe_names_are_kept(name: str) -> None:
    assert safe_path(name) == f"images/{name}"


@pytest.mark.parametrize(
    "name",
    [
        *("", "/a.png", "../a.png", "a/../../b", "./a", "a//b", "a/", "gs://b/a.png", "file:///a", "a\\b", " a", "a "),
        *("a\nb", "a\0b", "\x7f", "a\u2028b", "\udcff.png", "l" * 201, "ü" * 101, "d/" * 400 + "a"),
        *("by_content/a.png", "By_Content/a.png", "by_content"),
    ],
)
def test_unsafe_names_are_not(name: str) -> None:
    assert safe_path(name) is None
    digest = hashlib.sha256(A).hexdigest()
    assert ImagePaths().path_of(name, A, ".jpg") == f"images/by_content/{digest}.jpg"


@given(st.text())
def test_a_safe_path_stays_below_the_images(name: str) -> None:
    path = safe_path(name)
    if path is not None:
        parts = path.split("/")
        assert parts[0] == "images"
        assert len(parts) > 1
        assert not {"", ".", ".."} & set(parts)
        assert path.encode().decode() == f"images/{name}"


def wanted(*images: tuple[str, bytes]) -> bytes:
    paths = WantedPaths()
    for path, data in images:
        paths.add(path, data)
    return paths.to_bytes()


def clashes(*files: bytes) -> ImagePaths:
    return ImagePaths(clashing_paths(files))


def test_a_path_that_different_images_want_is_given_to_none() -> None:
    paths = clashes(wanted(("images/a", A), ("images/b", A)), wanted(("images/c", A)), wanted(("images/a", B)))
    assert paths.path_of("a", A, "").startswith("images/by_content/")
    assert paths.path_of("a", B, "").startswith("images/by_content/")
    assert paths.path_of("b", A, "") == "images/b"
    assert paths.path_of("c", A, "") == "images/c"


def test_also_within_one_file_of_records() -> None:
    paths = clashes(wanted(("images/a", A), ("images/a", B), ("images/a", A)))
    assert paths.path_of("a", A, "").startswith("images/by_content/")


def test_one_image_may_be_wanted_often() -> None:
    assert clashes(wanted(("images/a", A), ("images/a", A)), wanted(("images/a", A))).path_of("a", A, "") == "images/a"


@pytest.mark.parametrize(
    ("one", "other"), [("a.png", "A.PNG"), ("ü", "u\u0308"), ("straße", "STRASSE"), ("x", "x/y/z")]
)
def test_names_that_some_file_system_takes_for_one_clash(one: str, other: str) -> None:
    paths = clashes(wanted((f"images/{one}", A)), wanted((f"images/{other}", B)))
    assert paths.path_of(one, A, "").startswith("images/by_content/")


def test_a_folder_of_several_images_is_no_clash() -> None:
    paths = clashes(wanted(("images/x/a", A), ("images/x/b", B)), wanted(("images/x/c", A)))
    assert [paths.path_of(f"x/{name}", A, "") for name in "abc"] == ["images/x/a", "images/x/b", "images/x/c"]


def test_without_images_there_are_no_clashes() -> None:
    assert clashing_paths([]) == b""
    assert clashing_paths([b"", wanted()]) == b""


def test_masks_are_called_by_their_content() -> None:
    assert mask_path("semantic", A) == f"masks/semantic/{hashlib.sha256(A).hexdigest()}.png"
