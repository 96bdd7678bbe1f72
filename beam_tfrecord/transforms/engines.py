"""Which engine runs a job, and whether its options are complete: looked at before anything is submitted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apache_beam.options.pipeline_options import (
    DirectOptions,
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    SetupOptions,
    SparkRunnerOptions,
    StandardOptions,
    WorkerOptions,
)

from beam_tfrecord.errors import ConfigError, nearest
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import is_absolute, scheme_of
from beam_tfrecord.transforms.dataflow import check_client, check_folder, is_dry_run, template_of

_LAUNCHER_ONLY = ("", "file")  # schemes of places that only this machine is sure to see


@dataclass(frozen=True)
class Engine:
    """An engine that a job can run on.

    name: for people. runner: what Beam knows it by. check: raises ConfigError when options are missing. is_local: it
    works in this process or in processes that it starts, and ends with it. outlives_launcher: the job goes on when
    this process ends. has_job_server: jobs go through a job server, which may know options of its own.
    """

    name: str
    runner: str
    check: Callable[[PipelineOptions, ConvertConfig | None], None] = lambda options, config: None
    is_local: bool = False
    outlives_launcher: bool = True
    has_job_server: bool = False


def find_engine(options: PipelineOptions) -> Engine:
    """:func:`engine_named` for the name in the options.

    Only before a job is submitted, since Beam takes the name out of them then: :func:`placed` keeps what is found.
    """
    return engine_named(options.view_as(StandardOptions).runner or "DirectRunner")


def engine_named(given: str) -> Engine:
    """The engine that ``--runner`` names. Raises ConfigError for one that is not known or cannot run the job.

    The full name of a runner class that is not listed is taken as it stands: somebody's own.
    """
    refusal = REFUSED.get(_short(given))
    if refusal:
        raise ConfigError(f"--runner {given}: {refusal}")
    engine = ENGINES.get(_short(given))
    if engine is not None:
        return engine
    if "." in given:
        return Engine(given, given)
    names = [engine.name for engine in ENGINES.values()]
    known = ", ".join(dict.fromkeys(names))
    raise ConfigError(f"--runner {given} is not known{nearest(given, names)}; there are {known}")


def _short(runner: str) -> str:
    return runner.rpartition(".")[2].lower().removesuffix("runner")


def check_engine(engine: Engine, options: PipelineOptions, config: ConvertConfig | None = None) -> None:
    """Raise ConfigError when the engine could not run the job with these options.

    config: of a conversion; None for jobs that only read.
    """
    if engine.name != "DataflowRunner":
        if is_dry_run(options):
            raise ConfigError(
                f"--dry_run is an option of DataflowRunner; what {engine.name} would do is told by --plan"
            )
        if template_of(options):
            raise ConfigError(f"--template_location is an option of DataflowRunner; {engine.name} has no templates")
    engine.check(options, config)
    if config is not None and (config.run.processes or 1) > 1 and not is_alone(options):
        raise ConfigError(
            f"--processes {config.run.processes}: with {engine.name} and these options Beam starts the workers, "
            "and its options say how many; leave this one out"
        )
    if config is not None and not engine.is_local and not works_in_launcher(engine, options):
        _check_absolute(config)


def is_alone(options: PipelineOptions) -> bool:
    """Whether all of the job runs in this process, one bundle after another."""
    direct = options.view_as(DirectOptions)
    is_single = direct.direct_num_workers == 1 and direct.direct_running_mode == "in_memory"
    return find_engine(options).is_local and is_single


def _check_absolute(config: ConvertConfig) -> None:
    """Workers in processes of their own have a working folder of their own."""
    for flag, place in _places(config):
        if scheme_of(place) in _LAUNCHER_ONLY and not is_absolute(place):
            raise ConfigError(f"{flag} {place}: workers have another working folder; give an absolute path")


def _places(config: ConvertConfig) -> list[tuple[str, str]]:
    """The places that workers read and write, with their flags."""
    images = [("--images", config.manifest.images)] if config.manifest.images else []
    return [
        ("--output", config.output.output),
        *(("--input", _without_split(spec.uri)) for spec in config.manifest.input),
        *images,
    ]


def _without_split(uri: str) -> str:
    """The place in ``SPLIT=PLACE``, where only that is a place that says by itself where it is."""
    named, mark, place = uri.partition("=")
    return place if mark and "/" not in named and is_absolute(place) else uri


# ---------------------------------------------------------------------------------------------------------------------


def _check_portable(options: PipelineOptions, config: ConvertConfig | None) -> None:
    if not options.view_as(PortableOptions).job_endpoint:
        raise ConfigError("--runner PortableRunner needs --job_endpoint HOST:PORT of the engine's job service")
    _check_environment(options)


def _check_environment(options: PipelineOptions) -> None:
    portable = options.view_as(PortableOptions)
    if portable.environment_type == "EXTERNAL" and not (portable.environment_config or portable.environment_options):
        raise ConfigError("--environment_type EXTERNAL needs --environment_config HOST:PORT of the worker pool")


def _check_flink(options: PipelineOptions, config: ConvertConfig | None) -> None:
    _check_environment(options)


def _check_dataflow(options: PipelineOptions, config: ConvertConfig | None) -> None:
    check_client()
    cloud = options.view_as(GoogleCloudOptions)
    missing = []
    if not cloud.project:
        missing.append("--project PROJECT")
    if not cloud.region:
        missing.append("--region REGION")
    if not (cloud.temp_location or cloud.staging_location):
        missing.append("--temp_location gs://BUCKET/tmp")
    setup = options.view_as(SetupOptions)
    container = options.view_as(WorkerOptions).sdk_container_image
    if not (container or setup.setup_file or setup.extra_packages):
        missing.append("--sdk_container_image IMAGE (or --setup_file ./setup.py), which brings this package to workers")
    if missing:
        raise ConfigError(f"--runner DataflowRunner needs {', '.join(missing)}")
    for flag, place in (("--temp_location", cloud.temp_location), ("--staging_location", cloud.staging_location)):
        if place and scheme_of(place) != "gs":
            raise ConfigError(
                f"{flag} {place}: Dataflow keeps its files in Cloud Storage; give a place gs://BUCKET/..."
            )
        if place:
            check_folder(flag, place)
    if config is not None:
        _check_places(config)


def _check_places(config: ConvertConfig) -> None:
    """Workers in a cloud see no disk of this machine."""
    for flag, place in _places(config):
        if scheme_of(place) in _LAUNCHER_ONLY:
            does = "write" if flag == "--output" else "read"
            raise ConfigError(f"{flag} {place}: Dataflow's workers cannot {does} there; give a place gs://BUCKET/...")


_DIRECT = Engine("DirectRunner", "DirectRunner", is_local=True, outlives_launcher=False)

ENGINES: Mapping[str, Engine] = {
    "direct": _DIRECT,
    "fnapi": _DIRECT,
    "bundlebaseddirect": _DIRECT,
    "dataflow": Engine("DataflowRunner", "DataflowRunner", _check_dataflow),
    "flink": Engine("FlinkRunner", "FlinkRunner", _check_flink, has_job_server=True),
    "spark": Engine("SparkRunner", "SparkRunner", _check_flink, has_job_server=True),
    "portable": Engine("PortableRunner", "PortableRunner", _check_portable, has_job_server=True),
    "prism": Engine("PrismRunner", "PrismRunner", outlives_launcher=False, has_job_server=True),
}

REFUSED: Mapping[str, str] = {
    # Found by trying, with Beam 2.77: apache_beam.runners.dask.transform_evaluator keeps the receiver of a step's
    # output from one computation to the next, and what is a side input is computed once for each step that uses it.
    "dask": "Beam's runner for Dask computes the plan of the dataset anew for each step and adds the results up, so "
    "that rows are counted several times; until that is mended, use DirectRunner or PortableRunner",
    "interactive": "it keeps every intermediate result in memory for a notebook; use DirectRunner",
    "kafkastreams": "it runs unbounded streams, and a conversion is a bounded job; use DirectRunner or PortableRunner",
}


def works_in_launcher(engine: Engine, options: PipelineOptions) -> bool:
    """Whether the job needs this process until it ends: its workers live here, or the engine itself does."""
    portable: Any = options.view_as(PortableOptions)
    if not engine.outlives_launcher or portable.environment_type == "LOOPBACK" or portable.job_endpoint == "embed":
        return True
    # Without the address of a cluster, Beam starts the engine as a process of its own and ends it with this one.
    cluster = _CLUSTERS.get(engine.name)
    return cluster is not None and not portable.job_endpoint and cluster.is_own(options)


def starts_job_server(engine: Engine, options: PipelineOptions) -> bool:
    """Whether Beam starts the job server as a process of its own, which ends with this one.

    Beam hands a job to such a server and returns; only then does the server hand it to the cluster.
    """
    cluster = _CLUSTERS.get(engine.name)
    if cluster is None or options.view_as(PortableOptions).job_endpoint:
        return False
    return cluster.is_own(options) or not cluster.takes_jar(options)


@dataclass(frozen=True)
class _Cluster:
    """What a runner that starts a job server submits to. master: address. own: what it looks like where Beam starts the
    cluster itself. takes_jar: whether the job goes there as a jar, without a job server. jar_flags: the flags for it.
    """

    master: Callable[[PipelineOptions], str]
    own: re.Pattern[str]
    takes_jar: Callable[[PipelineOptions], bool]
    jar_flags: str

    def is_own(self, options: PipelineOptions) -> bool:
        """Whether Beam starts the cluster."""
        return self.own.match(self.master(options)) is not None


_CLUSTERS: Mapping[str, _Cluster] = {
    "FlinkRunner": _Cluster(
        lambda options: str(options.view_as(FlinkRunnerOptions).flink_master),
        re.compile(r"\s*\["),
        lambda options: bool(options.view_as(FlinkRunnerOptions).flink_submit_uber_jar),
        "--flink_submit_uber_jar",
    ),
    "SparkRunner": _Cluster(
        lambda options: str(options.view_as(SparkRunnerOptions).spark_master_url),
        re.compile(r"local(\[.+\])?$"),
        lambda options: bool(options.view_as(SparkRunnerOptions).spark_submit_uber_jar),
        "--spark_submit_uber_jar --spark_rest_url URL",
    ),
}


def ways_without_job_server(engine: Engine) -> str:
    """How a job reaches a cluster without a job server that ends with this process."""
    flags = _CLUSTERS[engine.name].jar_flags
    return f"--runner PortableRunner --job_endpoint HOST:PORT of a job server that lasts, or {flags}"


@dataclass(frozen=True)
class Placement:
    """Where a job runs, as its options say before Beam changes them.

    is_bound: the job ends with this process. endpoint: HOST:PORT of the job service, '' for one that Beam starts. pool:
    HOST:PORT of the worker pool, '' without one. place: where a person finds the job once this process is gone.
    has_own_server: the job goes to its cluster through a job server that Beam starts here.
    """

    engine: Engine
    is_bound: bool
    endpoint: str = ""
    pool: str = ""
    place: str = ""
    has_own_server: bool = False


def placed(options: PipelineOptions) -> Placement:
    """Where the options lead a job. Raises ConfigError for an engine that is not known."""
    engine, portable = find_engine(options), options.view_as(PortableOptions)
    endpoint = str(portable.job_endpoint or "")
    pool = ""
    if portable.environment_type == "EXTERNAL":
        pool = portable.environment_config or portable.lookup_environment_option("external_service_address") or ""
    place = endpoint or (_CLUSTERS[engine.name].master(options) if engine.name in _CLUSTERS else "")
    own_server = starts_job_server(engine, options)
    return Placement(engine, works_in_launcher(engine, options), endpoint, str(pool), place, own_server)
