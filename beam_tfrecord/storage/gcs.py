"""Objects of Google Cloud Storage, by its JSON API (https://cloud.google.com/storage/docs/json_api/v1): a request each.

google-auth finds and renews the credentials. The rest of Google's client is not used: it takes 0.6 s to import and
milliseconds of Python for a request, in which no other thread runs, and Beam's file system for ``gs://`` makes a new
client and three requests for each file that is opened. What an image has as CRC-32C is compared with what the server
states, so that a body which was changed on the way is noticed and read again.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import uuid
import zlib
from functools import lru_cache
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

import google_crc32c

from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.answers import Place, Refusal, Words, network_faults, strange_answers
from beam_tfrecord.storage.clients import shared_client
from beam_tfrecord.storage.faults import TransientError, UnreadableFileError
from beam_tfrecord.storage.fetch import Answer, Limit
from beam_tfrecord.storage.gcs_login import LOGIN_HINT, Login, connect, login_faults
from beam_tfrecord.storage.objects import HttpStore, ObjectInfo, Page
from beam_tfrecord.storage.stores import too_large

_LIST_FIELDS = "items(name,size),prefixes,nextPageToken"
_CRC32C = re.compile(r"crc32c=([A-Za-z0-9+/]+=*)")
_CHUNK = 1024 * 1024


class GcsStore(HttpStore):
    """``gs://bucket/name``."""

    scheme = "gs"
    words = Words(
        transient=("rateLimitExceeded", "crc32c"),  # too many requests; bytes that arrived unlike their checksum
        no_bucket=("bucket does not exist",),
        refused=("requester pays",),
    )

    def _media(
        self, place: Place, headers: dict[str, str], version: str | None, limit: Limit | None, good: tuple[int, ...]
    ) -> Answer:
        packed = {} if headers else {"Accept-Encoding": "gzip"}
        query = {"alt": "media", "ifGenerationMatch": version}
        return self._ask(place, "download", query, {**headers, **packed}, limit=limit, good=good)

    def _checked(self, answer: Answer, place: Place, max_bytes: int | None) -> bytes:
        stated = _CRC32C.search(answer.headers.get("x-goog-hash", ""))
        if stated and stated[1] != _crc32c(google_crc32c.value(answer.body)):
            raise TransientError("the bytes that came do not fit their checksum")
        if answer.headers.get("content-encoding") == "gzip":  # stored like this: the checksum is of what is stored
            return _unzip(answer.body, str(place), max_bytes)
        return answer.body

    def _stat(self, bucket: str, name: str) -> ObjectInfo:
        place = self._place(bucket, name)
        answer = self._ask(place, query={"fields": "size,generation"})
        with strange_answers(place):
            found = json.loads(answer.body)
            return ObjectInfo(int(found["size"]), str(found["generation"]))

    def _list(self, bucket: str, prefix: str, delimiter: str, token: str | None, limit: int | None) -> Page:
        query = {"prefix": prefix, "delimiter": delimiter, "pageToken": token, "maxResults": limit}
        place, root = self._place(bucket), f"gs://{bucket}/"
        answer = self._ask(place, query={**query, "fields": _LIST_FIELDS})
        with strange_answers(place):
            found = json.loads(answer.body)
            files = [
                FileInfo(root + item["name"], int(item["size"]) if "size" in item else None)
                for item in found.get("items", ())
            ]
            prefixes = sorted(root + folder for folder in found.get("prefixes", ()))
            return Page(files, prefixes, found.get("nextPageToken") or None)

    def _put_if(self, bucket: str, name: str, data: bytes, version: str | None) -> None:
        self._put(bucket, name, io.BytesIO(data), len(data), version or "0")

    def _copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        # A rewrite within one place and storage class is done at once; else it goes on, token by token.
        bucket, name = target
        there = f"/rewriteTo/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
        token = None
        while True:
            query = {"rewriteToken": token}
            answer = self._ask(self._place(*source), query=query, method="POST", more=there, body=io.BytesIO())
            with strange_answers(self._place(*source)):
                found = json.loads(answer.body)
                if found["done"]:
                    return
                token = found["rewriteToken"]

    def _delete_one(self, place: Place) -> None:
        self._ask(place, method="DELETE", good=(200, 204))

    def _put(self, bucket: str, name: str, stream: BinaryIO, size: int, generation: str | None = None) -> None:
        """In one request, whose first part states the checksum: the server takes the object only when it fits."""
        checksum = google_crc32c.Checksum()
        while chunk := stream.read(_CHUNK):
            checksum.update(chunk)
        stream.seek(0)
        border = uuid.uuid4().hex  # which the bytes do not have in them
        about = json.dumps({"name": name, "crc32c": base64.b64encode(checksum.digest()).decode()})
        head = (
            f"--{border}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{about}\r\n"
            f"--{border}\r\nContent-Type: application/octet-stream\r\n\r\n"
        ).encode()
        tail = f"\r\n--{border}--\r\n".encode()
        self._ask(
            self._place(bucket),
            "upload",
            query={"uploadType": "multipart", "ifGenerationMatch": generation},
            headers={"Content-Type": f"multipart/related; boundary={border}"},
            method="POST",
            body=_Joined(head, stream, tail),
            size=len(head) + size + len(tail),
        )

    def _ask(
        self,
        place: Place,
        service: str = "",
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        *,
        method: str = "GET",
        more: str = "",
        good: tuple[int, ...] = (200,),
        **sent: Any,
    ) -> Answer:
        """One request whose answer is a good one.

        service: ``download``, ``upload`` or ''. more: behind the path. sent: see :meth:`Fetcher.send`.
        """
        path = f"/{service}/storage/v1/b/" if service else "/storage/v1/b/"
        path += f"{quote(place.bucket, safe='')}/o"
        path += ("" if place.name is None else f"/{quote(place.name, safe='~')}") + more
        asked = {**(query or {}), "userProject": self.options.gcs_user_project}
        parameters = _encoded(tuple((key, value) for key, value in asked.items() if value))
        login = self._login
        with login_faults(login, place), network_faults(place):
            answer = login.send(method, f"{path}?{parameters}" if parameters else path, headers or {}, **sent)
        if answer.status not in good:
            told = answer.body.decode("utf-8", "replace")
            self._refuse(Refusal(answer.status, told, retry_after=answer.headers.get("retry-after")), place)
        return answer

    def _needs(self, refusal: Refusal, place: Place) -> str:
        if refusal.says(("requester pays", "UserProject")):
            return "the bucket is set to requester pays; name the project that pays with --gcs_user_project"
        if self._login.is_anonymous:
            return f"the bucket is not public, and there are no Google Cloud credentials; {LOGIN_HINT}"
        return (
            f"{self._login.account or 'the account in use'} has no permission to use the bucket {place.bucket!r}; give "
            "it the role Storage Object Viewer to read (storage.objects.get and list), and Storage Object User to "
            "write as well (storage.objects.create and delete)"
        )

    @property
    def _login(self) -> Login:
        emulator = os.environ.get("STORAGE_EMULATOR_HOST", "")
        return shared_client(("gs", emulator), lambda: connect(emulator))


