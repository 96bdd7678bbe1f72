"""Dataflow without the cloud: the service is a stub, Cloud Storage an emulator, and the staged pipeline is run here."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apache_beam.internal.gcp import auth
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.dataflow import dataflow_runner
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Bucket, Client

from beam_tfrecord.conversion.writing.progress import PROGRESS
from beam_tfrecord.transforms import running
from pipelines import flex_template
from pipelines.convert import main
from tests.conftest import ROOT
from tests.dataflow_stub import JOB_ID, DataflowStub, dataflow_stub, run_staged
from tests.docs.blocks import blocks, commands
from tests.emulators import Emulator
from tests.loopback import Answer, Request, serving
from tests.samples import class_folders

PROJECT, REGION, IMAGE = "test-project", "europe-west1", "europe-docker.pkg.dev/test-project/images/beam-tfrecord:1"
LINK = f"https://console.cloud.google.com/dataflow/jobs/{REGION}/{JOB_ID}?project={PROJECT}"
OPTIONS = ["--splits", "train=0.8,validation=0.2", "--num_shards", "train=3,validation=1", "--max_rejects", "2"]


@pytest.fixture
def bucket(gcs_server: Emulator, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A bucket with pictures, one of which is damaged."""
    for name, value in gcs_server.environment().items():
        monkeypatch.setenv(name, value)
    # As if Beam had looked for credentials for half a minute and found none.
    monkeypatch.setattr(auth._Credentials, "_credentials_init", True)
    monkeypatch.setattr(auth._Credentials, "_credentials", None)
    client = Client(project=PROJECT, credentials=AnonymousCredentials())
    made: Bucket = client.bucket(gcs_server.new_bucket())
    for name, data in {**class_folders(), "broken/cut.jpg": b"\xff\xd8\xff"}.items():
        made.blob(f"photos/{name}").upload_from_string(data)
    return made


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[DataflowStub]:
    """The stub; Beam asks it without the seconds between its questions."""
    quick = SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(seconds / 100))
    monkeypatch.setattr(dataflow_runner, "time", quick)
    monkeypatch.setattr(running, "POLL_SECONDS", 0.05)
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    before = signal.getsignal(signal.SIGINT)
    with dataflow_stub() as stub:
        yield stub
    signal.signal(signal.SIGINT, before)
    assert stub.errors == []
    assert set(stub.places) <= {(PROJECT, REGION)}


def places(bucket: Bucket) -> list[str]:
    root = f"gs://{bucket.name}"
    return ["--input", f"{root}/photos", "--output", f"{root}/out", *OPTIONS]


def dataflow_flags(bucket: Bucket, service: DataflowStub, *flags: str) -> list[str]:
    # Anonymous: what needs credentials is tested below.
    return [*places(bucket), *job_flags(bucket), "--dataflow_endpoint", service.url, "--no_auth", *flags]


def job_flags(bucket: Bucket) -> list[str]:
    return [
        "--runner=DataflowRunner",
        f"--project={PROJECT}",
        f"--region={REGION}",
        f"--temp_location=gs://{bucket.name}/tmp",
        f"--sdk_container_image={IMAGE}",
        "--experiments=disable_logging_submission_environment",  # saves a second
    ]


def files(bucket: Bucket, folder: str) -> dict[str, bytes]:
    return {
        blob.name.removeprefix(f"{folder}/"): blob.download_as_bytes()
        for blob in bucket.list_blobs(prefix=f"{folder}/")
    }


def staged_pipeline(bucket: Bucket) -> bytes:
    (name,) = [name for name in files(bucket, "tmp") if name.endswith("/pipeline.pb")]
    return files(bucket, "tmp")[name]


# ---------------------------------------------------------------------------------------------------------------------
# Nothing is submitted


