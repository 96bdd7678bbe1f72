"""The Flex Template: its metadata follow the command line, and its launcher calls it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from google.cloud.dataflow import TemplateMetadata
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.options.config import ConvertConfig, option_fields
from pipelines import convert
from pipelines.flex_template import convert_flags, main, metadata, places
from pipelines.options import config_from, make_beam_parser, split_beam_flags
from tests.conftest import ROOT

FILE = ROOT / "flex_template.json"
PARAMETERS: dict[str, dict[str, Any]] = {found["name"]: found for found in metadata()["parameters"]}
# What people write for each option that has a pattern; all of it is right.
SAMPLES = {
    "input": ["gs://b/photos", "gs://b/ä b, c.csv", "test=gs://b/t.csv,s3://c/u.csv", "gs://b/1.csv\ngs://b/2.csv"],
    "output": ["gs://bucket/out", "s3://bucket/out/"],
    "images": ["gs://bucket/photos", "https://example.org/photos"],
    "labels": ["gs://bucket/labels.txt"],
    "label_offset": ["0", "1"],
    "seed": ["0", "42", "1_000"],
    "shard_size": ["128MiB", "1.5 GB", "500000"],
    "read_ahead": ["64MiB"],
    "quality": ["1", "95", "100"],
    "max_pixels": ["150_000_000", "1,000"],
    "max_rejects": ["0", "1,000", "10%", "2.5 %"],
    "processes": ["4"],
    "read_threads": ["32"],
    **{
        field.name: ["true", "false"] if isinstance(field.default, bool) else list(field.metadata["choices"])
        for _, field in option_fields()
        if isinstance(field.default, bool) or field.metadata["choices"]
    },
}


def test_the_file_of_the_repository_is_what_the_flags_make(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--metadata"]) == 0
    assert FILE.read_text(encoding="utf-8") == capsys.readouterr().out, "make flex-template writes it anew"


def test_the_service_understands_all_of_it() -> None:
    """Google's own definition of the metadata takes the file, and gives it back unchanged."""
    text = FILE.read_text(encoding="utf-8")
    parsed = TemplateMetadata.from_json(text, ignore_unknown_fields=False)
    again = json.loads(
        json_format.MessageToJson(TemplateMetadata.pb(parsed), always_print_fields_with_no_presence=False)
    )
    assert not parsed.streaming
    assert without_false(again) == without_false(json.loads(text))
    for found in json.loads(text)["parameters"]:
        assert found["name"]
        assert found["label"]
        assert found["helpText"]


def without_false(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_false(item) for name, item in value.items() if item is not False}
    return [without_false(item) for item in value] if isinstance(value, list) else value


def test_each_flag_of_a_conversion_is_a_parameter_and_each_parameter_a_flag() -> None:
    parser = convert.make_parser()
    ours = {action.dest for action in parser._actions} - {"help", "plan", "quiet", "json", "no_wait"}
    beams = {action.dest for action in make_beam_parser()._actions}
    assert ours <= set(PARAMETERS)
    assert set(PARAMETERS) - ours <= beams
    assert len(PARAMETERS) == len(metadata()["parameters"])
    required = [name for name, found in PARAMETERS.items() if not found["isOptional"]]
    assert required == ["input", "output", "sdk_container_image"]


def test_patterns_are_those_of_the_samples() -> None:
    ours = {field.name for _, field in option_fields()}
    assert {name for name, found in PARAMETERS.items() if "regexes" in found and name in ours} == set(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_patterns_let_right_values_pass(name: str) -> None:
    for value in SAMPLES[name]:
        for pattern in PARAMETERS[name]["regexes"]:
            assert re.fullmatch(pattern, value)
        assert config_of([f"--{name}={value}", *together(name)])
    default = PARAMETERS[name].get("defaultValue")
    assert default is None or re.fullmatch(PARAMETERS[name]["regexes"][0], default)


def together(name: str) -> list[str]:
    """Options without which another one is refused."""
    return ["--splits=a=1"] if name == "stratify" else []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input", "photos/"),
        ("output", "/data/out"),
        ("seed", "-1"),
        ("quality", "best"),
        ("compression", "xz"),
        ("overwrite", "True!"),
        ("shard_size", "big"),
        ("max_rejects", "few"),
    ],
)
def test_patterns_stop_wrong_values(name: str, value: str) -> None:
    assert not any(re.fullmatch(pattern, value) for pattern in PARAMETERS[name]["regexes"])


