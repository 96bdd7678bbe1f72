"""Objects of Amazon S3 and of stores that speak its protocol, with one request per image.

boto3 finds the credentials, the region and the address, and signs; bytes are read by the fetcher of this package, and
everything else is done by boto3.

The endpoint, region and keys are those of Beam's own S3 options (``--s3_endpoint_url`` and so on), else whatever boto3
finds (environment, ``~/.aws``, the role of the machine). Beam's file system for ``s3://`` is not used itself: it makes
a new client for each file, which takes longer than reading an image.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO, NamedTuple

import google_crc32c

from beam_tfrecord.errors import StorageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.answers import Place, Refusal, Words, network_faults, network_reason
from beam_tfrecord.storage.beam_plugins import s3_options
from beam_tfrecord.storage.clients import shared_client
from beam_tfrecord.storage.faults import TransientError, UnreadableFileError
from beam_tfrecord.storage.fetch import CONNECT_SECONDS, SILENT_SECONDS, Answer, Fetcher, Limit
from beam_tfrecord.storage.objects import HttpStore, ObjectInfo, Page
from beam_tfrecord.storage.stores import too_large

try:
    import boto3
    import botocore.session
    from boto3.s3.transfer import TransferConfig
    from botocore import exceptions as boto_errors
    from botocore.config import Config
    from urllib3.exceptions import HTTPError
except ModuleNotFoundError as error:
    raise StorageError(f"s3:// needs the package {error.name}: pip install 'beam_tfrecord[aws]'") from None

_CODE = re.compile(rb"<Code>([A-Za-z0-9]+)</Code>")
_ELSEWHERE_STATUS = frozenset({301, 307, 400})  # of a bucket in another region
_CHECKSUMS: dict[str, Callable[[bytes], bytes]] = {
    "crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "crc32c": lambda data: google_crc32c.value(data).to_bytes(4, "big"),
    "sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    "sha256": lambda data: hashlib.sha256(data).digest(),
}
_DELETES_PER_REQUEST = 1000  # the most that DeleteObjects takes
_LARGEST_PUT = 1024 * 1024 * 1024  # larger objects go in parts; S3 itself takes up to 5 GiB at once

LOGIN_HINT = "run `aws configure`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_BUSY = (
    "SlowDown",
    "RequestTimeout",
    "InternalError",
    "ServiceUnavailable",
    "Throttling",
    "ConditionalRequestConflict",
)
_IDENTITY = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired")


class S3Store(HttpStore):
    """``s3://bucket/key``."""

    scheme = "s3"
    words = Words(transient=_BUSY, no_bucket=("NoSuchBucket",), refused=(*_IDENTITY, "AccessDenied"))

    def _media(
        self, place: Place, headers: dict[str, str], version: str | None, limit: Limit | None, good: tuple[int, ...]
    ) -> Answer:
        """To a GET whose URL boto3 signed, at a fifth of the processor time that boto3 takes for it."""
        # What of the headers is signed must be sent.
        signed, sent = ({}, headers) if headers else ({"ChecksumMode": "ENABLED"}, {"x-amz-checksum-mode": "ENABLED"})
        sent = {**sent, "If-Match": version} if version else sent
        key = {"Bucket": place.bucket, "Key": place.name}
        with self._faults(place):
            url = self._client.generate_presigned_url("get_object", Params={**key, **signed})
            answer = self._way.fetcher.send(url, sent, limit=limit)
            if answer.status in _ELSEWHERE_STATUS:  # in another region, which boto3 knows once it has asked
                asked = {name.replace("-", ""): value for name, value in sent.items() if name in ("Range", "If-Match")}
                body = self._client.get_object(**key, **asked)["Body"]
                with body:
                    data = body.read(limit.max_bytes + 1 if limit else None)
                if limit and len(data) > limit.max_bytes:
                    raise UnreadableFileError(too_large(limit.shown, None, limit.max_bytes))
                return Answer(206 if headers else 200, {}, data)
        if answer.status not in good:
            found = _CODE.search(answer.body)
            code = found[1].decode() if found else ""
            self._refuse(Refusal(answer.status, code, code, answer.headers.get("retry-after")), place)
        return answer

    def _checked(self, answer: Answer, place: Place, max_bytes: int | None) -> bytes:
        for kind, checksum in _CHECKSUMS.items():
            stated = answer.headers.get(f"x-amz-checksum-{kind}", "-").partition(",")[0]
            if "-" not in stated and stated != base64.b64encode(checksum(answer.body)).decode():  # with "-": of parts
                raise TransientError("the bytes that came do not fit their checksum")
        return answer.body

    def _stat(self, bucket: str, name: str) -> ObjectInfo:
        with self._faults(self._place(bucket, name)):
            head = self._client.head_object(Bucket=bucket, Key=name)
        return ObjectInfo(int(head["ContentLength"]), str(head["ETag"]))

    def _list(self, bucket: str, prefix: str, delimiter: str, token: str | None, limit: int | None) -> Page:
        arguments: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
        if delimiter:
            arguments["Delimiter"] = delimiter
        if token:
            arguments["ContinuationToken"] = token
        if limit:
            arguments["MaxKeys"] = limit
        with self._faults(self._place(bucket)):
            answer = self._client.list_objects_v2(**arguments)
        root = f"s3://{bucket}/"
        files = [FileInfo(root + item["Key"], item.get("Size")) for item in answer.get("Contents", ())]
        prefixes = [root + item["Prefix"] for item in answer.get("CommonPrefixes", ())]
        return Page(files, prefixes, answer.get("NextContinuationToken"))

    def _put(self, bucket: str, name: str, stream: BinaryIO, size: int) -> None:
        with self._faults(self._place(bucket)):
            if size <= _LARGEST_PUT:
                self._client.put_object(Bucket=bucket, Key=name, Body=stream, ContentLength=size)
            else:
                self._client.upload_fileobj(_Unclosed(stream), bucket, name, Config=_in_parts())

    def _put_if(self, bucket: str, name: str, data: bytes, version: str | None) -> None:
        condition = {"IfMatch": version} if version is not None else {"IfNoneMatch": "*"}
        with self._faults(self._place(bucket, name)):
            try:
                self._client.put_object(Bucket=bucket, Key=name, Body=data, **condition)
            except boto_errors.ClientError as error:
                if _refusal(error).status != 501:  # a store of another make that knows no conditions
                    raise
                self._client.put_object(Bucket=bucket, Key=name, Body=data)

    def _copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        with self._faults(self._place(*source)):
            self._client.copy({"Bucket": source[0], "Key": source[1]}, *target, Config=_in_parts())

    def _delete(self, bucket: str, names: Sequence[str]) -> None:
        for start in range(0, len(names), _DELETES_PER_REQUEST):
            keys = [{"Key": name} for name in names[start : start + _DELETES_PER_REQUEST]]
            with self._faults(self._place(bucket)):
                answer = self._client.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
            for failed in answer.get("Errors", ()):
                code = failed.get("Code", "")
                if code not in ("NoSuchKey", "NotFound", "404"):
                    self._refuse(Refusal(0, code, code), self._place(bucket, failed.get("Key", "")))

    def _delete_one(self, place: Place) -> None:
        self._delete(place.bucket, [place.name or ""])

    @property
    def _client(self) -> Any:
        return self._way.client

    @cached_property
    def _way(self) -> _Way:
        settings = s3_options()
        connections = self.options.connections
        environment = sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))
        key = ("s3", connections, *settings.items(), *environment)
        return shared_client(key, lambda: _connect(connections, settings))

    @contextmanager
    def _faults(self, place: Place) -> Iterator[None]:
        """Faults of one request as the stores' contract wants them."""
        try:
            with network_faults(place):
                yield
        except boto_errors.ClientError as error:
            self._refuse(_refusal(error), place)
        except (boto_errors.NoCredentialsError, boto_errors.PartialCredentialsError):
            raise StorageError(f"{place}: there are no AWS credentials; {LOGIN_HINT}") from None
        except (boto_errors.TokenRetrievalError, boto_errors.SSOError, boto_errors.CredentialRetrievalError):
            raise StorageError(
                f"{place}: the AWS credentials cannot be fetched or have expired; log in again"
            ) from None
        except (boto_errors.ParamValidationError, boto_errors.InvalidRegionError) as error:
            raise StorageError(f"{place}: {error}") from None
        except boto_errors.SSLError:
            raise StorageError(f"{place}: the certificate of the server is not trusted") from None
        except (boto_errors.BotoCoreError, HTTPError, ConnectionError, TimeoutError) as error:
            raise TransientError(network_reason(error)) from None

    def _needs(self, refusal: Refusal, place: Place) -> str:
        if refusal.says(_IDENTITY):
            return f"the AWS credentials are not accepted ({refusal.code}); {LOGIN_HINT}"
        return (
            f"the AWS account in use has no permission to use the bucket {place.bucket!r} ({refusal.code}); it needs "
            "s3:GetObject and s3:ListBucket to read, s3:PutObject and s3:DeleteObject too to write"
        )


