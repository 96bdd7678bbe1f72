"""Blobs of Azure Storage, by its REST API (https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api):
a request each, sent by the fetcher of this package.

The account's key is turned into a signature for URLs (SAS) by azure-storage-blob, and tokens are found and renewed by
azure-identity. Their clients are not used: they take milliseconds for a request, and a name with ``..`` in it is
another one once it has been through them.
"""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import Any, BinaryIO
from urllib.parse import quote, unquote, urlencode
from xml.etree import ElementTree

from beam_tfrecord.errors import StorageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.answers import Place, Refusal, Words, network_faults, strange_answers
from beam_tfrecord.storage.beam_plugins import azure_options
from beam_tfrecord.storage.clients import shared_client
from beam_tfrecord.storage.faults import MissingFileError, TransientError
from beam_tfrecord.storage.fetch import Answer, Fetcher, Limit
from beam_tfrecord.storage.objects import HttpStore, ObjectInfo, Page

try:
    from azure.core.exceptions import AzureError
    from azure.identity import DefaultAzureCredential, get_bearer_token_provider
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas
except ModuleNotFoundError as error:
    raise StorageError(f"az:// needs the package {error.name}: pip install 'beam_tfrecord[azure]'") from None

LOGIN_HINT = "log in with `az login`, or set AZURE_STORAGE_CONNECTION_STRING"
_PROTOCOL = "2021-12-02"  # x-ms-version
_SCOPE = "https://storage.azure.com/.default"
_KEY_HOURS = 24  # that a signature made with an account's key is good for
_LARGEST_PUT = 1024 * 1024 * 1024  # larger blobs go in blocks; the service takes up to 5,000 MiB at once
_WHOLE = {"x-ms-blob-type": "BlockBlob"}
_CHUNK = 1024 * 1024
_ACCOUNT_OF_HOST = re.compile(r"https?://([a-z0-9]+)\.blob\.")
_COPY_TURN = 0.5  # seconds between two looks at a copy that goes on


