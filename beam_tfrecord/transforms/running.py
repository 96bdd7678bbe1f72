"""Running a pipeline on an engine: submitted, watched to its end, and its failure told as what it is."""

from __future__ import annotations

import contextlib
import copy
import logging
import signal
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
    PrismRunnerOptions,
    ProfilingOptions,
    SetupOptions,
    StandardOptions,
    TypeOptions,
)
from apache_beam.pipeline import Pipeline
from apache_beam.runners.runner import PipelineResult

from beam_tfrecord.conversion.writing.progress import PROGRESS, Progress
from beam_tfrecord.errors import ConfigError, JobError
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage.lease import NoLongerWatching
from beam_tfrecord.transforms.counters import NAMESPACE
from beam_tfrecord.transforms.dataflow import (
    check_login,
    console_link,
    read_dry_run,
    runs_nothing,
)
from beam_tfrecord.transforms.engines import (
    Engine,
    Placement,
    check_engine,
    find_engine,
    placed,
    starts_job_server,
    ways_without_job_server,
    works_in_launcher,
)
from beam_tfrecord.transforms.failures import (
    WorkerLostError,  # noqa: F401 - callers look for it where jobs are run
    answers,
    errors_of,
    lost_worker,
    own_error,
    tells_of_lost_worker,
    told,
)

BeamFlags: TypeAlias = Sequence[str] | PipelineOptions  # as they are given: flags, or options made of them
POLL_SECONDS = 5.0  # between questions to an engine for its counters
STOP_SECONDS = 10.0  # that a job which was stopped has to end in
# What a question for counters ends with where there are none yet or never any, or where the engine does not answer.
UNTOLD = (NotImplementedError, AttributeError, KeyError, ValueError, TypeError, RuntimeError, OSError, grpc.RpcError)


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


def quiet_server(options: PipelineOptions) -> None:
    """Keep Beam from telling how it starts and ends a job server and what it makes of flags for that server, and Prism
    from telling what it does.

    Unless the options ask Prism for more. What ends a job is told by the engine when it gives the job up.
    """
    for module in ("apache_beam.utils.subprocess_server", "apache_beam.options.pipeline_options"):
        logging.getLogger(module).setLevel(logging.ERROR)
    if options.view_as(PrismRunnerOptions).prism_log_level == "info":  # the default
        logging.getLogger("PrismJobServer").addFilter(_nothing)  # once, however often


def _nothing(record: logging.LogRecord) -> bool:
    return False


def is_bound(options: PipelineOptions) -> bool:
    """Whether the job ends with this process: what happens to it is told here, once."""
    return placed(options).is_bound


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
    where = placed(pipeline.options)
    if where.engine.is_local:
        return _run_in_thread(pipeline, where.engine, watch, interval)
    if runs_nothing(pipeline.options):
        raise ConfigError("--dry_run and --template_location start no job: there is no result to wait for")
    return _wait_for(submit(pipeline), pipeline.options, where, watch, interval)


def submit(pipeline: Pipeline) -> PipelineResult:
    """Hand the pipeline to its engine, and do not wait. Raises JobError when the engine cannot be reached."""
    where = placed(pipeline.options)
    if where.engine.is_local:
        raise ConfigError(f"{where.engine.name} runs the job in this process: it cannot go on without it")
    if where.endpoint not in ("", "embed") and not answers(where.endpoint):
        raise JobError(f"no job service answers at {where.endpoint}: start the engine, or correct --job_endpoint")
    try:
        with _own_interrupts(), _runner_kept(pipeline.options), _unlogged("subprocess_server"):
            return pipeline.run()
    except errors_of(where.engine) as error:
        raise told(error, where, "could not be submitted to") from error


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    """Ctrl-C means afterwards what it meant before.

    Beam's runners that start a job server take it over: they end that server, and the way to the job with it, before
    anybody could cancel the job or say what becomes of it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _runner_kept(options: PipelineOptions) -> Iterator[None]:
    """The options name their runner afterwards too: Beam's portable runners take it out, and DirectRunner would be
    what is left of it."""
    standard = options.view_as(StandardOptions)
    runner = standard.runner
    try:
        yield
    finally:
        standard.runner = runner


def check_no_wait(options: PipelineOptions) -> None:
    """Raise ConfigError where a job would end with this process, or would never come to its engine."""
    engine = find_engine(options)
    if works_in_launcher(engine, options):
        raise ConfigError(f"--no_wait: with {engine.name} and these options the job ends with this process")
    if starts_job_server(engine, options):
        raise ConfigError(
            f"--no_wait: {engine.name} starts a job server that ends with this command, before the cluster has the "
            f"job; wait for the job, or give {ways_without_job_server(engine)}"
        )


def _wait_for(
    result: PipelineResult, options: PipelineOptions, where: Placement, watch: Callable[[], None], interval: float
) -> PipelineResult:
    outcome: dict[str, BaseException] = {}
    messages: list[str] = []

    def wait() -> None:
        try:
            result.wait_until_finish()
        except BaseException as error:  # handed over to the thread that waits
            outcome["error"] = error

    thread = threading.Thread(target=wait, name="wait-for-engine", daemon=True)
    asked = time.monotonic()
    with _errors_unlogged(messages.append):
        try:
            thread.start()
            while thread.is_alive():
                thread.join(interval)
                if time.monotonic() - asked >= POLL_SECONDS:
                    take_counters(result, PROGRESS)
                    asked = time.monotonic()
                watch()
        except KeyboardInterrupt:
            if not where.is_bound:
                raise NoLongerWatching(f"no longer watching; {_goes_on(where, job_link(result, options))}") from None
            with contextlib.suppress(ValueError, *errors_of(where.engine)):  # it may be over, or the engine gone
                result.cancel()
            thread.join(STOP_SECONDS)
            raise
    if "error" in outcome:
        raise told(outcome["error"], where, "was given up by", messages) from outcome["error"]
    return result


def _goes_on(where: Placement, link: str) -> str:
    """What becomes of a job when nobody watches it any more, and where."""
    at = f"{where.place} ({link})" if where.place and link else where.place or link or where.engine.name
    if where.has_own_server:
        return f"the job goes on at {where.place}, if the cluster has it already; its own page tells"
    return f"the job goes on at {at}"


@contextlib.contextmanager
def _errors_unlogged(tell: Callable[[str], None]) -> Iterator[None]:
    """Hand over the errors that an engine reports, instead of logging them: one of them ends the job.

    Beam's portable runner logs each with the whole traceback of the worker and of the engine, at the root logger.
    """

    with _unlogged("portable_runner", logging.ERROR, tell):
        yield


@contextlib.contextmanager
def _unlogged(
    module: str, level: int = logging.DEBUG, tell: Callable[[str], None] = lambda text: None
) -> Iterator[None]:
    """Hand over what a module of Beam's says at the root logger, from a level on, instead of logging it."""

    def is_logged(record: logging.LogRecord) -> bool:
        if record.module != module or record.levelno < level:
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
    if lost and (thread.is_alive() or tells_of_lost_worker(str(outcome.get("error", "")))):
        raise lost_worker(engine.name)
    if "error" in outcome:
        raise own_error(outcome["error"]) from outcome["error"]
    result: PipelineResult = outcome["result"]
    return result


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
