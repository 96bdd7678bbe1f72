"""What lies beside the images of a table, told where the command is run in their folder, and from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tests.end_to_end.datasets import conversion, converted
from tests.samples import png


@pytest.mark.parametrize("start", ["", "./", "{}/"])
def test_images_that_no_row_names_and_outputs_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    for number, name in enumerate("abc"):
        (tmp_path / f"{name}.png").write_bytes(png(Image.new("RGB", (8, 8), (number, 0, 0))))
    (tmp_path / "all.csv").write_text("image,label\na.png,x\nb.png,y\nc.png,y\n")
    monkeypatch.chdir(tmp_path)
    place = start.format(tmp_path)
    (tmp_path / "labels.txt").write_text("x\ny\n")
    converted(f"{place}all.csv", Path(f"{place}out"), keys="od", labels=f"{place}labels.txt")
    (tmp_path / "labels.txt").unlink()
    (told,) = conversion(Path(f"{place}out"))["inputs"]
    assert told["surprises"] == []
    assert told["used"]["files"] == {"image": 3, "manifest": 2}
    (tmp_path / "some.csv").write_text("image,label\na.png,x\nb.png,y\n")
    converted(f"{place}some.csv", Path(f"{place}out2"))
    (told,) = conversion(Path(f"{place}out2"))["inputs"]
    assert [surprise["code"] for surprise in told["surprises"]] == ["images_not_named"]
    assert told["named"]["files"]["image that no row names"] == {"count": 1, "example": "c.png"}
    assert told["named"]["files"]["output of this tool"]["count"] == len(list(Path(f"{place}out").iterdir()))


@pytest.mark.parametrize("layout", ["table", "voc"])
def test_the_working_folder_as_input_is_told_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    folder = tmp_path / "in"
    (folder / "images").mkdir(parents=True)
    for number, name in enumerate("ab"):
        (folder / "images" / f"{name}.png").write_bytes(png(Image.new("RGB", (8, 8), (number, 0, 0))))
    if layout == "table":
        (folder / "list.csv").write_text("image,label\na.png,x\nb.png,y\n")
    else:
        (folder / "annotations").mkdir()
        for name in "ab":
            (folder / "annotations" / f"{name}.xml").write_text(
                f"<annotation><filename>{name}.png</filename></annotation>"
            )
    monkeypatch.chdir(folder)
    accounts = []
    for place in (".", str(folder)):
        out = tmp_path / f"out{len(accounts)}"
        converted(place, out)
        (told,) = conversion(out)["inputs"]
        accounts.append({key: told[key] for key in ("found", "used", "named", "surprises")})
    assert accounts[0] == accounts[1]
    assert accounts[0]["used"]["files"]["image"] == 2
    assert accounts[0]["surprises"] == []
