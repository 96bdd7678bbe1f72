"""A headless Chromium, driven over its debugging pipe: as much of it as the tests of a page need.

Commands and events are those of the Chrome DevTools Protocol, as JSON with a zero byte behind each. Chromium reads them
from its file descriptor 3 and writes to 4; no port and no library is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 120  # seconds: the machine may be busy


class Page:
    """The only page of a browser. events: everything it told, in order."""

    def __init__(self, write_to: int, read_from: int) -> None:
        self._write_to = write_to
        self._read_from = read_from
        self._received = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Make the page and have it tell what happens in it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Run a command and wait for its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write_to, json.dumps(message).encode() + b"\0")
        answer = self._wait_for(lambda told: told.get("id") == self._number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def resize(self, width: int, height: int) -> None:
        """Make the window so large, in pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open_anew(self, path: Path) -> None:
        """Load a file as if nothing had been set before: with scripts, in a window of 1200 by 900."""
        self.call("Emulation.setScriptExecutionDisabled", value=False)
        self.call("Emulation.setEmulatedMedia", media="", features=[])
        self.resize(1200, 900)
        self.open(path)

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        self.events.clear()
        self.call("Page.navigate", url=path.absolute().as_uri())
        self._wait_for(lambda told: told.get("method") == "Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key that writes nothing (``ArrowRight``, ``Escape`` ...)."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def type(self, text: str) -> None:
        """Write into what has the focus."""
        self.call("Input.insertText", text=text)

    def complaints(self) -> list[str]:
        """Errors of scripts, messages on the console, and what the browser found wrong since the page opened."""
        told = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                told.append(json.dumps(parameters["exceptionDetails"]))
            elif event.get("method") == "Runtime.consoleAPICalled":
                told.append(json.dumps(parameters["args"]))
            elif event.get("method") == "Log.entryAdded":
                told.append(parameters["entry"]["text"])
        return told

    def requests(self) -> list[str]:
        """Addresses that were asked for since the page opened, but for those that hold what they name (``data:``)."""
        asked = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        urls = [event["params"]["request"]["url"] for event in asked]
        return [url for url in urls if not url.startswith("data:")]

    def _wait_for(self, wanted: Any) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while True:
            message = self._next(until)
            if "id" not in message:
                self.events.append(message)
            if wanted(message):
                return message

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read_from], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self._read_from, 1 << 20) if ready else b""
            if not piece:
                raise TimeoutError("Chromium does not answer" if not ready else "Chromium is gone")
            self._received += piece
        message, _, self._received = self._received.partition(b"\0")
        loaded: dict[str, Any] = json.loads(message)
        return loaded


@contextlib.contextmanager
def browser(chromium: str) -> Iterator[Page]:
    """A page in a browser of its own, with a profile that goes with it."""
    commands_in, commands_out = os.pipe()
    answers_in, answers_out = os.pipe()
    # High numbers, so that 3 and 4 are free for the shell to put them at.
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (commands_in, answers_out)]
    for end in (commands_in, answers_out):
        os.close(end)
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                *("bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash"),
                *(chromium, *FLAGS, f"--user-data-dir={profile}", "about:blank"),
            ],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in ends:
            os.close(end)
        page = Page(commands_out, answers_in)
        try:
            page.attach()
            yield page
        finally:
            os.close(commands_out)  # at which Chromium ends, its helpers first
            os.close(answers_in)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
