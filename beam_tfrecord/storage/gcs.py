"""Objects of Google Cloud Storage, through one client per process and with one request per image.

Beam's own file system for ``gs://`` makes a new client and three requests for each file that is opened; here an image
is one ``GET`` over a connection that is kept. Its CRC-32C is compared with the one that the server states, so a body
that was cut or changed on the way is noticed and read again.

Imported only when a ``gs://`` name is used, and the Google libraries with it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.clients import shared_client
from beam_tfrecord.storage.faults import MissingFileError
from beam_tfrecord.storage.gcs_faults import gcs_faults
from beam_tfrecord.storage.gcs_login import Login, connect
from beam_tfrecord.storage.gcs_media import get_object, get_range
from beam_tfrecord.storage.objects import ObjectInfo, ObjectStore, Page
from beam_tfrecord.storage.web_faults import TIMEOUTS

if TYPE_CHECKING:
    from google.cloud.storage import Blob, Bucket

_LIST_FIELDS = "items(name,size),prefixes,nextPageToken"
_PARALLEL_DELETES = 32


class GcsStore(ObjectStore):
    """``gs://bucket/name``; the name is everything behind the bucket's ``/``, character by character."""

    def _get(self, bucket: str, name: str, max_bytes: int | None) -> bytes:
        return get_object(self._login, bucket, name, self.options.gcs_user_project, max_bytes)

    def _get_range(self, bucket: str, name: str, start: int, length: int, version: str | None) -> bytes:
        return get_range(self._login, bucket, name, self.options.gcs_user_project, start, length, version)

    def _stat(self, bucket: str, name: str) -> ObjectInfo:
        with gcs_faults(self._login, bucket, name):
            blob = self._bucket(bucket).get_blob(name, retry=None, timeout=TIMEOUTS)
        if blob is None:
            raise MissingFileError(f"gs://{bucket}/{name} does not exist")
        return ObjectInfo(int(blob.size), str(blob.generation))

    def _list(self, bucket: str, prefix: str, delimiter: str, token: str | None, limit: int | None) -> Page:
        with gcs_faults(self._login, bucket):
            listing = self._login.client.list_blobs(
                self._bucket(bucket),
                prefix=prefix or None,
                delimiter=delimiter or None,
                page_token=token,
                page_size=limit,
                fields=_LIST_FIELDS,
                retry=None,
                timeout=TIMEOUTS,
            )
            blobs = list(next(listing.pages, ()))
        root = f"gs://{bucket}/"
        files = [FileInfo(root + blob.name, int(blob.size or 0)) for blob in blobs]
        return Page(files, sorted(root + folder for folder in listing.prefixes), listing.next_page_token or None)

    def _put(self, bucket: str, name: str, stream: BinaryIO, size: int) -> None:
        with gcs_faults(self._login, bucket):
            self._blob(bucket, name).upload_from_file(
                stream,
                size=size,
                content_type="application/octet-stream",
                checksum="crc32c",
                retry=None,
                timeout=TIMEOUTS,
            )

    def _put_if(self, bucket: str, name: str, data: bytes, version: str | None) -> None:
        with gcs_faults(self._login, bucket):
            self._blob(bucket, name).upload_from_file(
                io.BytesIO(data),
                size=len(data),
                content_type="application/json",
                checksum="crc32c",
                if_generation_match=int(version or 0),
                retry=None,
                timeout=TIMEOUTS,
            )

    def _copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        # A rewrite within one place and storage class is done at once; else it goes on, token by token.
        with gcs_faults(self._login, *source):
            blob, old = self._blob(*target), self._blob(*source)
            token, _, _ = blob.rewrite(old, retry=None, timeout=TIMEOUTS)
            while token is not None:
                token, _, _ = blob.rewrite(old, token=token, retry=None, timeout=TIMEOUTS)

    def _delete(self, bucket: str, names: Sequence[str]) -> None:
        if len(names) == 1:
            self._delete_one(bucket, names[0])
            return
        with ThreadPoolExecutor(min(_PARALLEL_DELETES, len(names))) as pool:
            list(pool.map(partial(self._delete_again, bucket), names))

    def _delete_again(self, bucket: str, name: str) -> None:
        self.writing(f"gs://{bucket}/{name}", lambda: self._delete_one(bucket, name))

    def _delete_one(self, bucket: str, name: str) -> None:
        try:
            with gcs_faults(self._login, bucket, name):
                self._blob(bucket, name).delete(retry=None, timeout=TIMEOUTS)
        except MissingFileError:
            return

    @property
    def _login(self) -> Login:
        connections = self.options.connections
        emulator = os.environ.get("STORAGE_EMULATOR_HOST", "")
        return shared_client(("gs", connections, emulator), lambda: connect(connections, emulator))

    def _bucket(self, bucket: str) -> Bucket:
        return self._login.client.bucket(bucket, user_project=self.options.gcs_user_project)

    def _blob(self, bucket: str, name: str) -> Blob:
        return self._bucket(bucket).blob(name)
