"""Signed URLs and passwords in addresses never reach a log, an error or what is published beside the records."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from beam_tfrecord import BeamTfrecordError, prepare
from beam_tfrecord.storage.clients import forget_clients
from pipelines.main import main
from tests.loopback import Answer, Request, Server, serving
from tests.samples import jpeg, noise

SECRET = "X-Goog-Signature=5ec2e7"
Captured = pytest.CaptureFixture[str]


def answer(request: Request) -> Answer:
    """A table at /set.csv whose images lie here as well, all signed; one of them is not there, one is damaged."""
    name = request.path.partition("?")[0]
    server = request.headers["host"]
    if SECRET not in request.path:
        return Answer(403)
    if name == "/set.csv":
        places = [f"http://{server}/{n}.jpg?{SECRET}" for n in ("a", "b", "gone", "damaged")]
        return Answer(body="\n".join(["image,label", *(f"{place},x" for place in places), ""]).encode())
    if name in ("/a.jpg", "/b.jpg"):
        return Answer(body=jpeg(Image.fromarray(noise(16, 16, ord(name[1])))))
    if name in ("/damaged.jpg", "/empty.csv", "/damaged.parquet"):
        return Answer(body=b"" if "empty" in name else b"PAR1 no image")
    return Answer(404)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    with serving(answer) as server:
        yield server
    forget_clients()


def test_a_conversion_of_signed_urls_tells_no_signature(
    server: Server, tmp_path: Path, capsys: Captured, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    place, out = f"{server.url}/set.csv?{SECRET}", tmp_path / "out"
    common = ["--input", place, "--output", str(out), "--max_rejects", "50%"]
    assert main(["convert", *common, "--plan"]) == 0
    assert main(["convert", *common]) == 0
    assert main(["convert", *common, "--overwrite", "--json"]) == 0
    assert main(["verify", str(out)]) == 0
    assert main(["report", str(out)]) == 0
    assert any(SECRET in request.path for request in server.seen)
    told = "".join(capsys.readouterr())
    assert "5ec2e7" not in told
    # At this level urllib3 tells every request; it is not ours to silence, and nobody asks for it by chance.
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("urllib3")]
    assert "5ec2e7" not in "".join(ours)
    written = {
        path.name: path.read_bytes() for path in out.rglob("*") if path.is_file() and ".tfrecord" not in path.name
    }
    assert {"conversion.json", "rejects.jsonl", "report.html", "dataset_info.json"} <= set(written)
    assert [name for name, data in written.items() if b"5ec2e7" in data] == []


@pytest.mark.parametrize(
    ("place", "flags"),
    [
        ("/gone.csv", ()),
        ("/empty.csv", ()),
        ("/damaged.parquet", ()),
        ("/set.csv", ("--format", "coco")),
        ("/set.csv", ("--format", "archive")),
        ("/set.csv", ("--format", "jsonl")),
        ("/set.csv", ("--label_column", "lable")),
        ("/what.xyz", ()),
    ],
)
def test_an_error_about_a_signed_url_tells_no_signature(
    place: str, flags: tuple[str, ...], server: Server, tmp_path: Path, capsys: Captured
) -> None:
    address = server.url.replace("://", "://me:pa55word@") + f"{place}?{SECRET}"
    assert main(["convert", "--input", address, "--output", str(tmp_path / "out"), *flags]) in (1, 2)
    told = "".join(capsys.readouterr())
    assert place in told
    assert "5ec2e7" not in told
    assert "pa55word" not in told
    options = dict(zip((flag.lstrip("-") for flag in flags[::2]), flags[1::2], strict=True))
    with pytest.raises(BeamTfrecordError) as caught:
        prepare(input=address, output=str(tmp_path / "out"), **options)
    assert "5ec2e7" not in str(caught.value)