class AzureStore(HttpStore):
    """``az://account/container/name``: what is called a bucket elsewhere is here an account with a container."""

    scheme = "az"
    words = Words(
        kind="container",
        transient=("Md5Mismatch", "ContainerBeingDeleted"),
        no_bucket=("ContainerNotFound",),
        changed=("BlobAlreadyExists",),
        refused=("PublicAccessNotPermitted",),
    )

    def _media(
        self, place: Place, headers: dict[str, str], version: str | None, limit: Limit | None, good: tuple[int, ...]
    ) -> Answer:
        condition = {"If-Match": version} if version else {}
        return _file(self._ask(place, headers={**headers, **condition}, limit=limit, good=good), place)

    def _checked(self, answer: Answer, place: Place, max_bytes: int | None) -> bytes:
        stated = answer.headers.get("content-md5")
        if stated and stated != _md5(hashlib.md5(answer.body, usedforsecurity=False)):
            raise TransientError("the bytes that came do not fit their checksum")
        return answer.body

    def _stat(self, bucket: str, name: str) -> ObjectInfo:
        place = self._place(bucket, name)
        headers = _file(self._ask(place, method="HEAD"), place).headers
        with strange_answers(place):
            return ObjectInfo(int(headers["content-length"]), headers["etag"])

    def _list(self, bucket: str, prefix: str, delimiter: str, token: str | None, limit: int | None) -> Page:
        asked = {"prefix": prefix, "delimiter": delimiter, "marker": token, "maxresults": limit}
        place, root = self._place(bucket), f"{self.scheme}://{bucket}/"
        answer = self._ask(place, {"restype": "container", "comp": "list", **asked})
        with strange_answers(place):
            found = ElementTree.fromstring(answer.body)
            if found.find("Blobs") is None:
                raise ValueError(f"an XML document {found.tag!r} without Blobs")
            files = [
                FileInfo(root + _name(blob), _whole(blob.findtext("Properties/Content-Length")))
                for blob in found.iterfind("Blobs/Blob")
                if blob.findtext("Properties/ResourceType") != "directory"  # where there is a hierarchical namespace
            ]
            prefixes = [root + _name(folder) for folder in found.iterfind("Blobs/BlobPrefix")]
            return Page(files, prefixes, found.findtext("NextMarker") or None)

    def _pages(self, uri: str, bucket: str, prefix: str, delimiter: str, limit: int | None = None) -> Iterator[Page]:
        """In one, sorted in memory: names come in the order of UTF-16 (Azurite), or folder by folder where an account
        has a hierarchical namespace."""
        pages = super()._pages(uri, bucket, prefix, delimiter, limit)
        if limit is not None:
            yield from pages
            return
        whole = Page([], [], None)
        for page in pages:
            whole.files.extend(page.files)
            whole.prefixes.extend(page.prefixes)
        whole.files.sort(key=lambda info: info.uri)
        yield whole

    def _object(self, uri: str) -> tuple[str, str]:
        if "\\" in uri:  # which would be another file's name: Azure takes it for a slash
            raise MissingFileError(f"{uri} does not exist: no name in Azure Storage has a backslash in it")
        return super()._object(uri)

    def _put(self, bucket: str, name: str, stream: BinaryIO, size: int) -> None:
        place = self._place(bucket, name)
        if size <= _LARGEST_PUT:
            self._send(place, stream, size, headers=_WHOLE)
            return
        blocks = []
        for start in range(0, size, _LARGEST_PUT):
            blocks.append(base64.b64encode(f"{start:020}".encode()).decode())
            block = {"comp": "block", "blockid": blocks[-1]}
            self._send(place, stream, min(_LARGEST_PUT, size - start), start, query=block)
        named = "".join(f"<Latest>{block}</Latest>" for block in blocks)
        body = f"<?xml version='1.0' encoding='utf-8'?><BlockList>{named}</BlockList>".encode()
        self._send(place, io.BytesIO(body), len(body), query={"comp": "blocklist"})

    def _put_if(self, bucket: str, name: str, data: bytes, version: str | None) -> None:
        condition = {"If-Match": version} if version is not None else {"If-None-Match": "*"}
        self._send(self._place(bucket, name), io.BytesIO(data), len(data), headers={**_WHOLE, **condition})

    def _send(
        self,
        place: Place,
        stream: BinaryIO,
        size: int,
        start: int = 0,
        *,
        query: Mapping[str, Any] = {},
        headers: Mapping[str, str] = {},
    ) -> Answer:
        """Put a part of a stream, with the checksum that the server compares."""
        stream.seek(start)
        checksum, rest = hashlib.md5(usedforsecurity=False), size
        while rest > 0 and (chunk := stream.read(min(rest, _CHUNK))):
            checksum.update(chunk)
            rest -= len(chunk)
        stream.seek(start)
        headers = {"Content-Type": "application/octet-stream", "Content-MD5": _md5(checksum), **headers}
        return self._ask(place, query, headers, method="PUT", body=stream, size=size, good=(201, 202))

    def _copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        # Within an account it is done at once; else it goes on by itself.
        place = self._place(*target)
        url = self._way(source[0]).url(self._place(*source), {})
        headers = {"x-ms-copy-source": url}
        answer = self._ask(place, {}, headers, method="PUT", body=io.BytesIO(), good=(201, 202))
        while (status := answer.headers.get("x-ms-copy-status", "")) == "pending":
            time.sleep(_COPY_TURN)
            answer = self._ask(place, method="HEAD")
        if status != "success":
            raise TransientError(f"the copy is {status or 'in a state that is not told'}")

    def _delete_one(self, place: Place) -> None:
        self._ask(place, headers={"x-ms-delete-snapshots": "include"}, method="DELETE", good=(202,))

    def _ask(
        self,
        place: Place,
        query: Mapping[str, Any] = {},
        headers: Mapping[str, str] = {},
        *,
        good: tuple[int, ...] = (200,),
        **sent: Any,
    ) -> Answer:
        """One request whose answer is a good one. sent: see :meth:`Fetcher.send`."""
        way = self._way(place.bucket)
        try:
            with network_faults(place):
                answer = way.fetcher.send(way.url(place, query), {**headers, **way.headers()}, **sent)
        except TransientError as error:
            if way.is_anonymous and way.endpoint.startswith("https"):  # no emulator
                raise StorageError(
                    f"{place}: there are no Azure credentials for this account{way.passed_over}, and without them it "
                    f"cannot be used ({error.reason}); {LOGIN_HINT}"
                ) from None
            raise
        except AzureError as error:
            reason = str(error).partition("\n")[0]
            raise StorageError(f"{place}: the Azure credentials cannot be used ({reason}); {LOGIN_HINT}") from None
        if answer.status not in good:
            code = answer.headers.get("x-ms-error-code", "")
            status = 403 if code == "ResourceNotFound" and way.is_anonymous else answer.status  # it is not shown them
            self._refuse(Refusal(status, code, code, answer.headers.get("retry-after")), place)
        return answer

    def _needs(self, refusal: Refusal, place: Place) -> str:
        way = self._way(place.bucket)
        if way.is_anonymous:
            told = f"there are no Azure credentials for its account{way.passed_over}"
            return f"the container is not public, and {told}; {LOGIN_HINT}"
        if refusal.status == 401 or refusal.code in ("AuthenticationFailed", "InvalidAuthenticationInfo"):
            return f"the Azure credentials are not accepted ({refusal.code}); {LOGIN_HINT}"
        return (
            f"the identity in use has no permission to use the container ({refusal.code}); give it the role Storage "
            "Blob Data Reader to read, and Storage Blob Data Contributor to write as well"
        )

    def _way(self, bucket: str) -> Way:
        account = bucket.partition("/")[0]
        if account not in self._ways:
            settings = azure_options()
            environment = {name: value for name, value in os.environ.items() if name.startswith("AZURE_")}
            key = ("az", account, *sorted(settings.items()), *sorted(environment.items()))
            self._ways[account] = shared_client(key, lambda: find_way(account, settings, environment))
        return self._ways[account]

    @cached_property
    def _ways(self) -> dict[str, Way]:
        return {}


