"""Objects of Amazon S3 and of stores that speak its protocol, with one request per image.

The endpoint, region and keys are those of Beam's own S3 options (``--s3_endpoint_url`` and so on), else whatever boto3
finds (environment, ``~/.aws``, the role of the machine). Beam's file system for ``s3://`` is not used itself: it makes
a new client for each file, which takes longer than reading an image.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO, NoReturn

from beam_tfrecord.errors import StorageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.beam_plugins import s3_options
from beam_tfrecord.storage.clients import shared_client
from beam_tfrecord.storage.faults import ChangedFileError, MissingFileError, TransientError, UnreadableFileError
from beam_tfrecord.storage.objects import LimitedBuffer, ObjectInfo, ObjectStore, Page
from beam_tfrecord.storage.web_faults import (
    CONNECT_TIMEOUT,
    NETWORK_ERRORS,
    READ_TIMEOUT,
    TRANSIENT_STATUS,
    network_reason,
    transient_status,
)

try:
    import boto3
    from boto3.s3.transfer import TransferConfig
    from botocore import exceptions as boto_errors
    from botocore.config import Config
except ModuleNotFoundError as error:
    raise StorageError(f"s3:// needs the package {error.name}: pip install 'beam_tfrecord[aws]'") from None

_READ_CHUNK = 1024 * 1024
_DELETES_PER_REQUEST = 1000  # the most that DeleteObjects takes
_LARGEST_PUT = 1024 * 1024 * 1024  # larger objects go in parts; S3 itself takes up to 5 GiB at once

LOGIN_HINT = "run `aws configure`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_MISSING_CODES = frozenset({"NoSuchKey", "404", "NotFound"})
_TRANSIENT_CODES = frozenset(
    {
        "SlowDown",
        "RequestTimeout",
        "InternalError",
        "ServiceUnavailable",
        "Throttling",
        "503",
        "ConditionalRequestConflict",
    }
)
_IDENTITY_CODES = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
)


class S3Store(ObjectStore):
    """``s3://bucket/key``; the key is everything behind the bucket's ``/``, character by character."""

    def _get(self, bucket: str, name: str, max_bytes: int | None) -> bytes:
        buffer = LimitedBuffer(f"s3://{bucket}/{name}", max_bytes)
        with self._faults(bucket, name):
            body = self._client.get_object(Bucket=bucket, Key=name)["Body"]
            with body:
                for chunk in body.iter_chunks(_READ_CHUNK):
                    buffer.write(chunk)
        return buffer.getvalue()

    def _get_range(self, bucket: str, name: str, start: int, length: int, version: str | None) -> bytes:
        condition = {"IfMatch": version} if version else {}
        with self._faults(bucket, name):
            try:
                span = f"bytes={start}-{start + length - 1}"
                body = self._client.get_object(Bucket=bucket, Key=name, Range=span, **condition)["Body"]
            except boto_errors.ClientError as error:
                if _status(error) == 416:
                    return b""
                raise
            with body:
                return body.read()  # type: ignore[no-any-return]

    def _stat(self, bucket: str, name: str) -> ObjectInfo:
        with self._faults(bucket, name):
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
        with self._faults(bucket):
            answer = self._client.list_objects_v2(**arguments)
        root = f"s3://{bucket}/"
        files = [FileInfo(root + item["Key"], int(item["Size"])) for item in answer.get("Contents", ())]
        prefixes = [root + item["Prefix"] for item in answer.get("CommonPrefixes", ())]
        return Page(files, prefixes, answer.get("NextContinuationToken"))

    def _put(self, bucket: str, name: str, stream: BinaryIO, size: int) -> None:
        with self._faults(bucket):
            if size <= _LARGEST_PUT:
                self._client.put_object(Bucket=bucket, Key=name, Body=stream, ContentLength=size)
            else:
                self._client.upload_fileobj(_Unclosed(stream), bucket, name, Config=_in_parts())

    def _put_if(self, bucket: str, name: str, data: bytes, version: str | None) -> None:
        condition = {"IfMatch": version} if version is not None else {"IfNoneMatch": "*"}
        with self._faults(bucket):
            try:
                self._client.put_object(Bucket=bucket, Key=name, Body=data, **condition)
            except boto_errors.ClientError as error:
                if _status(error) != 501:  # a store of another make that knows no conditions
                    raise
                self._client.put_object(Bucket=bucket, Key=name, Body=data)

    def _copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        with self._faults(*source):
            self._client.copy({"Bucket": source[0], "Key": source[1]}, *target, Config=_in_parts())

    def _delete(self, bucket: str, names: Sequence[str]) -> None:
        for start in range(0, len(names), _DELETES_PER_REQUEST):
            keys = [{"Key": name} for name in names[start : start + _DELETES_PER_REQUEST]]
            with self._faults(bucket):
                answer = self._client.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
            for failed in answer.get("Errors", ()):
                if failed.get("Code") in _TRANSIENT_CODES:
                    raise TransientError(f"the server is in trouble ({failed['Code']})")
                if failed.get("Code") not in _MISSING_CODES:
                    raise StorageError(f"s3://{bucket}/{failed.get('Key')}: cannot be deleted ({failed.get('Code')})")

    @cached_property
    def _client(self) -> Any:
        settings = s3_options()
        connections = self.options.connections
        environment = sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))
        key = ("s3", connections, *settings.items(), *environment)
        return shared_client(key, lambda: _connect(connections, settings))

    @contextmanager
    def _faults(self, bucket: str, name: str | None = None) -> Iterator[None]:
        """Faults of one request as the stores' contract wants them. name: None when it concerns the whole bucket."""
        place = f"s3://{bucket}/{name or ''}"
        try:
            yield
        except boto_errors.ClientError as error:
            _raise_for_answer(error, bucket, name)
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
        except (boto_errors.BotoCoreError, *NETWORK_ERRORS) as error:
            raise TransientError(network_reason(error)) from None


