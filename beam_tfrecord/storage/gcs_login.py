"""The way to Cloud Storage with whatever credentials this machine has, found without long waits."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError

from beam_tfrecord.errors import StorageError
from beam_tfrecord.storage.answers import Place, network_reason
from beam_tfrecord.storage.faults import TransientError
from beam_tfrecord.storage.fetch import Answer, Fetcher

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

LOGIN_HINT = (
    "log in with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to the key file of a "
    "service account"
)
_SCOPES = ("https://www.googleapis.com/auth/devstorage.full_control", "https://www.googleapis.com/auth/cloud-platform")
_PRODUCT_NAME = "/sys/class/dmi/id/product_name"
_METADATA_PROBE_SECONDS = 1.0


class NoMetadataServerError(Exception):
    """Nothing answers where the metadata server of Google Cloud would be."""


def find_credentials() -> Credentials | None:
    """Application default credentials (https://google.aip.dev/auth/4110); None when there are none.

    The last place that is looked at is the metadata server, which exists on Google Cloud only; elsewhere the search for
    it would take many seconds, so it gets one second there. Raises google.auth.exceptions.GoogleAuthError when there
    are credentials that cannot be used, such as a damaged key file.
    """
    import google.auth
    from google.auth._cloud_sdk import get_application_default_credentials_path
    from google.auth.transport.requests import Request

    request = Request() if _is_google_machine() else _probing_request(Request())
    told = logging.getLogger("google.auth._default")  # which warns of what is raised as well
    told.addFilter(_nothing)
    try:
        credentials, _ = google.auth.default(scopes=_SCOPES, request=request)
    except NoMetadataServerError:
        return None
    except DefaultCredentialsError:
        of_gcloud: str = get_application_default_credentials_path()  # type: ignore[no-untyped-call]
        if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or os.path.isfile(of_gcloud):
            raise  # they are there, and damaged
        return None
    finally:
        told.removeFilter(_nothing)
    return credentials


def _nothing(record: logging.LogRecord) -> bool:
    return False


def _is_google_machine() -> bool:
    try:
        with open(_PRODUCT_NAME, encoding="utf-8", errors="replace") as stream:
            return stream.read().strip().startswith("Google")
    except OSError:
        return False


def _probing_request(request: Any) -> Any:
    """A transport whose requests to the metadata server are given up after one short try."""
    hosts = ("169.254.169.254", "metadata.google.internal", os.environ.get("GCE_METADATA_IP") or "169.254.169.254")

    def send(url: str, *args: Any, timeout: float = 120, **kwargs: Any) -> Any:
        if not any(f"//{host}" in url for host in hosts):
            return request(url, *args, timeout=timeout, **kwargs)
        try:
            return request(url, *args, timeout=min(timeout, _METADATA_PROBE_SECONDS), **kwargs)
        except TransportError as error:
            raise NoMetadataServerError from error

    return send


def connect(emulator: str) -> Login:
    """Everything that is needed to talk to Cloud Storage, made without a request to it.

    emulator: address of a server to use in its place, as in STORAGE_EMULATOR_HOST; it gets no credentials.
    """
    if emulator:
        endpoint = (emulator if "://" in emulator else f"http://{emulator}").rstrip("/")
        return Login(Fetcher(), endpoint, None, None, "")
    from google.auth.transport.requests import Request

    try:
        credentials = find_credentials()
    except GoogleAuthError as error:
        raise StorageError(f"the Google Cloud credentials cannot be used: {error}; {LOGIN_HINT}") from None
    universe = getattr(credentials, "universe_domain", None) or "googleapis.com"
    endpoint = os.environ.get("API_ENDPOINT_OVERRIDE") or f"https://storage.{universe}"
    account = str(getattr(credentials, "service_account_email", "") or "")
    return Login(Fetcher(), endpoint.rstrip("/"), credentials, Request(), account if "@" in account else "")


@dataclass(frozen=True)
class Login:
    """The way to the server, and the identity that is used there.

    endpoint: scheme and host of the server. credentials: None for nobody. account: e-mail address, '' when it is not
    known.
    """

    fetcher: Fetcher
    endpoint: str
    credentials: Any
    auth_request: Any
    account: str

    @property
    def is_anonymous(self) -> bool:
        """Whether requests go without credentials."""
        return self.credentials is None

    def send(
        self, method: str, path: str, headers: dict[str, str], body: BinaryIO | None = None, **more: Any
    ) -> Answer:
        """One request, and another with new credentials when those were taken back before their time.

        These are renewed when they are about to expire. more: see :meth:`Fetcher.send`.
        """
        url = self.endpoint + path
        answer = self.fetcher.send(url, self._signed(method, url, headers), method=method, body=body, **more)
        if answer.status == 401 and not self.is_anonymous:
            self.credentials.refresh(self.auth_request)
            if body is not None:
                body.seek(0)
            answer = self.fetcher.send(url, self._signed(method, url, headers), method=method, body=body, **more)
        return answer

    def _signed(self, method: str, url: str, headers: dict[str, str]) -> dict[str, str]:
        if self.is_anonymous:
            return headers
        headers = dict(headers)
        self.credentials.before_request(self.auth_request, method, url, headers)
        return headers


@contextmanager
def login_faults(login: Login, place: Place) -> Iterator[None]:
    """Faults that have to do with who asks."""
    try:
        yield
    except TransientError as error:
        if login.is_anonymous and not os.environ.get("STORAGE_EMULATOR_HOST"):
            raise StorageError(
                f"{place}: there are no Google Cloud credentials, and without them the server cannot be used "
                f"({error.reason}); {LOGIN_HINT}"
            ) from None
        raise
    except TransportError as error:
        raise TransientError(f"the login server cannot be reached ({network_reason(error)})") from None
    except GoogleAuthError:
        raise StorageError(f"{place}: the Google Cloud credentials are not accepted any more; {LOGIN_HINT}") from None