def test_a_dry_run_translates_the_graph_and_touches_nothing(
    bucket: Bucket, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """At the real service, without credentials: the network is not asked."""
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    bucket.blob("out/.staging/left").upload_from_string(b"of a run that was stopped")
    before = files(bucket, "out")
    assert main([*places(bucket), *job_flags(bucket), "--dry_run=true"]) == 0
    assert capsys.readouterr().out == "the whole graph was translated for Dataflow; nothing was submitted\n"
    assert files(bucket, "tmp") == {}
    assert files(bucket, "out") == before
    assert main([*places(bucket), *job_flags(bucket), "--dry_run=true", "--json", "--no_wait"]) == 0
    told = {"submitted": False, "template": None, "output": f"gs://{bucket.name}/out"}
    assert json.loads(capsys.readouterr().out) == told


def test_a_template_is_written_and_not_run(
    bucket: Bucket, service: DataflowStub, capsys: pytest.CaptureFixture[str]
) -> None:
    template = f"gs://{bucket.name}/templates/convert"
    assert main(dataflow_flags(bucket, service, "--template_location", template)) == 0
    check_template(template, bucket, service, capsys)


def test_the_launcher_of_a_flex_template_writes_the_job_that_the_service_starts(
    bucket: Bucket, service: DataflowStub, capsys: pytest.CaptureFixture[str]
) -> None:
    """The launcher asks for the job's description as a file, and gives each parameter as --NAME=VALUE."""
    template = f"gs://{bucket.name}/templates/job_object"
    root = f"gs://{bucket.name}"
    parameters = [f"--input={root}/photos/circle,{root}/photos/square", f"--output={root}/out", "--resume=false"]
    service_flags = [f"--template_location={template}", f"--dataflow_endpoint={service.url}", "--no_auth"]
    assert flex_template.main([*parameters, *job_flags(bucket), *service_flags]) == 0
    check_template(template, bucket, service, capsys)


def check_template(template: str, bucket: Bucket, service: DataflowStub, capsys: pytest.CaptureFixture[str]) -> None:
    assert capsys.readouterr().out == f"the template {template} was written; nothing was submitted\n"
    assert service.jobs == []
    (written,) = files(bucket, "templates").values()
    job = json.loads(written)
    assert job["type"] == "JOB_TYPE_BATCH"
    assert job["environment"]["workerPools"][0]["workerHarnessContainerImage"] == IMAGE
    staged = job["environment"]["sdkPipelineOptions"]["options"]["pipelineUrl"]
    assert staged.removeprefix(f"gs://{bucket.name}/tmp/") in files(bucket, "tmp")


@pytest.mark.parametrize("page", ["README.md", "docs/clusters.md"])
def test_the_jobs_of_the_documentation_are_translated(
    page: str, bucket: Bucket, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    bucket.blob("labels.csv").upload_from_string("image,label\nphotos/circle/circle_0.jpg,circle\n")
    variables: dict[str, str] = {}
    found = [words for block in blocks(page) if block.language == "sh" for words in commands(block.text, variables)]
    jobs = [words[2:] for words in found if "DataflowRunner" in words and "..." not in words]
    assert jobs
    for words in jobs:
        placed = [re.sub(r"gs://[^/]+", f"gs://{bucket.name}", word) for word in words]
        assert main([*placed, "--dry_run=true"]) == 0
        assert capsys.readouterr().out == "the whole graph was translated for Dataflow; nothing was submitted\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--temp_location=gs://bucket"], "--temp_location gs://bucket: give a folder in the bucket"),
        (["--temp_location=gs://Bucket!/tmp"], "'Bucket!' cannot be the name of a bucket"),
        (["--project=123"], "--runner DataflowRunner: Invalid Project ID (123)"),
        (["--job_name=Job_1"], "Invalid job_name (Job_1)"),
        (["--num_workers=-1"], "Invalid value (-1) for option: num_workers"),
        (["--dry_run=perhaps"], "--dry_run perhaps: must be true or false"),
        (["--runner=DirectRunner"], "--dry_run is an option of DataflowRunner"),
        (["--runner=DirectRunner", "--dry_run=false", "--template_location=x"], "--template_location is an option of"),
    ],
)
def test_what_beam_would_refuse_is_a_wrong_option(
    bucket: Bucket, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*places(bucket), *job_flags(bucket), "--dry_run=true", *flags]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert files(bucket, "out") == {}


