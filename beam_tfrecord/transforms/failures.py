"""How a job fails: an error of ours that an engine wrapped in its own, a lost worker, a pool or an engine that is not
there."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence

import grpc

from beam_tfrecord import errors
from beam_tfrecord.errors import JobError
from beam_tfrecord.transforms.dataflow import dataflow_errors, dataflow_text
from beam_tfrecord.transforms.engines import Engine, Placement

_OWN_ERROR = re.compile(
    r"beam_tfrecord\.errors\.(ConfigError|ManifestError|StorageError|DatasetError|JobError): (.*?)"
    r"(?: \[while running|\n\n|\n(?=Traceback|During handling)|$)",
    re.DOTALL,
)
# How engines say that one of their workers is gone.
_LOST_WORKER = re.compile(
    r"Channel closed prematurely"  # Beam's in-process runner, and its job service
    r"|SDK worker disconnected"  # Prism
    # Beam's JVM code below Flink and Spark: a worker process that ended
    r"|CANCELLED: (client cancelled|cancelled before receiving half close|call already cancelled)"
    r"|CANCELLED: Multiplexer hanging up"
    # Flink: a machine of the cluster, with what was on it
    r"|TaskManager with id \S+ is no longer reachable|Heartbeat of TaskManager with id \S+ timed out"
    r"|[Cc]onnection unexpectedly closed by remote task manager|The TaskExecutor is shutting down"
    r"|ExecutorLostFailure|[Ll]ost executor"  # Spark
)
# How engines say that nothing listens where they looked for a worker pool. None of it comes out of a worker.
_NOT_REACHED = re.compile(
    r"Connection refused|ConnectException|failed to connect to all addresses|No route to host|UnknownHostException"
    r"|UNAVAILABLE: |StatusCode\.UNAVAILABLE|DNS resolution failed"
)
_IN_A_WORKER = re.compile(r"\[while running|from SDK harness for instruction")


class WorkerLostError(JobError):
    """A worker process of this job ended; the job cannot go on."""


def lost_worker(engine: str) -> WorkerLostError:
    """The error for a worker that ended."""
    return WorkerLostError(
        "a worker process ended before its work was done (killed, out of memory, or its machine is gone), and "
        f"{engine} did not replace it; run the same command again, there or on another engine"
    )


def tells_of_lost_worker(text: str) -> bool:
    """Whether an engine says that a worker is gone."""
    return _LOST_WORKER.search(text) is not None


def errors_of(engine: Engine) -> tuple[type[BaseException], ...]:
    """What an engine raises when it cannot be reached or a job failed there."""
    from google.api_core.exceptions import GoogleAPIError  # slow to import, and of no use to a local job
    from google.auth.exceptions import GoogleAuthError

    common = (RuntimeError, OSError, grpc.RpcError, GoogleAPIError, GoogleAuthError)
    return (*common, *dataflow_errors()) if engine.name == "DataflowRunner" else common


def told(error: BaseException, placed: Placement, what: str, messages: Sequence[str] = ()) -> BaseException:
    """The error of ours that ended a job, or a JobError with what the engine says (a worker's traceback, for a bug).

    messages: errors that the engine reported before it gave up. What is no error of an engine is a bug on this side and
    stays what it is.
    """
    own = _own_among([_full_text(error), *messages])
    if own is not None:
        return own
    engine = placed.engine
    if not isinstance(error, errors_of(engine)):
        return error
    texts = (str(error), *messages)
    if any(map(tells_of_lost_worker, texts)):
        return lost_worker(engine.name)
    said = engine_text(error)
    if isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.UNAVAILABLE:
        return JobError(f"{_engine_gone(placed)} ({said}){_pool_doubt(placed)}")
    if placed.pool and any(_NOT_REACHED.search(text) and not _IN_A_WORKER.search(text) for text in texts):
        return JobError(
            f"{engine.name} could not reach the worker pool at {placed.pool} ({said.splitlines()[0]}): start it there, "
            "or correct --environment_config; the address is looked up on the engine's machines"
        )
    return JobError(f"the job {what} {engine.name}: {said}")


def _engine_gone(placed: Placement) -> str:
    where = f" at {placed.endpoint}" if placed.endpoint else ""
    return f"the job service of {placed.engine.name}{where} does not answer any more: it ended, or the way to it is cut"


def _pool_doubt(placed: Placement) -> str:
    """An engine may end of a pool that it does not find, as Prism does."""
    if not placed.pool or answers(placed.pool):
        return ""
    return f"; nor does a worker pool answer at {placed.pool}: start it there, or correct --environment_config"


def answers(endpoint: str, seconds: float = 10.0) -> bool:
    """Whether something listens at HOST:PORT. Beam itself would wait for minutes and not say for what."""
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


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
