"""Who owns a place that is written: one run at a time, by a lease that lies beside what it writes.

A lease is a small JSON file, ``.lease.json`` in an output folder or ``.NAME.lease.json`` beside an output file. It is
taken atomically: a hard link on disks, a generation match in Cloud Storage, ``If-None-Match: *`` in S3. Whoever comes
second is told who holds it. The holder renews it from a thread of its own, and asks once more before it publishes: a
run whose lease is gone, or is another's, publishes nothing.

Its lifetime is five minutes, and it is renewed every 30 seconds. A renewal that meets trouble is tried again by the
storage for up to two minutes, so that two rounds may fail and the clocks of two machines may differ by a minute before
a lease that lives looks dead; and after a crash on another machine nobody waits for longer than it takes to see what
happened. A holder on this machine whose process is gone (by its number and its start time, in the same process
namespace of the same boot) is dead at once.

A store that ignores conditions (some that speak S3's protocol, Beam's other file systems) is found out by a second
write under a condition that cannot hold. There a lease counts when it is still there a moment after it was written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from beam_tfrecord.errors import StorageError
from beam_tfrecord.storage.facade import Storage
from beam_tfrecord.storage.uris import name_of, parent, public_uri, scheme_of

LEASE_NAME = ".lease.json"
LIFETIME = 300.0  # seconds without a renewal after which a lease is nobody's
RENEWAL = 30.0  # seconds between renewals
JOB_LIFETIME = 24 * 3600.0  # of a lease that is left to a job which goes on without its launcher
SETTLE = 2.0  # seconds between writing and reading back, where a store ignores conditions: a request may be that late
_TURN = 1.0  # seconds between two looks at a lease that is waited for
_ATTEMPTS = 8


class NoLongerWatching(KeyboardInterrupt):
    """The launcher was stopped and its job goes on: the lease is the job's from now on."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lease, as its file tells. Times are seconds since 1970.

    id: of this lease, never used again. machine: boot and process namespace in which ``pid`` and ``started`` mean
    something, '' where nothing tells. is_left: nobody waits for the job; its last step ends the lease.
    """

    id: str
    command: str
    host: str
    pid: int
    machine: str
    started: str
    since: float
    renewed: float
    lifetime: float = LIFETIME
    is_left: bool = False

    def is_dead(self, now: float) -> bool:
        """Whether another may take the lease over."""
        if now > self.renewed + self.lifetime:
            return True
        return bool(self.machine) and self.machine == _machine() and _started(self.pid) != self.started

    def __str__(self) -> str:
        ago = max(time.time() - self.renewed, 0)
        return (
            f"{self.command}, process {self.pid} on {self.host}, since {_shown(self.since)} "
            f"(last sign of life {ago:,.0f} s ago)"
        )


@dataclass(frozen=True)
class LeaseKey:
    """What a worker needs to know of a lease: where it lies, and which it is."""

    uri: str
    id: str

    def confirm(self, storage: Storage) -> None:
        """Renew the lease. Raises StorageError when it is gone or is another's by now: nothing may be published."""
        _update(self, storage)

    def end_of_job(self, storage: Storage) -> None:
        """Give back the lease of a job that nobody waits for. Nothing happens while its launcher holds it."""
        holder, version = _read(self.uri, storage)
        if holder is not None and holder.id == self.id and holder.is_left:
            storage.delete_if(self.uri, version)


def owner_of(lease: LeaseKey | None) -> str:
    """What tells the staged files of the run that holds a lease from those of others; '' without one."""
    return lease.id[:12] if lease is not None else ""