class _Joined(io.RawIOBase):
    """Bytes, a stream and bytes, read as one."""

    def __init__(self, head: bytes, stream: BinaryIO, tail: bytes) -> None:
        super().__init__()
        self._ends = (head, tail)
        self._stream = stream
        self._parts: list[BinaryIO] = []
        self.seek(0)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """To the start, which is the only place."""
        self._stream.seek(0)
        self._parts = [io.BytesIO(self._ends[0]), self._stream, io.BytesIO(self._ends[1])]
        return 0

    def read(self, size: int = -1) -> bytes:
        while self._parts:
            if data := self._parts[0].read(size):
                return data
            self._parts.pop(0)
        return b""


@lru_cache  # nearly all ask for the same
def _encoded(query: tuple[tuple[str, Any], ...]) -> str:
    return urlencode(query)


def _crc32c(value: int) -> str:
    return base64.b64encode(value.to_bytes(4, "big")).decode()


def _unzip(data: bytes, shown: str, max_bytes: int | None) -> bytes:
    decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = decompressor.decompress(data, 0 if max_bytes is None else max_bytes + 1)
    except zlib.error as error:
        raise UnreadableFileError(f"{shown} is stored with Content-Encoding gzip and is no gzip: {error}") from None
    if max_bytes is not None and len(plain) > max_bytes:
        raise UnreadableFileError(too_large(shown, None, max_bytes))
    return plain