def test_missing_credentials_are_one_line(
    bucket: Bucket,
    capfd: pytest.CaptureFixture[str],
    run_cli: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    """In a process of its own: Beam keeps what it once found."""
    outside = {
        "CLOUDSDK_CONFIG": str(tmp_path),
        "HOME": str(tmp_path),
        "GOOGLE_APPLICATION_CREDENTIALS": "",
        "GCE_METADATA_IP": "127.0.0.1:9",
    }
    done = run_cli("convert", *places(bucket), *job_flags(bucket), env=outside)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "there are no Google Cloud credentials to submit a job to Dataflow with" in line
    assert "gcloud auth application-default login" in line


# ---------------------------------------------------------------------------------------------------------------------
# Submission


def test_a_job_is_described_and_left_to_itself(
    bucket: Bucket,
    service: DataflowStub,
    run_cli: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    """With the key file of a service account: the token that it is exchanged for arrives at the service."""
    flags = ["--no_wait", "--job_name=photos-1", "--dataflow_service_options=enable_prime", "--label=team=vision"]
    flags += ["--max_num_workers=7", "--machine_type=n2-standard-4", "--number_of_worker_harness_threads=3"]
    with serving(give_token) as tokens:
        key = tmp_path / "key.json"
        key.write_text(json.dumps(service_account(tokens.url)), encoding="utf-8")
        given = [flag for flag in dataflow_flags(bucket, service, *flags) if flag != "--no_auth"]
        done = run_cli("convert", *given, env={"GOOGLE_APPLICATION_CREDENTIALS": str(key)})
    assert (done.returncode, done.stderr) == (0, "")
    output = f"gs://{bucket.name}/out"
    assert done.stdout == f"submitted: {LINK}; the dataset is complete when {output}/dataset_info.json is there\n"
    assert service.tokens == {"Bearer token-of-the-test"}
    assert set(files(bucket, "out")) == {".lease.json"}  # which the job gives back at its end
    assert service.places == [(PROJECT, REGION)]
    (job,) = service.jobs
    check_description(job, bucket)
    check_graph(beam_runner_api_pb2.Pipeline.FromString(staged_pipeline(bucket)))


def give_token(request: Request) -> Answer:
    """What Google answers to the signed request of a service account."""
    body = {"access_token": "token-of-the-test", "token_type": "Bearer", "expires_in": 3600}
    return Answer(200, json.dumps(body).encode(), {"Content-Type": "application/json"})


def check_description(job: dict[str, Any], bucket: Bucket) -> None:
    assert job["name"] == "photos-1"
    assert job["labels"] == {"team": "vision"}
    environment = job["environment"]
    assert "enable_prime" in environment["serviceOptions"]
    assert environment["tempStoragePrefix"].startswith(f"storage.googleapis.com/{bucket.name}/tmp/photos-1.")
    (pool,) = environment["workerPools"]
    assert pool["autoscalingSettings"]["maxNumWorkers"] == 7
    assert (pool["machineType"], pool["numThreadsPerWorker"]) == ("n2-standard-4", 3)
    assert [image["containerImage"] for image in pool["sdkHarnessContainerImages"]] == [IMAGE]
    options = environment["sdkPipelineOptions"]["options"]
    assert options["save_main_session"] is False
    assert options["pipelineUrl"].removeprefix(f"gs://{bucket.name}/tmp/") in files(bucket, "tmp")


@pytest.mark.slow
def test_a_setup_file_brings_the_package_to_the_workers(bucket: Bucket, service: DataflowStub, tmp_path: Path) -> None:
    """Beam's own image, and an archive that Beam's stager makes of a copy of the tree."""
    shutil.copytree(ROOT, tmp_path / "tree", ignore=only_sources)
    flags = [flag for flag in dataflow_flags(bucket, service, "--no_wait") if "image" not in flag]
    assert main([*flags, f"--setup_file={tmp_path / 'tree' / 'setup.py'}"]) == 0
    (pool,) = service.jobs[0]["environment"]["workerPools"]
    assert re.search(r"/beam_python3\.\d+_sdk:", pool["workerHarnessContainerImage"])
    (package,) = [found["location"] for found in pool["packages"] if found["name"] == "workflow.tar.gz"]
    data = files(bucket, "tmp")[package.removeprefix(f"storage.googleapis.com/{bucket.name}/tmp/")]
    with tarfile.open(fileobj=io.BytesIO(data)) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"setup.py", "beam_tfrecord/py.typed", "pipelines/convert.py"} <= names


def only_sources(folder: str, names: list[str]) -> set[str]:
    """What is left out of a copy: all but the packages and the files beside them."""
    if Path(folder) != ROOT:
        return {"__pycache__"} & set(names)
    return {name for name in names if (ROOT / name).is_dir() and name not in ("beam_tfrecord", "pipelines")}


def check_graph(pipeline: beam_runner_api_pb2.Pipeline) -> None:
    """The steps have names that read well, and keys whose encoding is always the same."""
    components = pipeline.components
    names = {transform.unique_name for transform in components.transforms.values()}
    steps = {name.split("/")[1] for name in names if name.startswith("ConvertDataset/")}
    assert steps == {
        *("ReadManifests", "PlanDataset", "PlaceEntries", "FindStraddling", "WriteShards", "PublishDataset"),
    }
    grouped = common_urns.primitives.GROUP_BY_KEY.urn
    for transform in components.transforms.values():
        if transform.spec.urn == grouped:
            (source,) = transform.inputs.values()
            coder = components.coders[components.pcollections[source].coder_id]
            key = components.coders[coder.component_coder_ids[0]].spec
            is_known = key.urn in ("beam:coder:varint:v1", "beam:coder:kv:v1", "beam:coder:string_utf8:v1")
            assert is_known or b"DeterministicFastPrimitivesCoder" in key.payload, transform.unique_name


@pytest.mark.slow
def test_the_staged_pipeline_gives_the_bytes_of_a_local_run(
    bucket: Bucket, service: DataflowStub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(places(bucket)) == 0
    local_line = capsys.readouterr().out
    local = files(bucket, "out")
    assert {"dataset_info.json", "rejects.jsonl", "conversion.json", "train-00000-of-00003.tfrecord"} <= set(local)
    for blob in bucket.list_blobs(prefix="out/"):
        blob.delete()

    def work(number: int) -> None:
        if number == 1:  # all that happens between two questions of the launcher
            sdk_options = service.jobs[0]["environment"]["sdkPipelineOptions"]["options"]
            run_staged(staged_pipeline(bucket), sdk_options)

    service.when_asked = work
    service.states = ["JOB_STATE_RUNNING"] * 2 + ["JOB_STATE_DONE"]
    assert main(dataflow_flags(bucket, service)) == 0
    assert files(bucket, "out") == local
    line = capsys.readouterr().out
    assert line.rpartition(",")[0] == local_line.rpartition(",")[0] == "10 rows, 9 written, 1 rejected, 4 shards"


@pytest.mark.slow
def test_the_staged_pipeline_of_beams_own_sink_runs_too(bucket: Bucket, service: DataflowStub) -> None:
    service.when_asked = lambda number: (
        run_staged(staged_pipeline(bucket), service.jobs[0]["environment"]["sdkPipelineOptions"]["options"])
        if number == 0
        else None
    )
    assert main(dataflow_flags(bucket, service, "--writer", "beam")) == 0
    told = json.loads(files(bucket, "out")["conversion.json"])
    assert (told["written"], told["rejected"]["total"]) == (9, 1)


# ---------------------------------------------------------------------------------------------------------------------
# Waiting


def test_progress_comes_from_the_counters_of_the_service(
    bucket: Bucket, service: DataflowStub, capsys: pytest.CaptureFixture[str]
) -> None:
    service.counters = {"records_written": 40, "rejected": 2, "bytes_read": 6000, "shard_records_MAX": 9}
    service.states = ["JOB_STATE_RUNNING"] * 10 + ["JOB_STATE_CANCELLED"]
    assert main(dataflow_flags(bucket, service)) == 1
    assert (PROGRESS.records, PROGRESS.rejects, PROGRESS.bytes_read) == (40, 2, 6000)
    # The service has no message for a job that somebody cancelled.
    assert capsys.readouterr().err.endswith("Dataflow pipeline failed. State: CANCELLED\n")


def test_a_failed_job_is_told_with_its_message(
    bucket: Bucket, service: DataflowStub, capsys: pytest.CaptureFixture[str]
) -> None:
    service.states = ["JOB_STATE_RUNNING", "JOB_STATE_FAILED"]
    service.messages = [
        ("JOB_MESSAGE_BASIC", "Worker configuration: n2-standard-4 in europe-west1-b."),
        ("JOB_MESSAGE_ERROR", "Startup of the worker pool failed: the image could not be pulled."),
    ]
    assert main(dataflow_flags(bucket, service)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "error: the job was given up by DataflowRunner: Dataflow pipeline failed. State: FAILED, Error:" in err
    assert "the image could not be pulled" in err
    assert "Traceback" not in err


def test_an_error_of_ours_in_a_worker_comes_out_as_itself(
    bucket: Bucket, service: DataflowStub, capsys: pytest.CaptureFixture[str]
) -> None:
    service.states = ["JOB_STATE_RUNNING", "JOB_STATE_FAILED"]
    text = "gs://b/x.csv: has no rows; give a file that has some"
    trace = f"Traceback (most recent call last):\n  File 'x.py', line 1\nbeam_tfrecord.errors.ManifestError: {text}"
    service.messages = [
        ("JOB_MESSAGE_ERROR", f"{trace} [while running 'ConvertDataset/ReadManifests/Read-ptransform-7']\n\nagain"),
        ("JOB_MESSAGE_ERROR", "The job failed because a work item was attempted 4 times."),
    ]
    assert main(dataflow_flags(bucket, service)) == 1
    assert f"error: {text}\n" in capsys.readouterr().err


def test_a_job_that_is_refused(bucket: Bucket, service: DataflowStub, capsys: pytest.CaptureFixture[str]) -> None:
    service.refusal = 403
    assert main(dataflow_flags(bucket, service, "--no_wait")) == 1
    error = capsys.readouterr().err
    assert "error: the job could not be submitted to DataflowRunner: 403" in error
    assert "the caller may not make jobs" in error


def test_an_interrupt_leaves_the_job_running(
    bucket: Bucket, service: DataflowStub, capsys: pytest.CaptureFixture[str]
) -> None:
    service.states = ["JOB_STATE_RUNNING"]
    service.when_asked = lambda number: os.kill(os.getpid(), signal.SIGINT) if number == 3 else None
    assert main(dataflow_flags(bucket, service)) == 130
    assert capsys.readouterr().err.endswith(f"no longer watching; the job goes on at {LINK}\n")
    assert service.changes == []
    service.states = ["JOB_STATE_CANCELLED"]
    for thread in threading.enumerate():  # Beam's thread still asks
        if thread.name == "wait-for-engine":
            thread.join(30)
            assert not thread.is_alive()


def service_account(token_uri: str) -> dict[str, str]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": text,
        "client_email": f"launcher@{PROJECT}.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{token_uri}/token",
    }