@dataclass
class Lease:
    """A lease that this process holds, and renews until it is released."""

    key: LeaseKey
    storage: Storage
    folders: tuple[str, ...] = ()
    _stop: threading.Event = field(default_factory=threading.Event)
    _lost: str = ""
    _renewed: float = field(default_factory=time.time)
    _thread: threading.Thread | None = None
    _is_left: bool = False

    def keep(self) -> None:
        """Renew it from now on."""
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def watch(self) -> None:
        """Raise StorageError once it is known to be lost; asks nobody, so it may be called often."""
        if self._lost:
            raise StorageError(self._lost)

    def confirm(self) -> None:
        """Raise StorageError unless it is held at this moment."""
        self.watch()
        self.key.confirm(self.storage)

    def leave_to_job(self) -> None:
        """Renew it no more and leave it to the job, whose last step ends it."""
        self._end_thread()
        _update(self.key, self.storage, lifetime=JOB_LIFETIME, machine="", is_left=True)
        self._is_left = True

    def release(self) -> None:
        """Give it back, if it is still ours; and the folders that were made for it, if nothing was put there. One that
        was left to a job stays."""
        self._end_thread()
        if self._is_left:
            return
        with contextlib.suppress(OSError, StorageError):  # whoever comes next sees that this process is gone
            holder, version = _read(self.key.uri, self.storage)
            if not version or (holder is not None and holder.id == self.key.id):
                if version:
                    self.storage.delete_if(self.key.uri, version)
                for folder in self.folders:
                    self.storage.remove_empty_folder(folder)

    def _end_thread(self) -> None:
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(RENEWAL)

    def _renew(self) -> None:
        while not self._stop.wait(min(RENEWAL, LIFETIME)):
            try:
                _update(self.key, self.storage)
            except LeaseLostError as lost:
                self._lost = str(lost)
                return
            except (OSError, StorageError) as error:
                if time.time() > self._renewed + LIFETIME:
                    self._lost = (
                        f"{_place(self.key.uri)}: its lease could not be renewed: {error}; nothing was published"
                    )
                    return
            else:
                self._renewed = time.time()


class LeaseLostError(StorageError):
    """The lease is gone, or is another's."""


class LeaseTakenError(StorageError):
    """Somebody else holds the lease, and lives."""


@contextlib.contextmanager
def hold(place: str, storage: Storage, command: str, *, is_file: bool = False) -> Iterator[Lease]:
    """Hold the lease of an output folder (or file) as long as the block runs. Raises what :func:`take` raises.

    When the block is left because nobody watches its job any longer, the lease is left to that job.
    """
    lease = take(place, storage, command, is_file=is_file)
    lease.keep()
    try:
        yield lease
    except NoLongerWatching:
        lease.leave_to_job()
        raise
    except BaseException:
        lease._is_left = False  # the job that it was left to was not even submitted
        lease.release()
        raise
    lease.release()


@contextlib.contextmanager
def turn(place: str, storage: Storage, command: str) -> Iterator[None]:
    """Hold the lease of a file as long as the block runs, once whoever holds it has ended or is dead.

    For steps of one job that an engine may run several times, at the same time and on several machines.
    """
    while True:
        try:
            lease = take(place, storage, command, is_file=True)
        except LeaseTakenError:
            time.sleep(_TURN)
        else:
            break
    lease.keep()
    try:
        yield
    finally:
        lease.release()


_prepared: dict[str, Lease] = {}


def take_for_job(place: str, storage: Storage, command: str) -> LeaseKey:
    """Take the lease of an output folder for a job that somebody else runs, and renew it while this process lives.

    The last step of the job ends it. A later call for the same place takes it from the earlier one of this process.
    """
    uri = lease_uri(place)
    if uri in _prepared:
        _prepared.pop(uri).release()
    lease = take(place, storage, command, is_left=True)
    lease.keep()
    _prepared[uri] = lease
    return lease.key


def give_back(key: LeaseKey) -> None:
    """Release what :func:`take_for_job` took."""
    lease = _prepared.pop(key.uri, None)
    if lease is not None:
        lease.release()


def check_free(place: str, storage: Storage, *, is_file: bool = False) -> None:
    """Raise StorageError, with who it is, when somebody holds the lease of a place; takes nothing.

    Somebody is not :func:`take_for_job` of this process: a later call takes the lease from it.
    """
    uri = lease_uri(place, is_file=is_file)
    holder, _ = _read(uri, storage)
    is_own = holder is not None and uri in _prepared and _prepared[uri].key.id == holder.id
    if holder is not None and not is_own and not holder.is_dead(time.time()):
        raise LeaseTakenError(_taken(place, uri, holder))


