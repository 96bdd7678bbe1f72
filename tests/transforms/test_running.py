from __future__ import annotations

import logging
import signal

import grpc
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.pipeline import Pipeline
from apache_beam.runners.runner import PipelineRunner

from beam_tfrecord.errors import ConfigError, JobError, ManifestError, StorageError
from beam_tfrecord.transforms import running
from beam_tfrecord.transforms.engines import find_engine, placed
from beam_tfrecord.transforms.failures import WorkerLostError, own_error, told
from beam_tfrecord.transforms.running import check_no_wait, make_options, make_pipeline


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
        ["--runner=FlinkRunner", "--flink_master=http://flink:8081", "--flink_submit_uber_jar"],
        ["--runner=FlinkRunner", "--job_endpoint=flink:8099", "--environment_type=EXTERNAL"],
        ["--runner=SparkRunner", "--spark_master_url=spark://spark:7077", "--spark_submit_uber_jar"],
        ["--runner=PortableRunner", "--job_endpoint=flink:8099", "--environment_type=DOCKER"],
    ],
)
def test_a_job_on_a_cluster_goes_on(flags: list[str]) -> None:
    check_no_wait(make_options(flags))


@pytest.mark.parametrize(
    ("flags", "way"),
    [
        (["--runner=FlinkRunner", "--flink_master=http://flink:8081"], "--flink_submit_uber_jar"),
        (["--runner=FlinkRunner", "--flink_master=localhost:8081"], "--flink_submit_uber_jar"),
        (["--runner=SparkRunner", "--spark_master_url=spark://spark:7077"], "--spark_submit_uber_jar"),
    ],
)
def test_a_job_that_its_job_server_would_take_along_is_not_left(flags: list[str], way: str) -> None:
    """Beam's job server for it is a child of the command, and hands the job on after the command has ended."""
    with pytest.raises(ConfigError, match=r"--no_wait: .*--runner PortableRunner --job_endpoint") as caught:
        check_no_wait(make_options([*flags, "--environment_type=EXTERNAL", "--environment_config=localhost:50000"]))
    assert way in str(caught.value)


# ---------------------------------------------------------------------------------------------------------------------
# Failures

EXTERNAL = ["--environment_type=EXTERNAL", "--environment_config=localhost:1"]


class Unavailable(grpc.RpcError, grpc.Call):  # type: ignore[misc]
    """What a channel raises when the other side has gone away."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "Stream removed"


@pytest.mark.parametrize(
    "said",
    [
        # As the engines said it: Beam's JVM job service, Prism, Flink, Spark.
        "Pipeline job-1 failed in state FAILED: io.grpc.StatusRuntimeException: CANCELLED: client cancelled",
        "bundle inst008 stage-009 failed:SDK worker disconnected: worker[job-001[job]], 1 active instructions",
        "java.lang.Exception: TaskManager with id 10.0.0.7:37291-2b is no longer reachable.",
        "java.util.concurrent.TimeoutException: Heartbeat of TaskManager with id 10.0.0.7:37291-2b timed out.",
        "RemoteTransportException: Connection unexpectedly closed by remote task manager '10.0.0.7/10.0.0.7:42'.",
        "Job aborted: Lost task 1.0 in stage 3.0: ExecutorLostFailure (executor 1 exited)",
    ],
)
def test_a_lost_worker_is_known_by_what_its_engine_says(said: str) -> None:
    where = placed(make_options(["--runner=FlinkRunner", "--flink_master=http://flink:8081", *EXTERNAL]))
    found = told(RuntimeError(said), where, "was given up by")
    assert type(found) is WorkerLostError
    assert "FlinkRunner did not replace it" in str(found)


@pytest.mark.parametrize(
    "said",
    [
        "failed in state FAILED: java.net.ConnectException: finishConnect(..) failed: Connection refused",
        "Error running pipeline.\nTraceback ...\ngrpc._channel._InactiveRpcError: StatusCode.UNAVAILABLE",
    ],
)
def test_a_pool_that_is_not_reached_is_named(said: str) -> None:
    where = placed(make_options(["--runner=PortableRunner", "--job_endpoint=engine:8099", *EXTERNAL]))
    found = str(told(RuntimeError(said), where, "was given up by"))
    assert found.startswith("PortableRunner could not reach the worker pool at localhost:1 (")
    assert "\n" not in found


def test_what_a_worker_could_not_reach_is_no_fault_of_the_pool() -> None:
    where = placed(make_options(["--runner=PortableRunner", "--job_endpoint=engine:8099", *EXTERNAL]))
    said = "Error received from SDK harness for instruction 3: Traceback: ConnectionError: Connection refused"
    assert "pool" not in str(told(RuntimeError(said), where, "was given up by"))


def test_an_engine_that_has_gone_away_is_named_with_the_pool_that_it_may_have_ended_of() -> None:
    where = placed(make_options(["--runner=PortableRunner", "--job_endpoint=engine:8099", *EXTERNAL]))
    found = str(told(Unavailable(), where, "was given up by"))
    assert "the job service of PortableRunner at engine:8099 does not answer any more" in found
    assert "nor does a worker pool answer at localhost:1" in found


def test_options_name_their_runner_after_a_job_as_before() -> None:
    """Beam takes the name out of them, and a second job with the same options would run on DirectRunner."""

    class Taking(PipelineRunner):  # type: ignore[misc]
        def run_pipeline(self, pipeline: Pipeline, options: PipelineOptions) -> None:
            options.view_as(StandardOptions).runner = None

    options = make_options(["--runner=PortableRunner", "--job_endpoint=embed"])
    pipeline = Pipeline(runner=Taking(), options=options)
    running.submit(pipeline)
    assert find_engine(options).name == "PortableRunner"


def test_ctrl_c_means_after_submission_what_it_meant_before() -> None:
    class Taking(PipelineRunner):  # type: ignore[misc]
        def run_pipeline(self, pipeline: Pipeline, options: PipelineOptions) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    before = signal.getsignal(signal.SIGINT)
    options = make_options(["--runner=PortableRunner", "--job_endpoint=embed"])
    running.submit(Pipeline(runner=Taking(), options=options))
    assert signal.getsignal(signal.SIGINT) is before
