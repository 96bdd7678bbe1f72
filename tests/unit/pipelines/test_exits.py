"""What is heard of Beam's own threads while a command runs."""

from __future__ import annotations

import sys
import threading
import traceback

import pytest

from pipelines.exits import echoes_unheard

FROM_BEAM = compile(
    "raise RuntimeError('the channel is closed')", "/x/apache_beam/runners/worker/sdk_worker.py", "exec"
)


def print_as_beam() -> None:
    """As Beam's worker prints the failure of a bundle."""
    try:
        exec(FROM_BEAM)
    except RuntimeError:
        print(traceback.format_exc(), file=sys.stderr)


def test_tracebacks_of_beams_threads_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with echoes_unheard():
        threads = [threading.Thread(target=exec, args=(FROM_BEAM,)), threading.Thread(target=print_as_beam)]
        for thread in threads:
            thread.start()
            thread.join()
        print("a line of ours", file=sys.stderr)
    assert capsys.readouterr().err == "a line of ours\n"


def test_those_of_other_threads_are(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    with echoes_unheard():
        thread = threading.Thread(target=lambda: 1 // 0)
        thread.start()
        thread.join()
        print("Traceback (most recent call last): of ours", file=sys.stderr)
    assert [failure.exc_type for failure in told] == [ZeroDivisionError]
    assert "of ours" in capsys.readouterr().err
    assert threading.excepthook == told.append
