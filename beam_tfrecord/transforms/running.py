"""Running a pipeline: which runner, and what its failure means."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, StandardOptions
from apache_beam.pipeline import Pipeline
from apache_beam.runners.runner import PipelineResult

from beam_tfrecord import errors

BeamFlags: TypeAlias = Sequence[str] | PipelineOptions  # as they are given: flags, or options made of them
LOCAL_RUNNERS = ("DirectRunner", "FnApiRunner", "BundleBasedDirectRunner", "direct", "directrunner")
_OWN_ERROR = re.compile(
    r"beam_tfrecord\.errors\.(ConfigError|ManifestError|StorageError|DatasetError): (.*?)"
    r"(?: \[while running|\n\n|\n(?=Traceback|During handling)|$)",
    re.DOTALL,
)


def make_options(flags: BeamFlags) -> PipelineOptions:
    """Beam's options for the flags that are Beam's; from now on its file systems know them as well.

    The main session is never pickled: no DoFn lives there.
    """
    options = flags if isinstance(flags, PipelineOptions) else PipelineOptions(list(flags))
    options.view_as(SetupOptions).save_main_session = False
    FileSystems.set_options(options)
    return options


def quiet_runner() -> None:
    """Keep the in-process runner from logging what this module raises (with a traceback) or what concerns Beam
    alone."""
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)


def is_local(options: PipelineOptions) -> bool:
    """Whether the job runs in this process (or in processes that it starts)."""
    runner = options.view_as(StandardOptions).runner
    return runner is None or runner.rpartition(".")[2].lower() in {name.lower() for name in LOCAL_RUNNERS}


def make_pipeline(options: PipelineOptions) -> Pipeline:
    """A pipeline on the runner of the options.

    DirectRunner means the in-process FnApiRunner: Beam's own switch would first look for Prism on the network. The
    options are handed to its workers, which multi_processing would lose.
    """
    if not is_local(options):
        return Pipeline(options=options)
    from apache_beam.portability.api import beam_provision_api_pb2
    from apache_beam.runners.portability.fn_api_runner import fn_runner
    from apache_beam.runners.portability.portable_runner import JobServiceHandle

    provision = fn_runner.ExtendedProvisionInfo(
        beam_provision_api_pb2.ProvisionInfo(
            pipeline_options=JobServiceHandle.encode_pipeline_options(options.get_all_options())
        )
    )
    return Pipeline(runner=fn_runner.FnApiRunner(provision_info=provision), options=options)


def run_watched(pipeline: Pipeline, watch: Callable[[], None] = lambda: None, interval: float = 0.1) -> PipelineResult:
    """Run to the end, calling ``watch`` now and then; errors of ours come out as themselves.

    The in-process runner blocks until it is done, so it runs in a thread of its own while this one watches (and stays
    open to Ctrl-C). It would wait for ever for a worker process that died: the thread that keeps such a process ends
    with an exception then, and so does the job.
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
    if lost and thread.is_alive():
        raise WorkerLostError(f"a worker process ended before its work was done: {lost[0].exc_value}")
    if "error" in outcome:
        raise own_error(outcome["error"]) from outcome["error"]
    result: PipelineResult = outcome["result"]
    return result


class WorkerLostError(RuntimeError):
    """A worker process of this job ended; the job cannot go on. ``--resume`` continues it."""


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


def own_error(error: BaseException) -> BaseException:
    """The error of ours that a runner wrapped in text or wrote its step's name behind, or the error itself.

    Beam raises the exception of a DoFn anew with `` [while running 'Step']`` behind its message; where the DoFn ran
    behind a service, only the text of the traceback arrives.
    """
    found = _OWN_ERROR.findall(f"{type(error).__module__}.{type(error).__qualname__}: {error}")
    if not found:
        return error
    name, message = found[-1]
    kind: type[errors.BeamTfrecordError] = getattr(errors, name)
    return kind(message.strip())
