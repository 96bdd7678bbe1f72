"""A stand-in for the REST service of Dataflow: it takes jobs and tells of them what a test has written down."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns, python_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

from tests.loopback import Answer, Request, serving

PATH = re.compile(r"/v1b3/projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)/jobs(?:/(?P<id>[^/]+)(?P<about>.*))?")
JOB_ID = "2026-01-01_00_00_00-1234567890"
STEP_NAME = "ref_AppliedPTransform_Some-Step_1"


@dataclass
class DataflowStub:
    """What the service was told, and what it tells.

    states: of the job, one for each time that it is asked; the last one stays. messages: (importance, text).
    counters: name to value. when_asked: called with the number of the question (from 0) before the state is told.
    refusal: status with which jobs are not taken.
    """

    url: str = ""
    states: list[str] = field(default_factory=lambda: ["JOB_STATE_RUNNING", "JOB_STATE_DONE"])
    messages: list[tuple[str, str]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    when_asked: Callable[[int], None] = lambda number: None
    refusal: int | None = None
    places: list[tuple[str, str]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    errors: list[BaseException] = field(default_factory=list)
    _asked: int = 0

    def answer(self, request: Request) -> Answer:
        """One call of the service."""
        found = PATH.fullmatch(unquote(urlsplit(request.path).path))
        if found is None:
            return Answer(404, b"{}")
        self.places.append((found["project"], found["region"]))
        self.tokens.add(request.headers.get("authorization", ""))
        if request.method == "POST":
            return self._create(json.loads(request.body))
        if request.method == "PUT":
            self.changes.append(json.loads(request.body))
            return _json(self._job("JOB_STATE_CANCELLING"))
        if found["about"] == "/messages":
            return _json({"jobMessages": [_message(number, *told) for number, told in enumerate(self.messages)]})
        if found["about"] == "/metrics":
            return _json(
                {"metrics": [_metric(*counter, t) for counter in self.counters.items() for t in (True, False)]}
            )
        return self._state()

    def _create(self, job: dict[str, Any]) -> Answer:
        if self.refusal is not None:
            error = {"code": self.refusal, "message": "the caller may not make jobs", "status": "PERMISSION_DENIED"}
            return _json({"error": error}, self.refusal)
        self.jobs.append(job)
        return _json({**self._job("JOB_STATE_PENDING"), "clientRequestId": job["clientRequestId"]})

    def _state(self) -> Answer:
        number, self._asked = self._asked, self._asked + 1
        try:
            self.when_asked(number)
        except BaseException as error:
            self.errors.append(error)
            return _json(self._job("JOB_STATE_FAILED"))
        return _json(self._job(self.states[min(number, len(self.states) - 1)]))

    def _job(self, state: str) -> dict[str, Any]:
        return {"id": JOB_ID, "currentState": state, "type": "JOB_TYPE_BATCH"}


@contextmanager
def dataflow_stub() -> Iterator[DataflowStub]:
    """A running service. Its address says localhost: that is how Beam's client knows to speak plain HTTP."""
    stub = DataflowStub()
    with serving(stub.answer) as server:
        stub.url = server.url
        yield stub


def _json(values: dict[str, Any], status: int = 200) -> Answer:
    return Answer(status, json.dumps(values).encode(), {"Content-Type": "application/json"})


def _message(number: int, importance: str, text: str) -> dict[str, Any]:
    return {
        "id": str(number),
        "time": f"2026-01-01T00:00:{number:02}Z",
        "messageText": text,
        "messageImportance": importance,
    }


def _metric(name: str, value: int, is_tentative: bool) -> dict[str, Any]:
    """As the service tells a counter: tentative (attempted) and committed apart; the latter lags behind."""
    context = {"namespace": "beam_tfrecord", "step": STEP_NAME, **({"tentative": "true"} if is_tentative else {})}
    return {
        "name": {"origin": "user", "name": name, "context": context},
        "scalar": value if is_tentative else value // 2,
        "updateTime": "2026-01-01T00:00:00Z",
    }


def run_staged(proto: bytes, sdk_options: dict[str, Any]) -> None:
    """Run a staged pipeline here: nothing in it is changed but the environment, for there is no Docker.

    sdk_options: what the job's description hands to the workers' harness.
    """
    pipeline = beam_runner_api_pb2.Pipeline.FromString(proto)
    for environment in pipeline.components.environments.values():
        assert environment.urn == common_urns.environments.DOCKER.urn
        environment.urn = python_urns.EMBEDDED_PYTHON
        environment.payload = b""
        del environment.dependencies[:]
    # A protobuf Struct has no whole numbers.
    whole = {name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in sdk_options.items()}
    known = {name: value for name, value in whole.items() if not name.startswith("pipeline")}
    FnApiRunner().run_via_runner_api(pipeline, PipelineOptions.from_dictionary(known)).wait_until_finish()