class BeamAzureStore(AzureStore):
    """The same under the name that Beam has for it."""

    scheme = "azfs"


@dataclass
class Way:
    """The way to an account: where its blobs are served, and what gives access.

    endpoint: with the account, as far as it is named there. sas: the query that signs a URL, without ``?``. key: of the
    account. token: gives one that is good now. passed_over: credentials of another account, in words.
    """

    account: str
    endpoint: str
    sas: str = ""
    key: str = ""
    token: Callable[[], str] | None = None
    passed_over: str = ""
    fetcher: Fetcher = field(default_factory=Fetcher)
    _signed: tuple[float, str] = (0.0, "")

    @property
    def is_anonymous(self) -> bool:
        """Whether requests go without credentials."""
        return not (self.sas or self.key or self.token)

    def url(self, place: Place, query: Mapping[str, Any]) -> str:
        """A URL as it is sent. It may be signed: it is never shown."""
        container = place.bucket.partition("/")[2]
        path = quote(container, safe="$") + ("" if place.name is None else f"/{quote(place.name, safe='~')}")
        asked = urlencode({name: value for name, value in query.items() if value})
        parameters = "&".join(part for part in (asked, self._sas()) if part)
        return f"{self.endpoint}/{path}" + (f"?{parameters}" if parameters else "")

    def headers(self) -> dict[str, str]:
        """Those that every request has."""
        version = {"x-ms-version": _PROTOCOL}
        return {**version, "Authorization": f"Bearer {self.token()}"} if self.token else version

    def _sas(self) -> str:
        if not self.key:
            return self.sas
        now = time.time()
        if now > self._signed[0]:
            good_for = timedelta(hours=_KEY_HOURS)
            allowed = AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True)
            kinds, expiry = ResourceTypes(container=True, object=True), datetime.now(timezone.utc) + good_for
            try:
                signature = generate_account_sas(self.account, self.key, kinds, allowed, expiry=expiry)
            except ValueError as error:
                raise AzureError(f"the key of the account is damaged: {error}") from None
            self._signed = (now + good_for.total_seconds() / 2, signature)
        return self._signed[1]


def find_way(account: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> Way:
    """The way to an account: what Beam's options say, else the variables of Azure's command line, else azure-identity.

    A connection string, a key or a SAS of another account is not used. Raises StorageError for a connection string that
    is none.
    """
    string = settings.get("connection_string") or environment.get("AZURE_STORAGE_CONNECTION_STRING", "")
    told = dict(part.split("=", 1) for part in string.split(";") if "=" in part)
    if string and not told:
        raise StorageError(f"az://{account}: the Azure connection string has no NAME=VALUE in it; {LOGIN_HINT}")
    of_host = _ACCOUNT_OF_HOST.match(told.get("BlobEndpoint", ""))
    of_string = told.get("AccountName") or (of_host[1] if of_host else account)
    variables = [environment.get(name, "") for name in ("AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN")]
    of_variables = environment.get("AZURE_STORAGE_ACCOUNT", account) if any(variables) else account
    others = " and ".join(sorted({of_string, of_variables} - {account}))
    passed_over = f" (those that are given are of {others})" if others else ""
    told = told if of_string == account else {}
    own_key, own_sas = variables if of_variables == account else ("", "")
    host = f"{account}.blob.{told.get('EndpointSuffix', 'core.windows.net')}"
    endpoint = settings.get("endpoint") or told.get("BlobEndpoint")
    endpoint = (endpoint or f"{told.get('DefaultEndpointsProtocol', 'https')}://{host}").rstrip("/")
    key, sas = told.get("AccountKey") or own_key, told.get("SharedAccessSignature") or own_sas
    if key or sas:
        return Way(account, endpoint, "" if key else sas.lstrip("?"), key)
    anonymous = Way(account, endpoint, passed_over=passed_over)
    if not endpoint.startswith("https"):  # tokens are not sent in the clear
        return anonymous
    told_by = logging.getLogger("azure.identity")  # which warns at length of what is told in one line here
    level = told_by.level
    told_by.setLevel(logging.ERROR)
    credential = DefaultAzureCredential(managed_identity_client_id=settings.get("client_id"))
    token = get_bearer_token_provider(credential, _SCOPE)
    try:
        token()
    except AzureError:
        return anonymous
    finally:
        told_by.setLevel(level)
    return Way(account, endpoint, token=token)


def _file(answer: Answer, place: Place) -> Answer:
    """An answer about a file; folders are blobs too where an account has a hierarchical namespace."""
    if answer.headers.get("x-ms-meta-hdi_isfolder") == "true":
        raise MissingFileError(f"{place} is a folder, not a file")
    return answer


def _md5(checksum: Any) -> str:
    return base64.b64encode(checksum.digest()).decode()


def _name(element: ElementTree.Element) -> str:
    """A name of a listing; one that XML cannot hold comes quoted."""
    found = element.find("Name")
    if found is None or not found.text:
        raise ValueError(f"a {element.tag} without a name")
    return unquote(found.text) if found.get("Encoded") == "true" else found.text


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)
