"""What went wrong with a file, told apart by who can mend it.

Stores raise only these: :class:`MissingFileError` when there is no such file, :class:`UnreadableFileError` when one
file cannot be read although its place can, and :class:`~beam_tfrecord.errors.StorageError` when the place itself cannot
be used, so that going on makes no sense. Inside of one attempt a store raises :class:`TransientError`, which
:mod:`beam_tfrecord.storage.retry` turns into another attempt, or finally into UnreadableFileError.
"""

from __future__ import annotations

import errno
import os

from beam_tfrecord.errors import StorageError


def _codes(*names: str) -> frozenset[int]:
    """Numbers of error names, as far as this system knows them."""
    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


_MISSING = _codes("ENOENT", "ENOTDIR", "ENAMETOOLONG", "ELOOP", "EISDIR", "ENXIO", "ENODEV")
_NETWORK = _codes("ETIMEDOUT", "ECONNRESET", "ECONNABORTED", "ENETUNREACH", "EHOSTUNREACH", "EHOSTDOWN")
_TRANSIENT = _NETWORK | _codes("EIO", "ESTALE", "EAGAIN", "EBUSY", "EREMOTEIO")
_PLACE_CURES = {
    errno.EMFILE: "too many files are open in this process; raise the limit (ulimit -n 4096) or lower --read_threads",
    errno.ENFILE: "too many files are open on this machine; close other programs or raise fs.file-max",
    errno.ENOMEM: "the machine is out of memory; lower --read_threads or --read_ahead",
    errno.ENOSPC: "the disk is full; free some space, then run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space, then run the same command again",
    errno.EROFS: "the file system is read-only; choose another place for --output",
    errno.EFBIG: "the file is larger than the file system or the limit of the user (ulimit -f) allows",
}


class MissingFileError(FileNotFoundError):
    """There is no file of this name. The message says so in full."""


class NoBucketError(MissingFileError):
    """Not even the bucket is there in which a file would be: a place that cannot be written to."""


class UnreadableFileError(OSError):
    """One file that is there but cannot be read (or written), also when it is tried again."""


class ChangedFileError(UnreadableFileError):
    """A file is another than a request was about, or is there where it must not be."""


class TransientError(Exception):
    """One attempt failed in a way that another one may not. retry_after: seconds that the server asks to wait."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


def local_fault(error: OSError, path: str) -> Exception:
    """What an OSError of the local file system means for the file at ``path``.

    A file that may not be read concerns itself only; a folder that may not be entered, a full disk and a process out of
    file handles concern everything that follows.
    """
    code = error.errno or 0
    if code in _MISSING:
        return MissingFileError(f"{path} " + ("is a folder, not a file" if code == errno.EISDIR else "does not exist"))
    if code in _PLACE_CURES:
        return StorageError(f"{path}: {_PLACE_CURES[code]}")
    if code in (errno.EACCES, errno.EPERM):
        folder = os.path.dirname(path) or "."
        if os.path.exists(path) and os.access(folder, os.X_OK) and not os.path.isdir(path):
            return UnreadableFileError(f"{path}: the permission to use this file is missing; see chmod and chown")
        return StorageError(f"{path}: the permission to use this place is missing; see chmod and chown")
    if code in _TRANSIENT:
        return TransientError(f"{path}: {os.strerror(code)}")
    return UnreadableFileError(f"{path}: {error.strerror or error}")
