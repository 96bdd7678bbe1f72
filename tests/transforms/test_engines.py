from __future__ import annotations

import pytest

from beam_tfrecord.errors import ConfigError
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.transforms.engines import check_engine, find_engine, works_in_launcher
from beam_tfrecord.transforms.running import make_options

CLOUD = ["--project=p1", "--region=r", "--temp_location=gs://bucket/tmp", "--sdk_container_image=i"]
GS = {"input": "gs://b/rows.csv", "output": "gs://b/out"}
POOL = ["--job_endpoint=localhost:1", "--environment_type=EXTERNAL", "--environment_config=localhost:2"]


def checked(runner: str, *flags: str, **places: str) -> None:
    options = make_options([f"--runner={runner}", *flags])
    check_engine(find_engine(options), options, ConvertConfig.from_options(places or GS))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("DirectRunner", "DirectRunner"),
        ("direct", "DirectRunner"),
        ("apache_beam.runners.portability.fn_api_runner.FnApiRunner", "DirectRunner"),
        ("dataflow", "DataflowRunner"),
        ("PortableRunner", "PortableRunner"),
        ("somebody.else.OwnRunner", "somebody.else.OwnRunner"),
    ],
)
def test_runners_are_found_under_every_name_that_beam_takes(given: str, name: str) -> None:
    assert find_engine(make_options([f"--runner={given}"])).name == name


@pytest.mark.parametrize(
    ("runner", "flags", "places", "said"),
    [
        ("FlinkRuner", [], GS, "did you mean 'FlinkRunner'?"),
        ("DaskRunner", [], GS, "rows are counted several times"),
        ("InteractiveRunner", [], GS, "use DirectRunner"),
        ("PortableRunner", [], GS, "needs --job_endpoint"),
        ("PortableRunner", ["--job_endpoint=a:1", "--environment_type=EXTERNAL"], GS, "needs --environment_config"),
        ("DataflowRunner", CLOUD[1:], GS, "needs --project"),
        ("DataflowRunner", CLOUD[:-1], GS, "needs --sdk_container_image"),
        ("DataflowRunner", [*CLOUD[:2], "--temp_location=/tmp", CLOUD[3]], GS, "--temp_location /tmp: Dataflow keeps"),
        ("DataflowRunner", CLOUD, {**GS, "output": "/out"}, "--output /out: Dataflow's workers cannot write there"),
        ("DataflowRunner", CLOUD, {**GS, "images": "photos"}, "--images photos: Dataflow's workers cannot read there"),
        ("PortableRunner", POOL, {"input": "a.csv", "output": "/out"}, "--input a.csv: workers have another working"),
        ("PortableRunner", POOL, {"input": "train=a.csv", "output": "/out"}, "--input train=a.csv: workers have"),
        ("DataflowRunner", CLOUD, {**GS, "input": "a=/x.csv"}, "--input /x.csv: Dataflow's workers cannot read there"),
        ("FlinkRunner", ["--flink_master=h:1"], {"input": "/a.csv", "output": "out"}, "--output out: workers have"),
    ],
)
def test_what_an_engine_lacks_is_told_before_anything_is_read(
    runner: str, flags: list[str], places: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(runner, *flags, **places)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("runner", "flags", "places"),
    [
        ("DirectRunner", [], {"input": "a.csv", "output": "out"}),
        ("DataflowRunner", CLOUD, GS),
        ("DataflowRunner", CLOUD, {**GS, "input": "train=gs://b/rows.csv"}),
        ("PortableRunner", POOL, {"input": "validation=/held out.csv", "output": "/out"}),
        ("PortableRunner", POOL, {"input": "/a.csv", "output": "/out"}),
        ("PortableRunner", [POOL[0], "--environment_type=LOOPBACK"], {"input": "a.csv", "output": "out"}),
        ("PrismRunner", [], {"input": "a.csv", "output": "out"}),
    ],
)
def test_complete_options_pass(runner: str, flags: list[str], places: dict[str, str]) -> None:
    checked(runner, *flags, **places)


@pytest.mark.parametrize(
    ("flags", "needs_us"),
    [
        (["--runner=DirectRunner"], True),
        (["--runner=PrismRunner"], True),
        (["--runner=DataflowRunner"], False),
        (["--runner=PortableRunner", *POOL], False),
        (["--runner=PortableRunner", POOL[0], "--environment_type=LOOPBACK"], True),
    ],
)
def test_it_is_known_which_jobs_end_with_this_process(flags: list[str], needs_us: bool) -> None:
    options = make_options(flags)
    assert works_in_launcher(find_engine(options), options) is needs_us
