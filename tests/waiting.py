"""How tests wait: for an event, with a bound that no machine under load comes near."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 300.0  # seconds


def wait_until(what: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for an event. Raises TimeoutError when it does not come at all."""
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come within {seconds} s")
        time.sleep(0.02)
