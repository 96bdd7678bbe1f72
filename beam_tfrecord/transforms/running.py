"""Running a pipeline on an engine: submitted, watched to its end, and its failure told as what it is."""

from __future__ import annotations

import contextlib
import copy
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import grpc
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    PortableOptions,
    ProfilingOptions,
    SetupOptions,
    StandardOptions,
    TypeOptions,
)
from apache_beam.pipeline import Pipeline
from apache_beam.runners.runner import PipelineResult

from beam_tfrecord import errors
from beam_tfrecord.conversion.writing.progress import PROGRESS, Progress
from beam_tfrecord.errors import ConfigError, JobError
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage.lease import NoLongerWatching
from beam_tfrecord.transforms.counters import NAMESPACE
from beam_tfrecord.transforms.dataflow import (
    check_login,
    console_link,
    dataflow_errors,
    dataflow_text,
    read_dry_run,
    runs_nothing,
)
from beam_tfrecord.transforms.engines import Engine, check_engine, find_engine, works_in_launcher

BeamFlags: TypeAlias = Sequence[str] | PipelineOptions  # as they are given: flags, or options made of them
POLL_SECONDS = 5.0  # between questions to an engine for its counters
# What a question for counters ends with where there are none yet or never any, or where the engine does not answer.
UNTOLD = (NotImplementedError, AttributeError, KeyError, ValueError, TypeError, RuntimeError, OSError, grpc.RpcError)
_OWN_ERROR = re.compile(
    r"beam_tfrecord\.errors\.(ConfigError|ManifestError|StorageError|DatasetError|JobError): (.*?)"
    r"(?: \[while running|\n\n|\n(?=Traceback|During handling)|$)",
    re.DOTALL,
)
_LOST_WORKER = re.compile(r"Channel closed prematurely")  # how Beam's own runners say so


class _OptionsWithViews(PipelineOptions):
    """Options that make each view of themselves once.

    Beam looks at its options several times for each step of a pipeline, and parses all flags each time: together about
    a fifth of the time that a small job takes to start. Views share their values, so one of each kind is enough.
    """

    def view_as(self, cls: type[PipelineOptions]) -> PipelineOptions:
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_views"}


def make_options(flags: BeamFlags) -> PipelineOptions:
    """Beam's options for the flags that are Beam's; from now on its file systems know them as well.

    The main session is never pickled: no DoFn lives there.
    """
    options = flags if isinstance(flags, PipelineOptions) else _OptionsWithViews(list(flags))
    options.view_as(SetupOptions).save_main_session = False
    read_dry_run(options)
    FileSystems.set_options(options)
    return options


def quiet_runner() -> None:
    """Keep the in-process runner from logging what this module raises (with a traceback) or what concerns Beam
    alone."""
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)


def is_local(options: PipelineOptions) -> bool:
    """Whether the job runs in this process (or in processes that it starts)."""
    return find_engine(options).is_local


def make_pipeline(options: PipelineOptions, config: ConvertConfig | None = None) -> Pipeline:
    """A pipeline on the engine of the options. Raises ConfigError when it could not run there.

    config: of the conversion that the pipeline is for. DirectRunner means the in-process FnApiRunner: Beam's own
    switch would first look for Prism on the network. The options are handed to its workers, which multi_processing
    would lose.
    """
    engine = find_engine(options)
    check_engine(engine, options, config)
    options.view_as(StandardOptions).runner = engine.runner
    if engine.name == "DataflowRunner":
        check_login(options)
    _check_options(options)
    if not engine.is_local:
        with _options_refused(engine):
            return Pipeline(options=options)
    from apache_beam.portability.api import beam_provision_api_pb2
    from apache_beam.runners.portability.fn_api_runner import fn_runner
    from apache_beam.runners.portability.portable_runner import JobServiceHandle

    provision = fn_runner.ExtendedProvisionInfo(
        beam_provision_api_pb2.ProvisionInfo(
            pipeline_options=JobServiceHandle.encode_pipeline_options(options.get_all_options())
        )
    )
    with _options_refused(engine):
        return Pipeline(runner=fn_runner.FnApiRunner(provision_info=provision), options=options)


def _check_options(options: PipelineOptions) -> None:
    """Raise ConfigError for options of Beam whose values it looks at only when it fails of them."""
    profiling, types = options.view_as(ProfilingOptions), options.view_as(TypeOptions)
    if (profiling.profile_cpu or profiling.profile_memory) and not profiling.profile_location:
        flag = "--profile_cpu" if profiling.profile_cpu else "--profile_memory"
        raise ConfigError(f"{flag} needs --profile_location FOLDER as well")
    if types.type_check_strictness == "ALL_REQUIRED":
        raise ConfigError("--type_check_strictness ALL_REQUIRED: not all steps of this job state their types; leave it")
    splits = options.view_as(DirectOptions).direct_test_splits
    if splits and not isinstance(splits, Mapping):
        raise ConfigError("--direct_test_splits: must be a JSON object")


