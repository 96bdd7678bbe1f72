"""The options of choosing and their files, one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord import ConfigError, ConvertConfig, RowError
from beam_tfrecord.annotations.box_rules import Box
from beam_tfrecord.annotations.objects import Object, Runs
from beam_tfrecord.conversion.choosing.choice import chosen_labels, load_choice
from beam_tfrecord.conversion.choosing.chooser import holds, is_large
from beam_tfrecord.options.choosing import (
    ChoosingConfig,
    ExcludeFile,
    parse_conditions,
    parse_label_names,
    parse_min_box,
)
from beam_tfrecord.storage import Storage


def choice(**options: Any) -> Any:
    config = ConvertConfig.from_options({"input": "in", "output": "out", **options})
    return load_choice(config, Storage.for_run(config.run))


@pytest.mark.parametrize(
    ("condition", "cell", "expected"),
    [
        ("a = b", "b", True),
        ("a == b", " b ", True),
        ("a = b", "B", False),
        ("a != b", "c", True),
        ("a = ", "", True),
        ("a = ''", None, True),
        ("a != ", None, False),
        ("a != ", "x", True),
        ("a = 1", 1.0, True),
        ("a = 1.0", "1", True),
        ("a != 1", 2, True),
        ("a = true", True, True),
        ("a = True", True, True),
        ("a = true", False, False),
        ("a >= 0.5", "0.5", True),
        ("a > 0.5", "0.5", False),
        ("a < 10", "9", True),
        ("a < 9", "10", False),
        ("a <= 1e3", 1000, True),
        ("a > 0", "inf", True),
        ("a > 0", None, False),
        ("a > 0", float("nan"), False),
        ("day < 2024-02-01", "2024-01-31", True),
        ("day > '2024-02-01'", "2024-10-01", True),
        ("tags = x", ["x", "y"], True),
        ("tags = z", ["x", "y"], False),
        ("tags != z", ["x", "y"], True),
        ("tags != x", ["x", "y"], False),
        ("n > 2", [3], True),
        ("a=b=c", "b=c", True),
        ("image width >= 5", 5, True),
    ],
)
def test_a_condition_compares_numbers_as_numbers_and_all_else_as_text(
    condition: str, cell: Any, expected: bool
) -> None:
    assert holds(parse_conditions(condition)[0], cell) is expected


@pytest.mark.parametrize(("condition", "cell"), [("a > 1", "n/a"), ("a <= 1", "nan?"), ("a < x", ["1", "2"])])
def test_a_cell_that_has_no_such_order_is_an_error_of_its_row(condition: str, cell: Any) -> None:
    with pytest.raises(RowError, match="--where a"):
        holds(parse_conditions(condition)[0], cell)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": "score"}, "--where score: must be COLUMN OP VALUE"),
        ({"where": "> 5"}, "must be COLUMN OP VALUE"),
        ({"limit": "0"}, "--limit 0: must be more than nothing"),
        ({"limit": "x%"}, "must be a number of rows"),
        ({"limit": "120%"}, "must be a number of rows"),
        ({"min_box": "0px"}, "must be a number of pixels"),
        ({"min_box": "5em"}, "must be a number of pixels"),
        ({"min_box": "101%"}, "must be 100% or less"),
        ({"keep_labels": "a,,b"}, "--keep_labels a,,b: must be names"),
        ({"keep_labels": "a,b", "drop_labels": "b"}, "both name 'b'"),
        ({"exclude": "warnings.jsonl:duplicate_idd"}, "did you mean 'duplicate_id'"),
        ({"stratify": True}, "--stratify keeps the shares"),
    ],
)
def test_a_wrong_value_is_refused_with_the_right_ones(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as told:
        ConvertConfig.from_options({"input": "in", "output": "out", **options})
    assert message in str(told.value)


def test_values_may_be_text_or_python_values() -> None:
    told = ChoosingConfig(
        keep_labels='cat,"a, b", dog ', map_labels={"x": "y", "z": ""}, min_box="2.5%", limit="10%", exclude="a.txt"
    )
    assert told.keep_labels == ("cat", "a, b", "dog")
    assert told.map_labels == (("x", "y"), ("z", ""))
    assert told.min_box == (2.5, "%")
    assert told.limit == 0.1
    assert told.exclude == (ExcludeFile("a.txt"),)
    assert (
        ChoosingConfig(**{name: getattr(told, name) for name in ("keep_labels", "map_labels", "min_box")}).to_json()[
            "min_box"
        ]
        == "2.5%"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("map.txt", "cat=animal\n dog = animal \n\nunsure=\n"),
        ("map.csv", 'old,new\ncat,animal\n"dog",animal\nunsure,\n'),
        ("map.tsv", "cat\tanimal\ndog\tanimal\nunsure\t\n"),
        ("map.json", '{"cat": "animal", "dog": "animal", "unsure": null}'),
        ("a=b.txt", "cat=animal\ndog=animal\nunsure="),  # an existing file is meant literally
    ],
)
def test_new_names_of_labels_come_from_files_of_several_kinds(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    expected = {"cat": "animal", "dog": "animal", "unsure": ""}
    assert choice(map_labels=str(tmp_path / name)).renames == expected
    assert choice(map_labels="cat=animal, dog=animal,unsure=").renames == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("map.txt", "cat animal\n", "is not of the form old=new"),
        ("map.csv", "cat,animal,x\n", "is not an old and a new name"),
        ("map.json", '{"cat": 3}', "which is no name"),
        ("map.json", '{"cat": "a", "cat": "b"}', "stands twice"),
        ("map.txt", "cat=a\ncat=b\n", "'cat' would become 'a' and 'b'"),
        ("map.txt", "=b\n", "a label without a name"),
        ("map.txt", "\n", "names no labels"),
        ("missing.txt", None, "there is no such file"),
    ],
)
def test_a_file_of_names_that_tells_none_is_refused(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(ConfigError) as told:
        choice(map_labels=str(tmp_path / name))
    assert message in str(told.value)
    assert name in str(told.value)


def test_findings_are_told_from_names_and_only_some_of_their_codes_count(tmp_path: Path) -> None:
    line = {"origin": "a.csv:3", "uri": "x/3.jpg", "stage": "encode", "code": "missing_file", "message": "m"}
    other = {**line, "origin": "a.csv:4", "uri": "", "code": "bad_row"}
    whole = {**line, "origin": "a.csv", "stage": "account", "code": "images_not_named"}
    lines = "".join(json.dumps(one) + "\n" for one in (line, other, whole))
    (tmp_path / "rejects.jsonl").write_text(lines, "utf-8")
    (tmp_path / "names.txt").write_text("./x/1.jpg\n\n 7\n", "utf-8")
    place = str(tmp_path / "rejects.jsonl")
    assert set(choice(exclude=place).excluded.places) == {("a.csv:3", "x/3.jpg"), ("a.csv:4", "")}
    assert set(choice(exclude=f"{place}:bad_row").excluded.places) == {("a.csv:4", "")}
    both = choice(exclude=[f"{place}:bad_row,empty_file", str(tmp_path / "names.txt")])
    assert both.excluded.names == {"./x/1.jpg": "./x/1.jpg", "x/1.jpg": "./x/1.jpg", " 7": " 7", "7": " 7"}
    assert [option for option, _ in both.remarks] == ["exclude"]
    assert "'empty_file'" in both.remarks[0][1]


@pytest.mark.parametrize("text", ['{"id": 5}\n', '{"origin": "a"}\nx\n'])
def test_json_lines_of_something_else_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.jsonl").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"neither a rejects\.jsonl"):
        choice(exclude=str(tmp_path / "rows.jsonl"))


def test_a_stated_vocabulary_keeps_its_order_and_the_first_id_of_merged_names() -> None:
    made = choice(map_labels="dog=pet,cat=pet,van=", drop_labels="bus")
    assert chosen_labels(("bus", "dog", "van", "cat", "hen"), (2, 5, 7, 9, 11), made) == (("pet", "hen"), (5, 11))
    assert chosen_labels(("hen", "cat", "dog"), None, made) == (("hen", "pet"), None)
    assert chosen_labels(("hen", "cat"), (3, 4), choice()) == (("hen", "cat"), (3, 4))


@pytest.mark.parametrize(
    ("box", "normalized", "least", "size", "expected"),
    [
        ((0, 0, 10, 8), False, "8px", None, True),
        ((0, 0, 10, 7.9), False, "8", None, False),
        ((0, 0, 7, 80), False, "8px", None, False),
        ((0, 0, 0.1, 0.1), True, "10%", None, True),
        ((0, 0, 0.1, 0.09), True, "10%", None, False),
        ((0, 0, 0.1, 0.1), True, "8px", (100, 80), True),
        ((0, 0, 0.1, 0.1), True, "9px", (100, 80), False),
        ((0, 0, 10, 8), False, "10%", (100, 80), True),
        ((0, 0, 10, 8), False, "11%", (100, 80), False),
        ((0, 0, 10, 8), False, "90%", None, True),  # nobody can tell
        ((9, 9, 1, 1), False, "8px", None, True),  # the matter of --bad_boxes
        ((0, 0, float("nan"), 1), False, "8px", None, True),
    ],
)
def test_a_box_must_be_as_wide_and_as_high(
    box: Any, normalized: bool, least: str, size: tuple[int, int] | None, expected: bool
) -> None:
    assert is_large(Object("x", Box(*box), normalized), parse_min_box(least), size) is expected


def test_the_box_of_a_mask_alone_is_that_around_it() -> None:
    runs = Runs(4, 5, (4 * 1 + 1, 2, 2, 2, 9))  # columns 1 and 2, rows 1 and 2
    assert is_large(Object("x", None, mask=runs), parse_min_box("2px"), None)
    assert not is_large(Object("x", None, mask=runs), parse_min_box("3px"), None)


@pytest.mark.parametrize("name", [0, False, 3, ["cat"]])
def test_a_new_name_that_is_no_text_is_refused_and_never_drops_a_label(name: Any) -> None:
    with pytest.raises(ValueError, match=r"'dog' becomes .*, which is no name"):
        parse_label_names({"cat": "animal", "dog": name})


def test_none_and_an_empty_name_drop_a_label() -> None:
    assert parse_label_names({"cat": None, "dog": ""}) == (("cat", ""), ("dog", ""))
