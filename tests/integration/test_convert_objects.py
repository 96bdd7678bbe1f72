"""Whole conversions where manifest, images and output lie in object stores, on good connections and on bad ones."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import beam_tfrecord
from beam_tfrecord.conversion.job import clear_output, prepare_job
from beam_tfrecord.conversion.writing.batches import EncodedBatch
from beam_tfrecord.conversion.writing.staged_file import StagedShardFile
from beam_tfrecord.conversion.writing.staging import staged_shard
from beam_tfrecord.conversion.writing.statistics import ShardStatistics
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import RetryPolicy, Storage, StorageOptions
from beam_tfrecord.transforms.dataset import ConvertDataset
from beam_tfrecord.transforms.running import make_options, make_pipeline, run_watched
from pipelines.main import main
from tests.conftest import ROOT
from tests.emulators import Emulator
from tests.fault_proxy import FaultProxy, fault_proxy
from tests.integration.test_storage_objects import lead_to
from tests.samples import HTML_ERROR_PAGE, class_folders, draw_shape, jpeg, truncated, write_files
from tests.waiting import PATIENCE, wait_until

PATIENT = StorageOptions(connections=16, retry=RetryPolicy(attempts=12, first_wait=0.002, longest_wait=0.05))
NAMES = (
    "plain.jpg",
    "with space.jpg",
    "hash#1.jpg",
    "what?.jpg",
    "100%.jpg",
    "%41.jpg",
    "[1].jpg",
    "größe-日本語.jpg",
    "a+b&c=d;e.jpg",
)
FOLDER = "in put#1"  # of the inputs, at each place
Files = dict[str, bytes]


# ---------------------------------------------------------------------------------------------------------------------
# The same collection in four kinds of manifest. Two of its images are damaged, and one is listed but not there.


def _images() -> Files:
    images = {
        name: jpeg(draw_shape("circle" if number % 2 else "square", number, 40, 24).image)
        for number, name in enumerate(NAMES)
    }
    return {**images, "cut #.jpg": truncated(images["plain.jpg"]), "page?.jpg": HTML_ERROR_PAGE}


def _csv() -> Files:
    lines = ["image,label", *(f"pictures/{name},{'xy'[len(name) % 2]}" for name in [*_images(), "gone [2].jpg"])]
    return {"data 1.csv": "\n".join(lines).encode()} | {f"pictures/{name}": data for name, data in _images().items()}


def _folder() -> Files:
    return {f"set/{'cat #' if len(name) % 2 else 'dög'}/{name}": data for name, data in _images().items()}


def _coco() -> Files:
    names = [*_images(), "gone [2].jpg"]
    document = {
        "images": [{"id": n, "file_name": name, "width": 40, "height": 24} for n, name in enumerate(names)],
        "annotations": [
            {"id": n, "image_id": n, "category_id": 1 + n % 2, "bbox": [2, 3, 20 + n, 10]} for n in range(len(names))
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dög"}],
    }
    return {"instances #1.json": json.dumps(document).encode()} | _images()


def _archive() -> Files:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in _folder().items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return {"all of it #1.zip": buffer.getvalue()}


COLLECTIONS: Mapping[str, tuple[Callable[[], Files], str]] = {
    "csv": (_csv, "data 1.csv"),
    "folder": (_folder, "set"),
    "coco": (_coco, "instances #1.json"),
    "archive": (_archive, "all of it #1.zip"),
}
OPTIONS = {"splits": "train=0.7,test=0.3", "num_shards": "train=3,test=1", "max_rejects": "50%", "index": True}
REJECTED = {"truncated_image": 1, "not_an_image": 1}


@dataclass(frozen=True)
class Places:
    """Where a conversion has its inputs, its images and its output."""

    inputs: str
    images: str
    output: str

    def options(self, kind: str) -> dict[str, Any]:
        own = {"images": self.images} if kind in ("csv", "coco") else {}
        return {"input": f"{self.inputs}/{COLLECTIONS[kind][1]}", "output": self.output, **own, **OPTIONS}


def put(storage: Storage, root: str, files: Files) -> str:
    """Upload the files of a collection; the folder that they are in."""
    for name, data in files.items():
        storage.write_bytes(f"{root}/{FOLDER}/{name}", data)
    return f"{root}/{FOLDER}"


def convert(places: Places, kind: str, before_run: Callable[[], None] = lambda: None) -> dict[str, int]:
    """Convert, with short waits between tries; the counters that the engine shows in the end."""
    config = ConvertConfig.from_options(places.options(kind))
    storage = Storage(PATIENT)
    job = prepare_job(config, storage)
    clear_output(job, storage)
    pipeline = make_pipeline(make_options([]), job.config)
    _ = pipeline | "ConvertDataset" >> ConvertDataset(job, storage)
    before_run()
    result = run_watched(pipeline)
    counters: Counter[str] = Counter()
    for metric in result.metrics().query()["counters"]:
        counters[metric.key.metric.name] += metric.committed
    return dict(counters)


def published(storage: Storage, places: Places) -> Files:
    """All that lies below the output, hidden or not, with the names of the places taken out."""
    found = {}
    for info in storage.walk(places.output):
        data = storage.read(info.uri)
        for place, word in ((places.images, "IN"), (places.inputs, "IN"), (places.output, "OUT")):
            data = data.replace(place.encode(), word.encode())
        if info.uri.endswith("/report.html"):  # its tables shorten places that are long
            data = b"".join(line for line in data.splitlines(keepends=True) if b"<bdi" not in line)
        found[info.uri.removeprefix(f"{places.output}/")] = data
    return found


@pytest.fixture(scope="module")
def local_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Files]:
    """What a run on the local disk publishes, by kind of manifest."""
    runs = {}
    for kind, (make, _) in COLLECTIONS.items():
        root = tmp_path_factory.mktemp(kind)
        write_files(root / FOLDER, make())
        places = Places(f"{root}/{FOLDER}", f"{root}/{FOLDER}", f"{root}/shapes")
        convert(places, kind)
        runs[kind] = published(Storage(), places)
        assert {".staging", "dataset_info.json"}.intersection(runs[kind]) == {"dataset_info.json"}
        assert sum(name.endswith(".tfrecord") for name in runs[kind]) == 4
    return runs


# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["gs", "s3"], scope="module")
def server(request: pytest.FixtureRequest) -> Emulator:
    """Each of the emulators."""
    found: Emulator = request.getfixturevalue({"gs": "gcs_server", "s3": "s3_server"}[request.param])
    return found


@pytest.fixture
def proxy(server: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """A proxy before the server, on the way of everything; it passes all on until a test changes that."""
    with fault_proxy(server.endpoint, seed=11, share=0) as running:
        lead_to(server, running.endpoint, monkeypatch)
        yield running


def check_same(found: Files, expected: Files) -> None:
    assert sorted(found) == sorted(expected)
    assert [name for name in sorted(found) if found[name] != expected[name]] == []


@pytest.mark.parametrize(
    "kind", [kind if kind in ("csv", "archive") else pytest.param(kind, marks=pytest.mark.slow) for kind in COLLECTIONS]
)
def test_a_tenth_of_all_answers_is_spoiled_and_the_bytes_are_those_of_a_local_run(
    server: Emulator, proxy: FaultProxy, local_runs: dict[str, Files], kind: str
) -> None:
    root = f"{server.scheme}://{server.new_bucket()}"
    folder = put(Storage(PATIENT), root, COLLECTIONS[kind][0]())
    places = Places(folder, folder, f"{root}/shapes")
    proxy.share = 0.1
    counters = convert(places, kind)
    assert sum(proxy.spoiled.values()) >= 5
    assert counters["read_retries"] + counters["write_retries"] > 0
    proxy.share = 0
    check_same(published(Storage(PATIENT), places), local_runs[kind])
    rejected = {name.removeprefix("rejected_"): n for name, n in counters.items() if name.startswith("rejected_")}
    assert rejected == {**REJECTED, **({"missing_file": 1} if kind in ("csv", "coco") else {})}


def test_every_retry_is_counted_by_the_engine(
    server: Emulator, proxy: FaultProxy, local_runs: dict[str, Files]
) -> None:
    bucket = server.new_bucket()
    root = f"{server.scheme}://{bucket}"
    folder = put(Storage(PATIENT), root, _csv())
    places = Places(folder, folder, f"{root}/shapes")
    proxy.faults = ("unavailable", "too_many", "reset")  # after each of them the same request comes again

    def spoil() -> None:
        proxy.share = 0.3

    counters = convert(places, "csv", spoil)
    # Google's client also asks about the bucket, aside, and never again when that fails.
    spoiled = [path for path in proxy.spoiled_paths if not urlsplit(path).path.endswith(f"/b/{bucket}")]
    assert len(spoiled) >= 10
    assert counters["read_retries"] + counters["write_retries"] == len(spoiled)
    assert min(counters["read_retries"], counters["write_retries"]) > 0
    proxy.share = 0
    check_same(published(Storage(PATIENT), places), local_runs["csv"])


def test_manifest_images_and_output_at_three_places(
    gcs_server: Emulator,
    s3_server: Emulator,
    local_runs: dict[str, Files],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with fault_proxy(gcs_server.endpoint, seed=5) as gcs, fault_proxy(s3_server.endpoint, seed=6) as s3:
        lead_to(gcs_server, gcs.endpoint, monkeypatch)
        lead_to(s3_server, s3.endpoint, monkeypatch)
        storage = Storage(PATIENT)
        write_files(tmp_path / FOLDER, _csv())
        images = put(storage, f"gs://{gcs_server.new_bucket()}", _csv())
        places = Places(f"{tmp_path}/{FOLDER}", images, f"s3://{s3_server.new_bucket()}/shapes")
        convert(places, "csv")
        assert gcs.spoiled
        assert s3.spoiled
        gcs.share = s3.share = 0
        # The manifest does not lie where the images are, so that other files are told of there.
        check_same(without_accounts(published(storage, places)), without_accounts(local_runs["csv"]))


def without_accounts(found: Files) -> Files:
    """The files of a dataset, with nothing told of what lay in the inputs."""
    told = json.loads(found["conversion.json"])
    told.pop("inputs")
    return {**found, "conversion.json": json.dumps(told).encode()}


# ---------------------------------------------------------------------------------------------------------------------
# A permission that is missing


@pytest.mark.parametrize("place", ["images", "output"])
def test_a_bucket_that_may_not_be_used_ends_the_job_with_one_line(
    server: Emulator, proxy: FaultProxy, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    write_files(tmp_path, _csv())
    bucket = server.new_bucket()
    proxy.forbidden = {bucket}
    uri = f"{server.scheme}://{bucket}"
    images, output = (uri, f"{tmp_path}/out") if place == "images" else (str(tmp_path), f"{uri}/out")
    assert main(["convert", "--input", f"{tmp_path}/data 1.csv", "--images", images, "--output", output]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith(f"error: {uri}: ")
    assert ("credentials" if server.scheme == "gs" else "s3:GetObject") in line
    assert len(proxy.paths) < 40, "it goes on asking"
    assert not list(tmp_path.glob("out/*.tfrecord*"))


def test_a_shard_that_fails_uploads_nothing_of_what_it_had(server: Emulator, proxy: FaultProxy) -> None:
    bucket = server.new_bucket()
    output = f"{server.scheme}://{bucket}/out"
    storage = Storage(PATIENT)
    config = ConvertConfig.from_options({"input": "in", "output": output})
    reject = Finding("a.csv:2", "a.jpg", "image", "missing_file", "a.jpg does not exist")

    def fail_in_the_middle() -> None:
        with StagedShardFile(staged_shard(output, "train", 0), storage, config, ShardStatistics(())) as shard:
            shard.add(EncodedBatch([0], 1, rejects=[reject]))
            proxy.paths.clear()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_in_the_middle()
    # One to delete what might be there. (Google's client also asks about the bucket.)
    assert len([path for path in proxy.paths if not path.partition("?")[0].endswith(f"/b/{bucket}")]) == 1
    assert list(storage.walk(output)) == []


# ---------------------------------------------------------------------------------------------------------------------
# A kill in the middle


def start(source: Path, output: str, *flags: str) -> subprocess.Popen[str]:
    line = ["convert", "--input", str(source), "--output", output, "--num_shards", "6", "--read_threads", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines.main", *line, *flags],
        cwd=ROOT,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )


WRITTEN_WHEN = {
    "writing": re.compile(r"/\.staging/shards/.*\.info\.json$"),
    "publishing": re.compile(r"shapes/[^/]*\.tfrecord$"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "flags"), [("writing", ["--resume"]), ("publishing", [])])
def test_a_kill_leaves_nothing_behind_once_the_command_ran_again(
    server: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moment: str, flags: list[str]
) -> None:
    write_files(tmp_path / "photos", class_folders(12))
    local = tmp_path / "shapes"
    beam_tfrecord.convert(str(tmp_path / "photos"), local, num_shards=6, read_threads=1)
    with fault_proxy(server.endpoint, share=0) as proxy:
        lead_to(server, server.endpoint, monkeypatch)
        output = f"{server.scheme}://{server.new_bucket()}/shapes"
        storage = Storage(PATIENT)

        def staged() -> list[str]:
            return [name for name in storage.list_folder(f"{output}/.staging/shards") if name.endswith(".info.json")]

        # The first two files of the kind that is written then come to the store, and none after them.
        written: set[str] = set()

        def is_beyond_two(name: str) -> bool:
            if WRITTEN_WHEN[moment].search(name) and len(written) < 2:
                written.add(name)
            return bool(WRITTEN_WHEN[moment].search(name)) and name not in written

        proxy.is_held = is_beyond_two
        lead_to(server, proxy.endpoint, monkeypatch)
        process = start(tmp_path / "photos", output)
        lead_to(server, server.endpoint, monkeypatch)
        wait_until(lambda: proxy.holding.is_set() or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL, said
        wait_until(lambda: len(staged()) >= 2)  # what the proxy had passed on
        if moment == "publishing":
            wait_until(lambda: sum(name.endswith(".tfrecord") for name in storage.list_folder(output)) == 2)
        assert not storage.is_file(f"{output}/dataset_info.json")
        finished = {name.removesuffix("info.json") for name in staged()}
        proxy.is_held = lambda name: False
        proxy.let_go.set()
        proxy.paths.clear()
        lead_to(server, proxy.endpoint, monkeypatch)
        again = start(tmp_path / "photos", output, *flags)
        _, said = again.communicate(timeout=PATIENCE)
        assert again.returncode == 0, said
        # A staged file gets its name, which has that of the attempt in it, by a copy of one that has more behind it.
        asked = " ".join(unquote(path) for path in proxy.paths)
        written_again = {name for name in finished if re.search(rf"shards/{re.escape(name)}\w+\.tfrecord\.", asked)}
        assert written_again == (set() if flags else finished)
    lead_to(server, server.endpoint, monkeypatch)
    found, expected = (
        published(storage, Places(f"{tmp_path}/photos", f"{tmp_path}/photos", place)) for place in (output, str(local))
    )
    found["conversion.json"] = found["conversion.json"].replace(b'"resume": true', b'"resume": false')
    check_same(found, expected)