def config_of(arguments: list[str]) -> ConvertConfig:
    """What convert makes of the launcher's arguments."""
    given = [*arguments]
    for flag in ("--input=gs://b/photos", "--output=gs://b/out"):
        if not any(argument.startswith(flag.partition("=")[0] + "=") for argument in given):
            given.append(flag)
    namespace, _ = split_beam_flags(convert.make_parser(), convert_flags(given))
    assert namespace.no_wait
    return config_from(namespace)


def test_defaults_change_nothing() -> None:
    """A form that shows the defaults sends them all."""
    filled = [f"--{name}={found['defaultValue']}" for name, found in PARAMETERS.items() if "defaultValue" in found]
    assert len(filled) > 20
    assert config_of(filled) == config_of([])


def test_empty_fields_of_a_form_are_left_out() -> None:
    assert config_of(["--keys=", "--splits=", "--resume="]) == config_of([])


def test_the_launcher_never_waits_and_runs_on_dataflow() -> None:
    launched = ["--input=gs://b/a,gs://b/c", "--project=p", "--template_location=gs://b/t/job_object", "--resume=true"]
    assert convert_flags(launched) == [
        "--input=gs://b/a",
        "--input=gs://b/c",
        "--project=p",
        "--template_location=gs://b/t/job_object",
        "--resume",
        "--runner=DataflowRunner",
        "--no_wait",
    ]
    assert convert_flags(["--runner=DataflowRunner"]).count("--runner=DataflowRunner") == 1
    assert convert_flags(["--overwrite=false"])[0] == "--runner=DataflowRunner"


def test_a_wrong_switch_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--input=gs://b/a", "--output=gs://b/o", "--overwrite=perhaps"]) == 2
    assert capsys.readouterr().err == "error: --overwrite perhaps: must be true or false\n"


def test_what_is_missing_for_a_job_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--input=gs://b/a", "--output=gs://b/o", "--project=p", "--region=r"]) == 2
    error = capsys.readouterr().err
    assert "--runner DataflowRunner needs --temp_location gs://BUCKET/tmp, --sdk_container_image" in error


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("gs://b/a.csv", ["gs://b/a.csv"]),
        ("gs://b/a, b.csv", ["gs://b/a, b.csv"]),
        ("gs://b/a.csv,gs://b/b.csv", ["gs://b/a.csv", "gs://b/b.csv"]),
        ("gs://b/a.csv , test=s3://b/b.csv\n", ["gs://b/a.csv", "test=s3://b/b.csv"]),
        ("gs://b/a.csv\n\ngs://b/b.csv", ["gs://b/a.csv", "gs://b/b.csv"]),
        ("gs://b/a,b=c.csv", ["gs://b/a,b=c.csv"]),
    ],
)
def test_places_are_told_apart(value: str, expected: list[str]) -> None:
    assert places(value) == expected


NAMES = st.text(st.characters(exclude_characters="\n:", exclude_categories=("Cs", "Z", "Cc")), min_size=1)
NAMES = NAMES.filter(lambda name: not name.endswith(","))  # which separates places, before white space too


@given(st.lists(NAMES, min_size=1, max_size=4), st.sampled_from([",", "\n", " ,  ", " \n\n"]))
def test_any_names_come_through(names: list[str], separator: str) -> None:
    uris = [f"gs://bucket/{name}" for name in names]
    assert places(separator.join(uris)) == list(uris)
