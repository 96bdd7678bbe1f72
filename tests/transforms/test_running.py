from __future__ import annotations

import pytest

from beam_tfrecord.errors import ConfigError, ManifestError, StorageError
from beam_tfrecord.transforms.running import check_no_wait, make_options, own_error


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ManifestError("a.csv: no rows"), ManifestError("a.csv: no rows")),
        (ManifestError("a.csv: no rows [while running 'Job/Plan']"), ManifestError("a.csv: no rows")),
        (
            RuntimeError(
                "Traceback (most recent call last):\n  File 'x.py', line 1\n"
                "beam_tfrecord.errors.StorageError: gs://b: you may not read it\n\n"
                "During handling of the above exception, another exception occurred:\n"
                "beam_tfrecord.errors.StorageError: gs://b: you may not read it [while running 'Read']\n"
            ),
            StorageError("gs://b: you may not read it"),
        ),
        (
            RuntimeError("beam_tfrecord.errors.ConfigError: --num_shards names 'x' [while running 'P']"),
            ConfigError("--num_shards names 'x'"),
        ),
    ],
)
def test_errors_of_ours_come_out_as_they_were_raised(raised: Exception, expected: Exception) -> None:
    found = own_error(raised)
    assert (type(found), str(found)) == (type(expected), str(expected))


def test_a_bug_stays_what_it_is() -> None:
    bug = RuntimeError("KeyError: 3 [while running 'Plan']")
    assert own_error(bug) is bug


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--runner=PrismRunner"],
        ["--runner=FlinkRunner"],
        ["--runner=FlinkRunner", "--flink_master=[local]", "--environment_type=DOCKER"],
        ["--runner=FlinkRunner", "--flink_master=http://flink:8081", "--environment_type=LOOPBACK"],
        ["--runner=SparkRunner"],
        ["--runner=PortableRunner", "--job_endpoint=embed"],
    ],
)
def test_a_job_that_ends_with_this_process_is_waited_for(flags: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"--no_wait: with .* the job ends with this process"):
        check_no_wait(make_options(flags))


@pytest.mark.parametrize(
    "flags",
    [
        ["--runner=DataflowRunner"],
        ["--runner=FlinkRunner", "--flink_master=http://flink:8081", "--environment_type=EXTERNAL"],
        ["--runner=SparkRunner", "--spark_master_url=spark://spark:7077"],
        ["--runner=PortableRunner", "--job_endpoint=flink:8099", "--environment_type=DOCKER"],
    ],
)
def test_a_job_on_a_cluster_goes_on(flags: list[str]) -> None:
    check_no_wait(make_options(flags))
