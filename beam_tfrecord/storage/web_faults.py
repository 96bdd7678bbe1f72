"""What faults of HTTP mean, in words that never show a URL: it may be signed."""

from __future__ import annotations

import os
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

import requests
from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_environ_proxies, select_proxy
from urllib3 import PoolManager, ProxyManager, Timeout
from urllib3 import exceptions as pool_errors

from beam_tfrecord.storage.faults import TransientError

TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
MISSING_STATUS = frozenset({404, 410})
REFUSED_STATUS = frozenset({401, 403})

CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 60.0
TIMEOUTS = (CONNECT_TIMEOUT, READ_TIMEOUT)

# What the HTTP libraries raise when the network, and not the answer, is at fault.
NETWORK_ERRORS = (requests.RequestException, pool_errors.HTTPError, ConnectionError, TimeoutError)


def pool_for(url: str, connections: int) -> PoolManager:
    """A pool of ``connections`` connections to the server of ``url``, by the proxy and with the certificates that the
    environment names (HTTPS_PROXY, NO_PROXY, REQUESTS_CA_BUNDLE), just as requests would do."""
    arguments: dict[str, Any] = {
        "num_pools": 2,
        "maxsize": connections,
        "timeout": Timeout(connect=CONNECT_TIMEOUT, read=READ_TIMEOUT),
        "cert_reqs": "CERT_REQUIRED",
        "ca_certs": os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or DEFAULT_CA_BUNDLE_PATH,
    }
    proxy = select_proxy(url, get_environ_proxies(url))
    return ProxyManager(proxy, **arguments) if proxy else PoolManager(**arguments)


def network_reason(error: BaseException) -> str:
    """Why a request got no whole answer."""
    text = repr(error)
    if isinstance(error, requests.exceptions.SSLError):
        return "the certificate of the server is not trusted, or its TLS does not fit"
    if isinstance(error, requests.ConnectTimeout) or "ConnectTimeout" in text:
        return f"no connection within {CONNECT_TIMEOUT:g} s"
    if isinstance(error, requests.Timeout | TimeoutError) or "Read timed out" in text or "ReadTimeout" in text:
        return f"no answer within {READ_TIMEOUT:g} s"
    if "NameResolution" in text or "getaddrinfo" in text:
        return "the name of the server is not known"
    if "refused" in text:
        return "the server refused the connection"
    if "EndpointConnection" in text:
        return "the server cannot be reached"
    if "IncompleteRead" in text:
        return "the answer was cut short"
    if isinstance(error, requests.ConnectionError | pool_errors.HTTPError | ConnectionError):
        return "the connection was lost"
    return type(error).__name__


def is_permanent(error: BaseException) -> bool:
    """Whether another attempt would fail in the same way."""
    permanent = (
        requests.exceptions.SSLError,
        requests.exceptions.InvalidURL,
        requests.exceptions.MissingSchema,
        requests.exceptions.InvalidSchema,
        requests.exceptions.InvalidProxyURL,
        requests.exceptions.InvalidHeader,
    )
    return isinstance(error, permanent)


def retry_after_seconds(value: str | None) -> float:
    """Seconds of a Retry-After header (RFC 9110, 10.2.3: a number or a date); 0 when it is absent or senseless."""
    if not value:
        return 0.0
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except (ValueError, TypeError):
        return 0.0


def transient_status(status: int, retry_after: str | None = None) -> TransientError:
    """The fault for an answer that asks to come back later."""
    words = {429: "too many requests", 408: "the server waited too long"}
    return TransientError(
        f"{words.get(status, 'the server is in trouble')} (HTTP {status})", retry_after_seconds(retry_after)
    )