def _refusal(error: Any) -> Refusal:
    about = error.response.get("ResponseMetadata", {})
    code = str(error.response.get("Error", {}).get("Code", ""))
    return Refusal(int(about.get("HTTPStatusCode") or 0), code, code, about.get("HTTPHeaders", {}).get("retry-after"))


class _Way(NamedTuple):
    """client: boto3's. fetcher: for the URLs that it signs, with the same trust."""

    client: Any
    fetcher: Fetcher


def _connect(connections: int, settings: dict[str, Any]) -> _Way:
    config = Config(
        max_pool_connections=connections,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=SILENT_SECONDS,
        retries={"total_max_attempts": 1},  # ours are counted
    )
    session = botocore.session.get_session()
    try:
        client = boto3.session.Session(botocore_session=session).client("s3", config=config, **settings)
        certificates = settings.get("verify", session.get_config_variable("ca_bundle"))
    except (boto_errors.BotoCoreError, ValueError) as error:
        raise StorageError(f"s3:// cannot be used: {error}") from None
    client.meta.events.register_first("choose-signer.s3", _as_requests)
    return _Way(client, Fetcher(certificates=certificates))


def _as_requests(signature_version: str, **_: Any) -> str | None:
    """URLs are signed as requests are. boto3 would sign them as of old, which newer buckets do not take."""
    return "s3v4-query" if signature_version in ("v4-query", "s3v4-query") else None


def _in_parts() -> Any:
    """In one thread: the callers have many of their own."""
    return TransferConfig(multipart_threshold=_LARGEST_PUT, multipart_chunksize=64 * 1024 * 1024, use_threads=False)


class _Unclosed:
    """A stream that stays open when the transfer manager closes it, so that the upload can be tried again."""

    def __init__(self, stream: BinaryIO) -> None:
        self.read = stream.read
        self.seek = stream.seek
        self.tell = stream.tell
