"""What an answer of Cloud Storage means when it is no success."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from google.auth.exceptions import GoogleAuthError, TransportError

from beam_tfrecord.errors import StorageError
from beam_tfrecord.storage.faults import ChangedFileError, MissingFileError, TransientError, UnreadableFileError
from beam_tfrecord.storage.fetch import FetchError
from beam_tfrecord.storage.gcs_login import LOGIN_HINT, Login
from beam_tfrecord.storage.web_faults import (
    MISSING_STATUS,
    REFUSED_STATUS,
    TRANSIENT_STATUS,
    network_reason,
    transient_status,
)


@contextmanager
def gcs_faults(login: Login, bucket: str, name: str | None = None) -> Iterator[None]:
    """Faults of one request as the stores' contract wants them. name: None when it concerns the whole bucket."""
    place = f"gs://{bucket}/{name or ''}"
    try:
        yield
    except FetchError as error:
        if error.is_permanent:
            raise StorageError(f"{place}: {error.reason}") from None
        if login.is_anonymous and not os.environ.get("STORAGE_EMULATOR_HOST"):
            raise StorageError(
                f"{place}: there are no Google Cloud credentials, and without them the server cannot be used "
                f"({error.reason}); {LOGIN_HINT}"
            ) from None
        raise TransientError(error.reason) from None
    except TransportError as error:
        raise TransientError(f"the login server cannot be reached ({network_reason(error)})") from None
    except GoogleAuthError:
        raise StorageError(f"{place}: the Google Cloud credentials are not accepted any more; {LOGIN_HINT}") from None


def raise_for_answer(
    status: int, text: str, retry_after: str | None, login: Login, bucket: str, name: str | None
) -> NoReturn:
    """The fault for an HTTP status. text: what the server said; it is searched for words and never shown."""
    place = f"gs://{bucket}/{name or ''}"
    if status in TRANSIENT_STATUS or "rateLimitExceeded" in text or "RateLimitExceeded" in text:
        raise transient_status(status, retry_after)
    if status == 400 and "crc32c" in text.lower():
        raise TransientError("the bytes that arrived do not fit their checksum")
    if status in MISSING_STATUS:
        if name is None:
            raise StorageError(f"{place}: the bucket {bucket!r} does not exist")
        has_bucket = "bucket does not exist" not in text
        raise MissingFileError(f"{place} does not exist" + ("" if has_bucket else ": there is no such bucket"))
    if status == 412:
        raise ChangedFileError(f"{place} was changed while it was being read")
    if status in REFUSED_STATUS or (status == 400 and "requester pays" in text.lower()):
        raise StorageError(f"gs://{bucket}: {_refusal(login, bucket, text)}")
    raise UnreadableFileError(f"{place}: the server answered HTTP {status}")


def _refusal(login: Login, bucket: str, text: str) -> str:
    """Why the server refused, and what is missing."""
    if "requester pays" in text.lower() or "UserProject" in text:
        return "the bucket is set to requester pays; name the project that pays with --gcs_user_project"
    if login.is_anonymous:
        return f"the bucket is not public, and there are no Google Cloud credentials; {LOGIN_HINT}"
    return (
        f"{login.account or 'the account in use'} has no permission to use the bucket {bucket!r}; give it the role "
        "Storage Object Viewer to read (storage.objects.get and list), and Storage Object User to write as well "
        "(storage.objects.create and delete)"
    )