@contextlib.contextmanager
def _options_refused(engine: Engine) -> Iterator[None]:
    """What Beam finds wrong with its options, and a package that one of them needs and that is not there."""
    try:
        yield
    except (ValueError, ImportError) as error:
        raise ConfigError(f"--runner {engine.name}: {_told_by_beam(error)}") from None


def _told_by_beam(error: Exception) -> str:
    _, _, found = str(error).partition("Pipeline has validations errors:")
    return " ".join((found or str(error)).split())


# ---------------------------------------------------------------------------------------------------------------------
# Running


def run_watched(pipeline: Pipeline, watch: Callable[[], None] = lambda: None, interval: float = 0.1) -> PipelineResult:
    """Run to the end, calling ``watch`` now and then; errors of ours come out as themselves.

    ``PROGRESS`` is kept up to date: by the writers where they live in this process, from the engine's counters
    elsewhere. Raises JobError when an engine gives the job up.
    """
    engine = find_engine(pipeline.options)
    if engine.is_local:
        return _run_in_thread(pipeline, engine, watch, interval)
    if runs_nothing(pipeline.options):
        raise ConfigError("--dry_run and --template_location start no job: there is no result to wait for")
    return _wait_for(submit(pipeline), pipeline.options, watch, interval)


def submit(pipeline: Pipeline) -> PipelineResult:
    """Hand the pipeline to its engine, and do not wait. Raises JobError when the engine cannot be reached."""
    engine = find_engine(pipeline.options)
    if engine.is_local:
        raise ConfigError(f"{engine.name} runs the job in this process: it cannot go on without it")
    endpoint = pipeline.options.view_as(PortableOptions).job_endpoint
    if engine.name == "PortableRunner" and endpoint != "embed" and not answers(endpoint):
        raise JobError(f"no job service answers at {endpoint}: start the engine, or correct --job_endpoint")
    try:
        return pipeline.run()
    except errors_of(engine) as error:
        raise _told(error, engine, "could not be submitted to") from error


def answers(endpoint: str, seconds: float = 10.0) -> bool:
    """Whether something listens at HOST:PORT. Beam itself would wait for minutes and not say for what."""
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def check_no_wait(options: PipelineOptions) -> None:
    """Raise ConfigError where a job would end with this process."""
    engine = find_engine(options)
    if works_in_launcher(engine, options):
        raise ConfigError(f"--no_wait: with {engine.name} and these options the job ends with this process")


def errors_of(engine: Engine) -> tuple[type[BaseException], ...]:
    """What an engine raises when it cannot be reached or a job failed there."""
    from google.api_core.exceptions import GoogleAPIError  # slow to import, and of no use to a local job
    from google.auth.exceptions import GoogleAuthError

    common = (RuntimeError, OSError, grpc.RpcError, GoogleAPIError, GoogleAuthError)
    return (*common, *dataflow_errors()) if engine.name == "DataflowRunner" else common


def _wait_for(
    result: PipelineResult, options: PipelineOptions, watch: Callable[[], None], interval: float
) -> PipelineResult:
    engine = find_engine(options)
    outcome: dict[str, BaseException] = {}
    messages: list[str] = []

    def wait() -> None:
        try:
            result.wait_until_finish()
        except BaseException as error:  # handed over to the thread that waits
            outcome["error"] = error

    thread = threading.Thread(target=wait, name="wait-for-engine", daemon=True)
    asked = time.monotonic()
    try:
        with _errors_unlogged(messages.append):
            thread.start()
            while thread.is_alive():
                thread.join(interval)
                if time.monotonic() - asked >= POLL_SECONDS:
                    take_counters(result, PROGRESS)
                    asked = time.monotonic()
                watch()
    except KeyboardInterrupt:
        if works_in_launcher(engine, options) or engine.name == "PortableRunner":
            with contextlib.suppress(*errors_of(engine)):  # the job may be over, or the engine gone
                result.cancel()
            raise
        link = job_link(result, options)
        raise NoLongerWatching(f"no longer watching; the job goes on at {link or engine.name}") from None
    if "error" in outcome:
        raise _told(outcome["error"], engine, "was given up by", messages) from outcome["error"]
    return result


@contextlib.contextmanager
def _errors_unlogged(tell: Callable[[str], None]) -> Iterator[None]:
    """Hand over the errors that an engine reports, instead of logging them: one of them ends the job.

    Beam's portable runner logs each with the whole traceback of the worker and of the engine, at the root logger.
    """

    def is_logged(record: logging.LogRecord) -> bool:
        if record.module != "portable_runner" or record.levelno < logging.ERROR:
            return True
        tell(record.getMessage())
        return False

    root = logging.getLogger()
    root.addFilter(is_logged)
    try:
        yield
    finally:
        root.removeFilter(is_logged)