def _raise_for_answer(error: Any, bucket: str, name: str | None) -> NoReturn:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = _status(error)
    place = f"s3://{bucket}/{name or ''}"
    if status in TRANSIENT_STATUS or code in _TRANSIENT_CODES:
        headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        raise transient_status(status, headers.get("retry-after")) from None
    if code == "NoSuchBucket":
        if name is None:
            raise StorageError(f"{place}: the bucket {bucket!r} does not exist") from None
        raise MissingFileError(f"{place} does not exist: there is no such bucket") from None
    if code in _MISSING_CODES or status == 404:
        raise MissingFileError(f"{place} does not exist") from None
    if code in _IDENTITY_CODES:
        raise StorageError(f"{place}: the AWS credentials are not accepted ({code}); {LOGIN_HINT}") from None
    if status in (401, 403):
        raise StorageError(
            f"s3://{bucket}: the AWS account in use has no permission to use the bucket {bucket!r} ({code}); it needs "
            "s3:GetObject and s3:ListBucket to read, s3:PutObject and s3:DeleteObject too to write"
        ) from None
    if status == 412:
        raise ChangedFileError(f"{place} was changed while it was being read") from None
    raise UnreadableFileError(f"{place}: the server answered {code or 'HTTP'} ({status})") from None


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)


def _connect(connections: int, settings: dict[str, Any]) -> Any:
    config = Config(
        max_pool_connections=connections,
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        retries={"total_max_attempts": 1},  # ours are counted
    )
    try:
        return boto3.session.Session().client("s3", config=config, **settings)
    except (boto_errors.BotoCoreError, ValueError) as error:
        raise StorageError(f"s3:// cannot be used: {error}") from None


def _in_parts() -> Any:
    """In one thread: the callers have many of their own."""
    return TransferConfig(multipart_threshold=_LARGEST_PUT, multipart_chunksize=64 * 1024 * 1024, use_threads=False)


class _Unclosed:
    """A stream that stays open when the transfer manager closes it, so that the upload can be tried again."""

    def __init__(self, stream: BinaryIO) -> None:
        self.read = stream.read
        self.seek = stream.seek
        self.tell = stream.tell
