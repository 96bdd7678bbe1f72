from __future__ import annotations

import logging

import pytest

from beam_tfrecord.errors import ConfigError, JobError, ManifestError, StorageError
from beam_tfrecord.transforms import running
from beam_tfrecord.transforms.running import WorkerLostError, check_no_wait, make_options, make_pipeline, own_error


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ManifestError("a.csv: no rows"), ManifestError("a.csv: no rows")),
        (ManifestError("a.csv: no rows [while running 'Job/Plan']"), ManifestError("a.csv: no rows")),
        (
            RuntimeError(
                "Traceback (most recent call last):\n  File 'x.py', line 1\n"
                "beam_tfrecord.errors.StorageError: gs://b: you may not read it\n\n"
                "During handling of the above exception, another exception occurred:\n"
                "beam_tfrecord.errors.StorageError: gs://b: you may not read it [while running 'Read']\n"
            ),
            StorageError("gs://b: you may not read it"),
        ),
        (
            RuntimeError("beam_tfrecord.errors.ConfigError: --num_shards names 'x' [while running 'P']"),
            ConfigError("--num_shards names 'x'"),
        ),
    ],
)
def test_errors_of_ours_come_out_as_they_were_raised(raised: Exception, expected: Exception) -> None:
    found = own_error(raised)
    assert (type(found), str(found)) == (type(expected), str(expected))


class Reporting:
    """A job that reports errors as Beam's portable runner does, and then fails with what the engine said last."""

    def __init__(self, failure: str, *messages: str) -> None:
        self.failure = failure
        self.messages = messages

    def wait_until_finish(self) -> None:
        for message in self.messages:
            record = logging.LogRecord("root", logging.ERROR, "portable_runner.py", 1, message, None, None)
            logging.getLogger().handle(record)
        raise RuntimeError(self.failure)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (Reporting("failed: RuntimeError: Channel closed prematurely."), WorkerLostError),
        (Reporting("failed: unknown error", "beam_tfrecord.errors.StorageError: gs://b: no\n"), StorageError),
        (Reporting("failed: KeyError: 3", "KeyError: 3"), JobError),
    ],
)
def test_the_end_of_a_job_elsewhere_is_told_once(
    job: Reporting, expected: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = make_pipeline(make_options(["--runner=PortableRunner", "--job_endpoint=localhost:1"]))
    monkeypatch.setattr(running, "submit", lambda pipeline: job)
    with pytest.raises(expected) as caught:
        running.run_watched(pipeline, interval=0.01)
    assert type(caught.value) is expected
    assert caplog.records == []


def test_a_bug_stays_what_it_is() -> None:
    bug = RuntimeError("KeyError: 3 [while running 'Plan']")
    assert own_error(bug) is bug


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--runner=PrismRunner"],
        ["--runner=FlinkRunner"],
        ["--runner=FlinkRunner", "--flink_master=[local]", "--environment_type=DOCKER"],
        ["--runner=FlinkRunner", "--flink_master=http://flink:8081", "--environment_type=LOOPBACK"],
        ["--runner=SparkRunner"],
        ["--runner=PortableRunner", "--job_endpoint=embed"],
    ],
)
def test_a_job_that_ends_with_this_process_is_waited_for(flags: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"--no_wait: with .* the job ends with this process"):
        check_no_wait(make_options(flags))


@pytest.mark.parametrize(
    "flags",
    [
        ["--runner=DataflowRunner"],
        ["--runner=FlinkRunner", "--flink_master=http://flink:8081", "--environment_type=EXTERNAL"],
        ["--runner=SparkRunner", "--spark_master_url=spark://spark:7077"],
        ["--runner=PortableRunner", "--job_endpoint=flink:8099", "--environment_type=DOCKER"],
    ],
)
def test_a_job_on_a_cluster_goes_on(flags: list[str]) -> None:
    check_no_wait(make_options(flags))
