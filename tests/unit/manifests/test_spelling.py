"""Other spellings of a name: which there are, and that exactly one file must be there."""

from __future__ import annotations

import unicodedata

import pytest

from beam_tfrecord.errors import ImageError, RowError
from beam_tfrecord.manifests.text.spelling import Spellings, find_other, other_spellings

E, E_APART = "\u00e9", "e\u0301"


def test_a_plain_name_has_no_other_spelling() -> None:
    for uri in ("a/b.jpg", "/data/a b/c d.jpg", "gs://bucket/a.jpg", "./a.jpg", "图/图.jpg", ""):
        assert other_spellings(uri) == {}, uri


def test_an_address_of_the_web_has_none() -> None:
    assert other_spellings(f"https://host/a\\{E}.jpg") == {}


def test_the_folders_in_front_may_be_called_as_they_are_spelled() -> None:
    found = set(other_spellings(f"/u/{E}/x/{E}.jpg"))
    assert f"/u/{E}/x/{E_APART}.jpg" in found
    assert f"/u/{E_APART}/x/{E_APART}.jpg" in found


def test_backslashes_lead_out_of_folders_where_a_store_knows_no_dots() -> None:
    assert list(other_spellings("gs://b/in/..\\imgs\\a.jpg")) == ["gs://b/imgs/a.jpg"]
    assert list(other_spellings("/in/..\\imgs\\a.jpg")) == ["/in/../imgs/a.jpg"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_one_file_that_is_there_is_found(form: str) -> None:
    there = {unicodedata.normalize(form, f"/in/s{E}d/x{E}.jpg")}
    found = find_other(f"/in/s{E}d\\x{E_APART} .jpg".replace(" .jpg", ".jpg "), there.__contains__)
    assert found is not None
    assert found.uri in there


@pytest.mark.parametrize(
    ("stated", "there"),
    [
        ("/in/a%20b.jpg", "/in/a b.jpg"),
        ("/in/caf%C3%A9%231.jpg", "/in/café#1.jpg"),
        ("gs://b/a%20b\\c%5B1%5D.jpg", "gs://b/a b/c[1].jpg"),
        ("/in/IMG_1.JPG", "/in/IMG_1.jpg"),
        ("/in/img_1.jpg", "/in/IMG_1.JPG"),
        ("/in/Apple_1.jpg", "/in/apple_1.jpg"),
        ("/in/apple_1.jpg", "/in/Apple_1.jpg"),
        ("/in/a%20b.JPG", "/in/a b.jpg"),
    ],
)
def test_names_that_are_percent_encoded_or_in_another_case_are_found(stated: str, there: str) -> None:
    found = find_other(stated, {there}.__contains__, is_image=True)
    assert found is not None
    assert found.uri == there
    assert find_other(stated, {stated.swapcase()[:-1]}.__contains__, is_image=True) is None


@pytest.mark.parametrize("ending", [".ppm", ".dcm", ".TIF", ".jpg"])
def test_a_name_that_lacks_its_ending_is_found_whatever_kind_of_image_it_is(ending: str) -> None:
    found = find_other("/in/a", {f"/in/a{ending}"}.__contains__, is_image=True)
    assert found is not None
    assert found.uri == f"/in/a{ending}"


def test_files_in_two_cases_are_both_named() -> None:
    with pytest.raises(ImageError, match=r"A\.JPG.*a\.JPG"):
        find_other("/in/a.jpg", {"/in/A.JPG", "/in/a.JPG"}.__contains__, is_image=True)


@pytest.mark.parametrize("name", ["/in/100%.jpg", "/in/a%2F..%2Fb.jpg", "/in/a%FFb.jpg", "/in/a%00.jpg", "/in/%zz.jpg"])
def test_what_is_no_percent_encoded_name_stays_as_it_is(name: str) -> None:
    assert other_spellings(name) == {}


def test_two_that_are_there_are_named() -> None:
    there = {f"/in/a/{E}.jpg", f"/in/a/{E_APART}.jpg"}
    with pytest.raises(ImageError, match=r"xe9.*u0301|u0301.*xe9") as caught:
        find_other(f"/in/a\\{E}.jpg", there.__contains__)
    assert caught.value.code == "missing_file"


def test_what_is_listed_is_found_literally_before_otherwise() -> None:
    names = Spellings({E: "one", E_APART: "other"})
    assert (names.find(E), names.find(E_APART), names.find("x")) == ("one", "other", None)
    with pytest.raises(RowError, match="may both be meant"):
        names.find(f" {E}")
