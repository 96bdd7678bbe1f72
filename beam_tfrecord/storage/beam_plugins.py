"""Beam's file systems as they are found in this process: which there are, how to ask them, what their faults mean.

The only module of this package that imports Beam, and only when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, BinaryIO, cast

from beam_tfrecord.errors import StorageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.faults import MissingFileError, TransientError, UnreadableFileError
from beam_tfrecord.storage.uris import public_uri, scheme_of

# Name of an S3 option of Beam, and of the argument of a boto3 client that it becomes.
_S3_OPTIONS = {
    "s3_access_key_id": "aws_access_key_id",
    "s3_secret_access_key": "aws_secret_access_key",
    "s3_session_token": "aws_session_token",
    "s3_endpoint_url": "endpoint_url",
    "s3_region_name": "region_name",
    "s3_api_version": "api_version",
    "s3_verify": "verify",
}


_AZURE_OPTIONS = {
    "azure_connection_string": "connection_string",
    "blob_service_endpoint": "endpoint",
    "azure_managed_identity_client_id": "client_id",
}
# Package that the file system of a scheme needs, and the extra of Beam that brings it.
_NEEDS = {"hdfs": ("hdfs", "hadoop")}
_AZURE_OF_HADOOP = ("abfs", "abfss", "wasb", "wasbs")


def pipeline_options() -> Any:
    """The options of the pipeline as this process knows them: those of the launcher, or of a worker (a dict)."""
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.options.value_provider import RuntimeValueProvider

    return FileSystems._pipeline_options or RuntimeValueProvider.runtime_options or PipelineOptions([])


def s3_options() -> dict[str, Any]:
    """Arguments for a boto3 client from the S3 options of the pipeline, as far as they are given."""
    settings = _options("S3Options", {**_S3_OPTIONS, "s3_disable_ssl": "use_ssl"})
    return {**settings, "use_ssl": False} if settings.pop("use_ssl", False) else settings


def azure_options() -> dict[str, str]:
    """``connection_string``, ``endpoint`` and ``client_id`` of Azure, as far as the pipeline's options give them."""
    return _options("AzureOptions", _AZURE_OPTIONS)


