"""What a user nearly typed right is answered with the nearest right thing, whatever it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import beam_tfrecord
from beam_tfrecord import ConfigError
from beam_tfrecord.errors import nearest
from pipelines.main import COMMANDS, main
from tests.handmade import small_dataset
from tests.samples import class_folders, write_files, write_table

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos, a table, a vocabulary and a dataset (splits train and test, labels cat and dog)."""
    folder = tmp_path_factory.mktemp("here")
    write_files(folder / "photos", class_folders(2, ("circle", "square")))
    pictures = sorted(str(path.relative_to(folder)) for path in (folder / "photos").rglob("*.jpg"))
    write_table(
        folder / "labels.csv",
        [("image", "fruit", "weight"), *((name, Path(name).parent.name, "1") for name in pictures)],
    )
    (folder / "names.txt").write_text("circle\nsquare\n")
    (folder / "out.args").write_text("--input=labels.csv\n")
    small_dataset(folder / "dataset")
    return folder


TABLE = ["convert", "--input", "labels.csv", "--output", "new", "--plan"]
MISTAKES = [
    # What is mistyped, the arguments, the exit status, and what is named.
    ("command", ["covert"], 2, "'convert'"),
    ("command behind help", ["help", "covert"], 2, "'convert'"),
    ("flag", [*TABLE, "--spltis", "train=1"], 2, "'--splits'"),
    ("flag with dashes", [*TABLE, "--num-shard", "2"], 2, "'--num_shards'"),
    ("flag of Beam", [*TABLE, "--direct_num_worker", "2"], 2, "'--direct_num_workers'"),
    ("group of options", ["convert", "--help", "imges"], 2, "'images'"),
    ("choice", [*TABLE, "--compression", "gzp"], 2, "'gzip'"),
    ("colour", [*TABLE, "--background", "withe"], 2, "'white'"),
    ("format", [*TABLE, "--format", "jsnol"], 2, "'jsonl'"),
    ("type of a column", [*TABLE, "--columns", "weight:flaot"], 2, "'float'"),
    ("column of the label", [*TABLE, "--label_column", "friut"], 2, "'fruit'"),
    ("further column", [*TABLE, "--columns", "wieght:float"], 2, "'weight'"),
    ("split of shards", [*TABLE, "--splits", "train=1,test=1", "--num_shards", "trian=8"], 2, "'train'"),
    ("records of shards", [*TABLE, "--splits", "train=1,test=1", "--shard_records", "tset=2"], 2, "'test'"),
    ("key", [*TABLE, "--label_column", "fruit", "--rename", "image/encodd=image"], 2, "'image/encoded'"),
    ("runner", [*TABLE, "--runner", "DataflowRuner"], 2, "'DataflowRunner'"),
    ("input", ["convert", "--input", "lables.csv", "--output", "new"], 2, "'labels.csv'"),
    ("input with a split", ["convert", "--input", "train=lables.csv", "--output", "new"], 2, "'labels.csv'"),
    ("folder of images", [*TABLE, "--images", "photoes"], 2, "'photos'"),
    ("vocabulary", [*TABLE, "--labels", "nams.txt"], 2, "'names.txt'"),
    ("file of flags", ["convert", "@out.arg", "--output", "new"], 2, "'out.args'"),
    ("dataset to show", ["show", "datset"], 1, "'dataset'"),
    ("dataset to verify", ["verify", "datset"], 1, "'dataset'"),
    ("dataset to index", ["index", "datset"], 1, "'dataset'"),
    ("dataset to report on", ["report", "datset"], 1, "'dataset'"),
    ("dataset to extract", ["extract", "datset", "--output", "new"], 1, "'dataset'"),
    ("dataset to pack", ["pack", "datset", "--output", "new.tar"], 1, "'dataset'"),
    ("archive to unpack", ["unpack", "labels.tar", "--output", "new"], 2, "'labels.csv'"),
    ("dataset to reshard", ["reshard", "datset", "--output", "new"], 2, "'dataset'"),
    ("datasets to merge", ["merge", "dataset", "datset", "--output", "new"], 2, "'dataset'"),
    ("split to show", ["show", "dataset", "--split", "trian"], 2, "'train'"),
    ("split to extract", ["extract", "dataset", "--split", "trian", "--output", "new"], 2, "'train'"),
    ("split to rename", ["reshard", "dataset", "--output", "new", "--rename_splits", "trian=all"], 2, "'train'"),
    ("split of new shards", ["reshard", "dataset", "--output", "new", "--num_shards", "trian=1"], 2, "'train'"),
    ("label to show", ["show", "dataset", "--where", "label=cats"], 2, "'cat'"),
    ("feature to show", ["show", "dataset", "--where", "image/filenam=x"], 2, "'image/filename'"),
    ("flag of show", ["show", "dataset", "--limt", "2"], 2, "'--limit'"),
    ("decoder", ["verify", "dataset", "--decoder", "pilow"], 2, "'pillow'"),
]