def take(place: str, storage: Storage, command: str, *, is_file: bool = False, is_left: bool = False) -> Lease:
    """Take the lease of a place. Raises StorageError, with who holds it, when it cannot be had.

    is_file: the place is a file, not a folder. is_left: for a job that nobody may wait for (see :class:`Holder`).
    """
    uri = lease_uri(place, is_file=is_file)
    folders = () if scheme_of(uri) else _missing_folders(parent(uri), storage)
    for _ in range(_ATTEMPTS):
        holder, version = _read(uri, storage)
        if version and holder is None:
            raise StorageError(
                f"{public_uri(place)}: {public_uri(uri)} is no lease that this version can read; when no run writes "
                "there, delete it"
            )
        if holder is not None and not holder.is_dead(time.time()):
            raise LeaseTakenError(_taken(place, uri, holder))
        own = _new_holder(command, is_left=is_left)
        if not storage.write_if(uri, _to_json(own), version or None):
            continue  # somebody was faster; look who
        if storage.keeps_conditions(uri, _to_json(replace(own, renewed=own.renewed + 0.001))):
            return Lease(LeaseKey(uri, own.id), storage, folders)
        time.sleep(SETTLE)
        holder, _ = _read(uri, storage)
        if holder is not None and holder.id == own.id:
            return Lease(LeaseKey(uri, own.id), storage, folders)
    raise LeaseTakenError(f"{public_uri(place)}: several runs want to write there: start one of them, and wait for it")


def lease_uri(place: str, *, is_file: bool = False) -> str:
    """Where the lease of an output lies."""
    if is_file:
        return f"{parent(place).rstrip('/')}/.{name_of(place)}{LEASE_NAME}"
    return f"{place.rstrip('/')}/{LEASE_NAME}"


def _place(uri: str) -> str:
    """The place that a lease is of, for messages."""
    name = name_of(uri)
    folder = public_uri(parent(uri))
    return folder if name == LEASE_NAME else f"{folder}/{name[1 : -len(LEASE_NAME)]}"


def _taken(place: str, uri: str, holder: Holder) -> str:
    what = "a job that was submitted by" if holder.is_left else "another run writes there:"
    cure = f"wait for it, or name another place; if it is dead, delete {public_uri(uri)}"
    if not holder.is_left or holder.lifetime <= LIFETIME:
        cure += f" or try again after {_shown(holder.renewed + holder.lifetime)}"
    return f"{public_uri(place)}: {what} {holder}; {cure}"


def _update(key: LeaseKey, storage: Storage, **changes: Any) -> None:
    """Renew a lease, with further changes. Raises LeaseLostError."""
    for _ in range(_ATTEMPTS):
        holder, version = _read(key.uri, storage)
        if holder is None or holder.id != key.id:
            whose = "is gone" if holder is None else f"is held by {holder}"
            raise LeaseLostError(
                f"{_place(key.uri)}: the lease of this run {whose}; another run may write there, so this one stops and "
                "publishes nothing"
            )
        if storage.write_if(key.uri, _to_json(replace(holder, renewed=time.time(), **changes)), version):
            return
    raise LeaseLostError(f"{_place(key.uri)}: others write to the lease of this run; it stops and publishes nothing")


def _read(uri: str, storage: Storage) -> tuple[Holder | None, str]:
    """(holder, version) of a lease; no version when there is none, no holder when it cannot be read."""
    try:
        data, version = storage.read_versioned(uri)
    except FileNotFoundError:
        return None, ""
    try:
        values = json.loads(data)
        names = {field.name: values[field.name] for field in dataclasses.fields(Holder)}
        holder = Holder(**names)
        float(holder.renewed + holder.lifetime + holder.since + holder.pid)
    except (ValueError, KeyError, TypeError):
        return None, version
    return holder, version


def _to_json(holder: Holder) -> bytes:
    return json.dumps(dataclasses.asdict(holder), sort_keys=True, indent=1).encode()


def _new_holder(command: str, *, is_left: bool) -> Holder:
    now, pid = time.time(), os.getpid()
    return Holder(
        uuid.uuid4().hex, command, socket.gethostname(), pid, _machine(), _started(pid), now, now, LIFETIME, is_left
    )


def _missing_folders(folder: str, storage: Storage) -> tuple[str, ...]:
    """The folders that have to be made for a file to lie in this one, the deepest first."""
    missing = []
    while folder and not storage.is_folder(folder) and folder not in missing:
        missing.append(folder)
        folder = parent(folder)
    return tuple(missing)


def _machine() -> str:
    """The boot and the process namespace that a process number belongs to; '' where nothing tells."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in ticks after the boot (proc(5), /proc/PID/stat, field 22); '' when it runs no more."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