def take_counters(result: PipelineResult, progress: Progress) -> None:
    """Bring a progress up to what the engine has counted. Engines that tell nothing while they run change nothing."""
    try:
        # A result of the portable runner keeps the first answer for ever; its copy asks anew.
        found = copy.copy(result).metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]
    except UNTOLD:
        return
    counts: dict[str, int] = {}
    for metric in found:
        value = metric.committed if metric.attempted is None else metric.attempted
        counts[metric.key.metric.name] = counts.get(metric.key.metric.name, 0) + (value or 0)
    progress.at_least(counts.get("records_written", 0), counts.get("rejected", 0), counts.get("bytes_read", 0))


def job_link(result: PipelineResult, options: PipelineOptions) -> str:
    """Where a person watches the job: the page of a Dataflow job, else the id that the engine gave it."""
    if not getattr(result, "has_job", True):  # a template
        return ""
    name = getattr(result, "job_id", None)
    job = name() if callable(name) else getattr(result, "_job_id", "")
    if find_engine(options).name == "DataflowRunner" and job:
        return console_link(options, job)
    return str(job)


def _run_in_thread(pipeline: Pipeline, engine: Engine, watch: Callable[[], None], interval: float) -> PipelineResult:
    """Run where ``run()`` blocks until all is done.

    It runs in a thread of its own while this one watches (and stays open to Ctrl-C). The in-process runner would wait
    for ever for a worker process that died: the thread that keeps such a process ends with an exception then, and so
    does the job.
    """
    outcome: dict[str, Any] = {}
    lost: list[threading.ExceptHookArgs] = []

    def work() -> None:
        try:
            result = pipeline.run()
            result.wait_until_finish()
            outcome["result"] = result
        except BaseException as error:  # handed over to the thread that waits
            outcome["error"] = error

    thread = threading.Thread(target=work, name="pipeline", daemon=True)
    with _thread_failures(lost.append):
        thread.start()
        while thread.is_alive() and not lost:
            thread.join(interval)
            watch()
    if lost and (thread.is_alive() or _LOST_WORKER.search(str(outcome.get("error", "")))):
        raise WorkerLostError(_lost_worker(engine.name))
    if "error" in outcome:
        raise own_error(outcome["error"]) from outcome["error"]
    result: PipelineResult = outcome["result"]
    return result


class WorkerLostError(JobError):
    """A worker process of this job ended; the job cannot go on."""


def _lost_worker(engine: str) -> str:
    return (
        f"a worker process ended before its work was done (killed, or out of memory), and {engine} cannot replace it; "
        "run the same command again, there or on another engine"
    )


@contextlib.contextmanager
def _thread_failures(tell: Callable[[threading.ExceptHookArgs], None]) -> Iterator[None]:
    """Hand over what ends the threads that keep Beam's worker processes (they are called run_worker)."""
    before = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        if failure.thread is not None and failure.thread.name.startswith("run_worker"):
            tell(failure)
        else:
            before(failure)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


# ---------------------------------------------------------------------------------------------------------------------
# Failures


def _told(error: BaseException, engine: Engine, what: str, messages: Sequence[str] = ()) -> BaseException:
    """The error of ours that ended a job, or a JobError with what the engine says (a worker's traceback, for a bug).

    messages: errors that the engine reported before it gave up. What is no error of an engine is a bug on this side and
    stays what it is.
    """
    own = _own_among([_full_text(error), *messages])
    if own is not None:
        return own
    if not isinstance(error, errors_of(engine)):
        return error
    if any(map(_LOST_WORKER.search, (str(error), *messages))):
        return WorkerLostError(_lost_worker(engine.name))
    return JobError(f"the job {what} {engine.name}: {engine_text(error)}")


def engine_text(error: BaseException) -> str:
    """What an engine says: for a failed call its status and details, without the trace of the call."""
    if isinstance(error, grpc.Call):
        return f"{error.code().name}: {error.details()}"
    return dataflow_text(error)


def own_error(error: BaseException) -> BaseException:
    """The error of ours that a runner wrapped in text or wrote its step's name behind, or the error itself.

    Beam raises the exception of a DoFn anew with `` [while running 'Step']`` behind its message; where the DoFn ran
    behind a service, only the text of the traceback arrives.
    """
    return _own_among([_full_text(error)]) or error


def _full_text(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}: {error}"


def _own_among(texts: Sequence[str]) -> errors.BeamTfrecordError | None:
    """The error of ours that the first of the texts with one in it tells of last."""
    for text in texts:
        found = _OWN_ERROR.findall(text)
        if found:
            name, message = found[-1]
            kind: type[errors.BeamTfrecordError] = getattr(errors, name)
            return kind(message.strip())
    return None
