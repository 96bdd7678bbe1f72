"""What faults of HTTP mean, in words that never show a URL: it may be signed."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from time import time

from beam_tfrecord.storage.faults import TransientError
from beam_tfrecord.storage.fetch import CONNECT_SECONDS, SILENT_SECONDS

TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
MISSING_STATUS = frozenset({404, 410})
REFUSED_STATUS = frozenset({401, 403})


def network_reason(error: BaseException) -> str:
    """Why a request of another library got no whole answer, from the names of its errors: it may be any of many."""
    text = repr(error)
    if "SSLError" in text:
        return "the certificate of the server is not trusted, or its TLS does not fit"
    if "ConnectTimeout" in text:
        return f"no connection within {CONNECT_SECONDS} s"
    if isinstance(error, TimeoutError) or "timed out" in text or "ReadTimeout" in text:
        return f"no answer within {SILENT_SECONDS} s"
    if "NameResolution" in text or "getaddrinfo" in text:
        return "the name of the server is not known"
    if "refused" in text:
        return "the server refused the connection"
    if "EndpointConnection" in text:
        return "the server cannot be reached"
    if "IncompleteRead" in text:
        return "the answer was cut short"
    return "the connection was lost"


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