def _options(kind: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Options of the pipeline by the names that they have here, as far as they are given."""
    from apache_beam.options import pipeline_options as beam

    options = pipeline_options()
    if isinstance(options, beam.PipelineOptions):
        options = options.view_as(getattr(beam, kind)).get_all_options()
    return {own: options[name] for name, own in names.items() if options.get(name) is not None}


def filesystem_of(uri: str) -> Any:
    """Beam's file system for a uri. Raises StorageError when there is none, or when it lacks something."""
    import apache_beam.io.filesystems  # noqa: F401 - registers those that Beam brings
    from apache_beam.io.filesystem import FileSystem

    scheme = scheme_of(uri)
    kind = next((kind for kind in FileSystem.get_all_subclasses() if kind.scheme() == scheme), None)
    package, extra = _NEEDS.get(scheme, ("", ""))
    if kind is None or (package and not _is_installed(package)):
        cure = f" (pip install 'apache-beam[{extra}]')" if extra else ""
        cure = " (write az://ACCOUNT/CONTAINER/NAME)" if scheme in _AZURE_OF_HADOOP else cure
        raise StorageError(
            f"{public_uri(uri)}: there is no file system for {scheme}:// here{cure}; known are local paths, gs://, "
            "s3://, az://, https:// (reading only) and what Apache Beam has installed"
        )
    try:
        return kind(pipeline_options=pipeline_options())
    except ValueError as error:  # an option that it needs is not given
        raise StorageError(f"{public_uri(uri)}: {error}") from None


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package that would hold it
        return False


def open_reading(uri: str) -> BinaryIO:
    """A stream of the bytes as they are stored, whatever the name ends with."""
    from apache_beam.io.filesystem import CompressionTypes

    return cast(BinaryIO, filesystem_of(uri).open(uri, compression_type=CompressionTypes.UNCOMPRESSED))


def open_writing(uri: str) -> BinaryIO:
    """A stream whose bytes are stored as they are, whatever the name ends with."""
    from apache_beam.io.filesystem import CompressionTypes

    return cast(BinaryIO, filesystem_of(uri).create(uri, compression_type=CompressionTypes.UNCOMPRESSED))


def files_below(filesystem: Any, folder: str) -> list[FileInfo]:
    """All files below a folder, sorted; none when there is no such folder."""
    base = folder.rstrip("/") + "/"
    if not filesystem.has_dirs():
        return [info for info in _list(filesystem, base) if not info.uri.endswith("/")]
    if not filesystem.exists(folder.rstrip("/")):
        return []
    files = []
    for info in _list(filesystem, base):
        if info.size == 0 and is_folder(filesystem, info.uri):
            files += files_below(filesystem, info.uri)
        else:
            files.append(info)
    return sorted(files, key=lambda info: info.uri)


def is_folder(filesystem: Any, uri: str) -> bool:
    """Whether there is a folder of this name, in a file system that has folders.

    Beam does not tell folders from empty files, but only folders can be listed.
    """
    if not filesystem.has_dirs():
        return False
    try:
        _list(filesystem, uri.rstrip("/") + "/")
    except _plugin_errors(scheme_of(uri)):
        return False
    return bool(filesystem.exists(uri.rstrip("/")))


def _list(filesystem: Any, base: str) -> list[FileInfo]:
    """What lies in the folder ``base``, or in a file system without folders everything that begins with it, sorted.

    Every file system of Beam has this method under its interface; ``match``, the public one above it, takes names for
    globs, and they cannot be quoted.
    """
    found = (FileInfo(data.path, data.size_in_bytes) for data in filesystem._list(base))
    return sorted((info for info in found if info.uri.startswith(base)), key=lambda info: info.uri)


def make_parent(uri: str) -> None:
    """Make the folder that a file is to lie in, where there are folders."""
    folder = uri.rpartition("/")[0]
    if folder.partition("://")[2].strip("/"):
        make_folder(folder)


def make_folder(uri: str) -> None:
    """Make a folder and those above it, where there are folders."""
    filesystem = filesystem_of(uri)
    if filesystem.has_dirs() and not filesystem.exists(uri):
        try:
            filesystem.mkdirs(uri)
        except OSError:
            if not filesystem.exists(uri):  # else another worker made it at the same moment
                raise


@contextmanager
def plugin_faults(uri: str, must_exist: bool = False) -> Iterator[None]:
    """What a plugin raised, told apart by the status that most faults carry; the rest is tried again.

    must_exist: a fault that says nothing means that the file is missing, if that is so.
    """
    errors = _plugin_errors(scheme_of(uri))
    try:
        yield
    except (MissingFileError, UnreadableFileError):
        raise
    except errors as error:
        fault = _plugin_fault(error, uri)
        if must_exist and isinstance(fault, TransientError):
            with suppress(*errors):
                if not filesystem_of(uri).exists(uri):
                    fault = MissingFileError(f"{public_uri(uri)} does not exist")
        raise fault from None


def _plugin_errors(scheme: str) -> tuple[type[BaseException], ...]:
    """What the file system of a scheme may raise. Beam wraps most faults in BeamIOError, an OSError, but not all."""
    errors: list[type[BaseException]] = [OSError]
    with suppress(ImportError):
        if scheme == "hdfs":
            from hdfs import HdfsError

            errors.append(HdfsError)
    return tuple(errors)


def _plugin_fault(error: BaseException, uri: str) -> Exception:
    causes = [error, *_causes(error)]
    statuses = {_status_of(cause) for cause in causes}
    shown = public_uri(uri)
    if 404 in statuses or any(isinstance(cause, FileNotFoundError) for cause in causes):
        return MissingFileError(f"{shown} does not exist")
    if any(isinstance(cause, IsADirectoryError) for cause in causes):
        return MissingFileError(f"{shown} is a folder, not a file")
    if statuses & {401, 403} or any(isinstance(cause, PermissionError) for cause in causes):
        return StorageError(f"{shown}: the file system refuses access; see the credentials and permissions in use")
    return TransientError(type(causes[-1]).__name__)


def _causes(error: BaseException) -> list[BaseException]:
    """The single faults behind a BeamIOError, which may hold others of its kind."""
    details = getattr(error, "exception_details", None)
    if not isinstance(details, dict):
        return []
    causes = [cause for cause in details.values() if isinstance(cause, BaseException)]
    return [*causes, *(deeper for cause in causes for deeper in _causes(cause))]


def _status_of(error: BaseException) -> int | None:
    for name in ("code", "status_code"):
        value = getattr(error, name, None)
        if isinstance(value, int):
            return value
    return None
