"""Flags that neither this tool nor Beam's client knows: of a job server, or a slip of the pen."""

from __future__ import annotations

import pytest

from beam_tfrecord.errors import ConfigError
from pipelines import convert, verify
from pipelines.options import split_beam_flags
from pipelines.places import parse_places_and_beam_flags

PLACES = ["--input=a.csv", "--output=/out"]
FLINK = ["--runner=FlinkRunner", "--flink_master=http://flink:8081"]


@pytest.mark.parametrize(
    "runner",
    [FLINK, ["--runner", "spark"], ["--runner=PortableRunner", "--job_endpoint=h:1"], ["--runner=PrismRunner"]],
)
@pytest.mark.parametrize("flags", [["--number_of_execution_retries=2"], ["--object_reuse"]])
def test_what_only_a_job_server_knows_is_passed_on_and_told(
    runner: list[str], flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    namespace, beam_flags = split_beam_flags(convert.make_parser(), [*PLACES, *runner, *flags])
    assert namespace.output == "/out"
    assert beam_flags == [*runner, *flags]
    (line,) = capsys.readouterr().err.splitlines()
    assert flags[0].partition("=")[0] in line


def test_quiet_is_quiet_of_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    split_beam_flags(convert.make_parser(), [*PLACES, *FLINK, "--quiet", "--object_reuse"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--number_of_execution_retries=2"], "there is no flag --number_of_execution_retries"),
        (["--runner=DataflowRunner", "--object_reuse"], "there is no flag --object_reuse"),
        ([*FLINK, "--spltis=train=1"], "did you mean '--splits'?"),
        ([*FLINK, "--num-shard=2"], "did you mean '--num_shards'?"),
        ([*FLINK, "--paralelism=2"], "did you mean '--parallelism'?"),
        ([*FLINK, "-x"], "there is no flag -x"),
        ([*FLINK, "--number_of_execution_retries", "2"], "'2' belongs to no flag; for an option of the job server: "),
        ([*FLINK, "--number_of_execution_retries", "2"], "--number_of_execution_retries=2"),
        ([*FLINK, "2"], "'2' belongs to no flag"),
    ],
)
def test_a_slip_of_the_pen_is_refused_and_so_is_what_no_job_server_can_hear(flags: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        split_beam_flags(convert.make_parser(), [*PLACES, *flags])
    assert said in str(caught.value)


def test_places_stay_places_beside_them(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["/data/a", *FLINK, "--number_of_execution_retries=2", "/data/b", "--", "--object_reuse"]
    _, places, beam_flags = parse_places_and_beam_flags(verify.make_parser(), given)
    assert places == ["/data/a", "/data/b", "--object_reuse"]
    assert beam_flags == [*FLINK, "--number_of_execution_retries=2"]
    assert "--number_of_execution_retries" in capsys.readouterr().err


def test_a_slip_of_the_pen_beside_places_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean '--max_faults'"):
        parse_places_and_beam_flags(verify.make_parser(), ["/data/a", *FLINK, "--max_fault=2"])