@pytest.mark.parametrize(
    ("arguments", "status", "named"), [mistake[1:] for mistake in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_a_mistyped_word_is_answered_with_the_nearest(
    arguments: list[str], status: int, named: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(here)
    assert main(arguments) == status
    out, err = capsys.readouterr()
    assert f"did you mean {named}?" in err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert out == ""
    assert not (here / "new").exists()


def test_a_mistyped_label_is_a_reject_that_names_the_nearest(here: Path, tmp_path: Path) -> None:
    (photo, *_) = sorted((here / "photos" / "circle").iterdir())
    table = write_table(tmp_path / "a.csv", [("image", "label"), (str(photo), "cirle")])
    summary = beam_tfrecord.convert(table, tmp_path / "out", labels=["circle", "square"], max_rejects="100%")
    assert summary.rejected == {"unknown_label": 1}
    rejects = (tmp_path / "out" / ".staging" / "rejects.jsonl").read_text("utf-8")
    assert "did you mean 'circle'?" in rejects


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: beam_tfrecord.convert("labels.csv", "new", spltis={"train": 1}), "splits"),
        (lambda: beam_tfrecord.convert("labels.csv", "new", pipline_options=[]), "pipeline_options"),
        (lambda: beam_tfrecord.convert("labels.csv", "new", compression="gzp"), "gzip"),
        (lambda: beam_tfrecord.prepare(input="labels.csv", ouput="new"), "output"),
        (lambda: beam_tfrecord.load("dataset", "trian"), "train"),
        (lambda: beam_tfrecord.read("dataset", "trian"), "train"),
    ],
)
def test_so_is_a_mistyped_word_in_a_program(call: Any, named: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    with pytest.raises(ConfigError, match=f"did you mean '{named}'"):
        call()


def test_a_mistyped_name_of_the_package_is_one_that_python_can_mend() -> None:
    with pytest.raises(AttributeError) as caught:
        beam_tfrecord.conver  # noqa: B018
    assert caught.value.name == "conver"
    assert "convert" in dir(caught.value.obj)


# ---------------------------------------------------------------------------------------------------------------------
# --help


def help_of(capsys: Captured, *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    assert ended.value.code == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_two_screens_and_ends_in_examples(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = help_of(capsys, command, "--help")
    lines = text.splitlines()
    assert len(lines) <= {"convert": 85, "inspect": 64}.get(command, 48)  # those read what lies anywhere
    assert lines[0].startswith(f"usage: beam-tfrecord {command} ")
    examples = [line for line in text.partition("\nexamples:\n")[2].split("\n\n")[0].splitlines() if line]
    assert 2 <= len(examples) <= 5
    assert all(line.startswith(f"  beam-tfrecord {command} ") or "convert @" in line for line in examples)
    own = text.partition("\nexamples:\n")[0]
    assert max(map(len, own.splitlines())) <= 98
    assert help_of(capsys, "help", command) == text


def test_the_whole_help_tells_every_option_with_its_default(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    from beam_tfrecord.options.config import option_fields
    from pipelines.options import COMMON, SECTION_TITLES, default_text

    monkeypatch.setenv("COLUMNS", "100")
    short, whole = help_of(capsys, "convert", "--help"), help_of(capsys, "convert", "--help", "all")
    fields = {field.name: field for _, field in option_fields()}
    assert set(fields) >= COMMON
    flat = " ".join(whole.split())
    for name, field in fields.items():
        assert f"--{name} " in flat
        assert f"--{name}" in short
        default = default_text(field)
        assert not default or f"(default: {default})" in flat
    for topic in SECTION_TITLES:
        own = help_of(capsys, "convert", "--help", topic)
        for section, field in option_fields():
            assert (f"\n  --{field.name} " in own or f"\n  --{field.name}\n" in own) == (section == topic)


def test_one_option_can_be_asked_about(capsys: Captured) -> None:
    text = help_of(capsys, "convert", "--help", "quality")
    assert text.startswith("--quality 1-100")
    assert "(default: 95)" in text
    assert "--resize" not in text


def test_the_plan_says_that_splits_in_the_table_are_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.csv").write_text("age,split,patient\n1,train,p\n2,test,p\n3,,q\n")
    given = ["convert", "--input", str(tmp_path / "rows.csv"), "--output", str(tmp_path / "out"), "--columns=age:int64"]
    assert main([*given, "--splits=train=0.5,test=0.5", "--group_column=patient", "--plan"]) == 0
    assert "2 rows of 3 name a split, which --splits and --group_column leave as it is" in capsys.readouterr().out
    assert main([*given, "--plan"]) == 0
    assert "name a split" not in capsys.readouterr().out


def test_a_reject_of_a_table_names_its_image_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.csv").write_text("image,label\nphotos/gone.jpg,a\nphotos/here.jpg,a\n")
    write_files(tmp_path, {"photos/here.jpg": next(iter(class_folders(1).values()))})
    given = ["--input", str(tmp_path / "rows.csv"), "--output", str(tmp_path / "out"), "--max_rejects=100%"]
    assert main(["convert", *given]) == 0
    assert "rows.csv:2 (gone.jpg): missing_file: " in capsys.readouterr().err


def test_the_beginning_of_a_name_is_enough() -> None:
    assert nearest("val", ["train", "test", "validation"]) == " (did you mean 'validation'?)"
    assert nearest("x", ["train", "test", "validation"]) == ""
    assert nearest("", ["train"]) == ""
