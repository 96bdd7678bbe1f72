"""Network clients, made when they are first needed and shared by everything in a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

Client = TypeVar("Client")

_clients: dict[Hashable, Any] = {}
_lock = threading.Lock()


def shared_client(key: tuple[Hashable, ...], make: Callable[[], Client]) -> Client:
    """The client of this process for ``key``, made by the first who asks.

    A forked process makes its own: connections cannot be shared across a fork.
    """
    whole_key = (os.getpid(), *key)
    client = _clients.get(whole_key)
    if client is None:
        with _lock:
            client = _clients.get(whole_key)
            if client is None:
                client = _clients[whole_key] = make()
    return cast(Client, client)


def forget_clients() -> None:
    """Let go of all clients of this process, so that the next use sees changed credentials or endpoints."""
    with _lock:
        _clients.clear()
