"""``--near_duplicates``: what becomes of pictures that are the same, or nearly so.

Which pictures are alike is found here by comparing all with all, with a hash of gradients made by Pillow.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord import ConfigError, plan_job, prepare
from beam_tfrecord.storage import Storage
from benchmarks.near_duplicates import CHANGES, scene
from pipelines.main import main
from tests.conftest import ROOT
from tests.end_to_end.datasets import conversion, converted, findings, records, shard_bytes
from tests.loopback import Answer, Request, serving
from tests.samples import jpeg, png, truncated, write_files, write_table
from tests.waiting import PATIENCE, wait_until

CHANGED = ("encoded anew, quality 50", "half the size", "three quarters of the size", "grey", "contrast - 40 %")
PROCESSES = ["--runner=DirectRunner", "--direct_num_workers=2", "--direct_running_mode=multi_processing"]
THREADS = ["--runner=DirectRunner", "--direct_num_workers=2", "--direct_running_mode=multi_threading"]
SPLITS = "train=0.6,test=0.4"


def collection(folder: Path, seed: int, count: int = 14) -> list[str]:
    """Pictures of which some are altered copies, or copies byte for byte, of others, under names that tell nothing."""
    chance = random.Random(seed)
    names = [f"{number:03d}.jpg" for number in chance.sample(range(1000), 3 * count)]
    files: dict[str, bytes] = {}
    for number in range(count):
        picture = scene(1000 * seed + number, 320, 240)
        files[names.pop()] = jpeg(picture)
        for change in chance.sample(CHANGED, chance.choice((0, 0, 1, 1, 2))):
            files[names.pop()] = CHANGES[change](picture)
        if chance.random() < 0.2:
            files[names.pop()] = jpeg(picture)
    write_files(folder, files)
    return list(files)


def gradients(path: Path) -> np.ndarray:
    grey = np.asarray(Image.open(path).convert("L").resize((17, 16), Image.Resampling.BOX)).astype(int)
    return grey[:, 1:] > grey[:, :-1]


def clusters(folder: Path, names: Iterable[str]) -> list[set[str]]:
    """Names of pictures that are alike, found by comparing all with all; single ones, too."""
    hashes = {name: gradients(folder / name) for name in names}
    found: list[set[str]] = []
    for name, own in hashes.items():
        near = [one for one in found if any((hashes[other] != own).sum() <= 32 for other in one)]
        found = [one for one in found if one not in near] + [set().union({name}, *near)]
    return found


def first_of(ids: Iterable[str], seed: int = 0) -> str:
    """The id whose record comes first."""
    return min(ids, key=lambda own: hashlib.sha256(f"{seed}\0order\0{own}".encode()).digest()[:8])


def split_by_id(text: str, shares: Sequence[tuple[str, float]], seed: int = 0) -> str:
    """Where --splits puts what is known by a text."""
    place = int.from_bytes(hashlib.sha256(f"{seed}\0split\0{text}".encode()).digest()[:8], "big") / 2**64
    ends = itertools.accumulate(share for _, share in shares)
    return next(name for (name, _), end in zip(shares, ends, strict=True) if place < end)


def splits_of(output: Path) -> dict[str, str]:
    """The split of each record by its id."""
    return {
        record["image/source_id"][0].decode(): split
        for split in conversion(output)["splits"]
        for record in records(output, split)
    }


def table(folder: Path, names: Sequence[str], name: str = "rows.csv", **columns: Mapping[str, str]) -> Path:
    """A manifest of some pictures; of each further column the cells by picture."""
    rows = [[own, "xyz"[int(own[:3]) % 3], *(cells.get(own, "") for cells in columns.values())] for own in names]
    return write_table(folder / name, [["image", "label", *columns], *rows])


# ---------------------------------------------------------------------------------------------------------------------
# drop


@pytest.mark.parametrize("seed", range(2))
def test_of_pictures_that_are_alike_the_one_that_comes_first_is_kept_and_the_others_are_told(
    tmp_path: Path, seed: int
) -> None:
    names = collection(tmp_path / "in", seed)
    own = clusters(tmp_path / "in", names)
    assert 0 < sum(len(one) > 1 for one in own) < len(own)
    kept = {first_of(one, seed): one for one in own}
    manifest = table(tmp_path / "in", names)
    summary = converted(manifest, tmp_path / "out", near_duplicates="drop", seed=seed, splits=SPLITS)
    assert set(splits_of(tmp_path / "out")) == set(kept)
    assert summary.excluded == {"near_duplicates": len(names) - len(kept)}
    told = [line for line in findings(tmp_path / "out", "warnings") if line["code"] == "near_duplicate_dropped"]
    assert {(Path(line["uri"]).name, Path(line["other"]).name) for line in told} == {
        (other, first) for first, one in kept.items() for other in one - {first}
    }
    lines = manifest.read_text().splitlines()
    assert all(lines[int(line["origin"].rpartition(":")[2]) - 1].startswith(Path(line["uri"]).name) for line in told)
    assert all(repr(Path(line["other"]).name) in line["message"] for line in told)
    left = {code for code in summary.warnings if code in ("near_duplicate", "near_leak", "duplicate_content")}
    assert left == set()


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["drop", "group"])
def test_the_order_of_the_rows_and_the_engine_decide_nothing(tmp_path: Path, choice: str) -> None:
    names = collection(tmp_path / "in", 5)
    options: dict[str, Any] = {"near_duplicates": choice, "splits": SPLITS, "num_shards": 4}
    expected = converted(table(tmp_path / "in", names), tmp_path / "out", **options)
    assert expected.excluded.get("near_duplicates", 0) == (choice == "drop") * (
        len(names) - len(clusters(tmp_path / "in", names))
    )
    shuffled = sorted(names, key=lambda name: hashlib.md5(name.encode()).digest())
    other = table(tmp_path / "in", shuffled, "other.csv")
    for number, further in enumerate(
        ({"pipeline_options": PROCESSES}, {"pipeline_options": THREADS}, {"read_threads": 1})
    ):
        output = tmp_path / f"out{number}"
        found = converted(other, output, **options, **further)
        assert (found.excluded, found.warnings) == (expected.excluded, expected.warnings)
        assert shard_bytes(output) == shard_bytes(tmp_path / "out")
    converted(other, tmp_path / "sink", **options, writer="beam")
    assert splits_of(tmp_path / "sink") == splits_of(tmp_path / "out")


def test_a_row_that_cannot_become_a_record_is_no_reason_to_leave_another_out(tmp_path: Path) -> None:
    """The first of three copies has an unknown label, and the second cannot be decoded: the third is kept."""
    picture = scene(1, 160, 120)
    names = sorted((f"{number:03d}.jpg" for number in range(3)), key=first_of_order)
    write_files(
        tmp_path,
        {names[0]: jpeg(picture), names[1]: truncated(jpeg(picture, 80)), names[2]: jpeg(picture, 60)},
    )
    manifest = write_table(
        tmp_path / "rows.csv", [["image", "label"], [names[0], "no"], [names[1], "x"], [names[2], "x"]]
    )
    (tmp_path / "labels.txt").write_text("x\n")
    options = {"labels": tmp_path / "labels.txt", "max_rejects": "100%"}
    summary = converted(manifest, tmp_path / "out", near_duplicates="drop", **options)
    assert (summary.written, summary.excluded) == (1, {})
    assert set(splits_of(tmp_path / "out")) == {names[2]}


def first_of_order(name: str) -> bytes:
    return hashlib.sha256(f"0\0order\0{name}".encode()).digest()[:8]


def test_a_picture_that_several_rows_name_is_one_picture(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.jpg": jpeg(scene(1, 160, 120)), "b.jpg": jpeg(scene(1, 160, 120), 40)})
    rows = [["image", "label"], ["a.jpg", "x"], ["b.jpg", "x"], ["a.jpg", "y"], ["b.jpg", "y"]]
    summary = converted(write_table(tmp_path / "rows.csv", rows), tmp_path / "out", near_duplicates="drop")
    assert (summary.written, summary.excluded) == (2, {"near_duplicates": 2})
    assert {record["image/filename"][0].decode() for record in records(tmp_path / "out")} == {
        first_of(("a.jpg", "b.jpg"))
    }


def test_objects_of_rows_that_go_are_counted(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.jpg": jpeg(scene(1, 160, 120)), "b.jpg": jpeg(scene(1, 160, 120), 40)})
    rows = [["image", "label", "xmin", "ymin", "xmax", "ymax"]]
    rows += [[f"{name}.jpg", "x", f"{n}", "10", "60", "80"] for name in "ab" for n in (5, 20, 30)]
    converted(write_table(tmp_path / "rows.csv", rows), tmp_path / "out", near_duplicates="drop")
    objects = conversion(tmp_path / "out")["objects"]
    assert (objects["found"], objects["stored"], objects["excluded"]) == (6, 3, 3)


def test_other_options_choose_before_and_a_limit_behind(tmp_path: Path) -> None:
    names = collection(tmp_path / "in", 6)
    own = clusters(tmp_path / "in", names)
    without = first_of(max(own, key=len))
    (tmp_path / "without.txt").write_text(f"{without}\n")
    left = {first_of(one - {without}) for one in own if one - {without}}
    options: dict[str, Any] = {"near_duplicates": "drop", "exclude": tmp_path / "without.txt"}
    converted(table(tmp_path / "in", names), tmp_path / "all", **options)
    assert set(splits_of(tmp_path / "all")) == left
    summary = converted(table(tmp_path / "in", names), tmp_path / "some", **options, limit=5)
    assert set(splits_of(tmp_path / "some")) < left
    assert summary.excluded == {
        "exclude": 1,
        "near_duplicates": len(names) - 1 - len(left),
        "limit": len(left) - 5,
    }


# ---------------------------------------------------------------------------------------------------------------------
# group


@pytest.mark.parametrize("seed", range(2))
def test_pictures_that_are_alike_share_a_split_and_all_others_stay(tmp_path: Path, seed: int) -> None:
    names = collection(tmp_path / "in", 10 + seed, 20)
    own = clusters(tmp_path / "in", names)
    shares = [("train", 0.5), ("validation", 0.2), ("test", 0.3)]
    summary = converted(
        tmp_path / "in" if seed == 0 else table(tmp_path / "in", names),
        tmp_path / "out",
        near_duplicates="group",
        splits=dict(shares),
        seed=seed,
        **({"label_pattern": "(?P<label>^.)"} if seed == 0 else {}),
    )
    assert splits_of(tmp_path / "out") == {
        name: split_by_id(first_of(one, seed), shares, seed) for one in own for name in one
    }
    assert summary.excluded == {}
    assert {"near_leak", "split_leak"}.isdisjoint(summary.warnings)


def test_groups_that_share_a_picture_are_one_group(tmp_path: Path) -> None:
    names = collection(tmp_path / "in", 20, 20)
    own = clusters(tmp_path / "in", names)
    chance = random.Random(1)
    patients = {name: f"p{chance.randrange(12)}" for name in names if chance.random() < 0.8}
    units = {name: patients.get(name, name) for name in names}
    joined: list[set[str]] = []
    for together in ({units[name] for name in one} for one in own):
        near = [other for other in joined if other & together]
        joined = [other for other in joined if other not in near] + [together.union(*near)]
    shares = [("train", 0.5), ("test", 0.5)]
    manifest = table(tmp_path / "in", names, patient=patients)
    options = {"splits": dict(shares), "group_column": "patient"}
    converted(manifest, tmp_path / "out", near_duplicates="group", **options)
    assert splits_of(tmp_path / "out") == {
        name: split_by_id(first_of(next(one for one in joined if units[name] in one)), shares) for name in names
    }


def test_rows_whose_source_names_a_split_stay_there_and_others_follow_the_first_of_them(tmp_path: Path) -> None:
    names = collection(tmp_path / "in", 30, 20)
    own = clusters(tmp_path / "in", names)
    chance = random.Random(2)
    named = {name: chance.choice(("train", "test", "extra")) for name in names if chance.random() < 0.5}
    manifest = table(tmp_path / "in", names, split=named)
    shares = [("train", 0.5), ("test", 0.5)]
    expected, straddling = dict(named), {}
    for one in own:
        if told := [name for name in one if name in named]:
            expected |= {name: named[first_of(told)] for name in one - set(told)}
            if len({named[name] for name in told}) > 1:
                straddling[first_of(told)] = Counter(named[name] for name in told)
        else:
            expected |= {name: split_by_id(first_of(one), shares) for name in one}
    assert straddling
    converted(manifest, tmp_path / "out", near_duplicates="group", splits=dict(shares))
    assert splits_of(tmp_path / "out") == expected
    lines = [line for line in findings(tmp_path / "out", "warnings") if line["code"] == "near_duplicates_straddle"]
    assert {Path(line["uri"]).name for line in lines} == set(straddling)
    for line in lines:
        for split, count in straddling[Path(line["uri"]).name].items():
            assert f"{count} in {split}" in line["message"]


def test_without_splits_only_the_rows_that_name_one_decide(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {"000.jpg": jpeg(scene(1, 160, 120)), "001.jpg": jpeg(scene(1, 160, 120), 40), "002.jpg": jpeg(scene(2))},
    )
    manifest = table(tmp_path, ["000.jpg", "001.jpg", "002.jpg"], split={"000.jpg": "test"})
    converted(manifest, tmp_path / "out", near_duplicates="group")
    assert splits_of(tmp_path / "out") == {"000.jpg": "test", "001.jpg": "test", "002.jpg": "train"}


# ---------------------------------------------------------------------------------------------------------------------
# Plans, runs that end early, and what cannot be


@pytest.mark.parametrize("choice", ["drop", "group"])
def test_a_plan_says_what_will_happen_and_writes_nothing(
    tmp_path: Path, choice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = collection(tmp_path / "in", 7)
    manifest = table(tmp_path / "in", names)
    flags = ["--input", str(manifest), "--output", str(tmp_path / "out"), "--near_duplicates", choice]
    flags += ["--splits", SPLITS]
    assert main(["convert", *flags, "--plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert main(["convert", *flags, "--plan"]) == 0
    assert "images were looked at for --near_duplicates" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    summary = converted(manifest, tmp_path / "out", near_duplicates=choice, splits=SPLITS)
    assert plan["excluded_by_option"] == summary.excluded
    assert {name: own["records"] for name, own in plan["splits"].items()} == summary.splits
    job = prepare(input=str(manifest), output=str(tmp_path / "other"), near_duplicates=choice, splits=SPLITS)
    assert plan_job(job, Storage()).rows_left == summary.written


@pytest.mark.slow
@pytest.mark.parametrize("place", ["near", "shards"])
def test_a_run_that_is_killed_in_either_pass_goes_on_to_the_same_bytes(tmp_path: Path, place: str) -> None:
    names = collection(tmp_path / "in", 8, 30)
    manifest = table(tmp_path / "in", names)
    options: dict[str, Any] = {"near_duplicates": "drop", "splits": SPLITS, "num_shards": 8}
    expected = converted(manifest, tmp_path / "whole", **options)
    out, held, killed = tmp_path / "out", threading.Event(), threading.Event()

    def answer(request: Request) -> Answer:
        """An image; none once the pass has finished something, before the run is killed."""
        if not killed.is_set() and any((out / ".staging" / place).rglob("*.info.json")):
            held.set()
            killed.wait(PATIENCE)
        return Answer(body=(tmp_path / "in" / request.path.rpartition("/")[2]).read_bytes())

    with serving(answer) as server:
        options["images"] = server.url
        flags = [f"--{name}={value}" for name, value in options.items()]
        line = [sys.executable, "-m", "pipelines.main", "convert", "--input", str(manifest), "--output", str(out)]
        with subprocess.Popen([*line, *flags], cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True) as run:
            wait_until(lambda: held.is_set() or run.poll() is not None)
            os.killpg(run.pid, signal.SIGKILL)
        killed.set()
        assert run.returncode == -signal.SIGKILL
        summary = converted(manifest, out, **options, resume=True)
    assert (summary.excluded, summary.warnings) == (expected.excluded, expected.warnings)
    assert shard_bytes(out) == shard_bytes(tmp_path / "whole")


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path / "in", {f"x/{n}.png": png(scene(n, 64, 48)) for n in range(3)})
    write_table(
        tmp_path / "clips.csv", [["image", "label", "clip"], *([f"in/x/{n}.png", "x", "one"] for n in range(3))]
    )
    write_table(tmp_path / "table.csv", [["a", "b"], ["1", "2"]])
    for source, options, told in (
        ("in", {"validate": "header"}, "--validate header does not"),
        ("in", {"near_duplicates": "group", "stratify": True, "splits": SPLITS}, "--stratify places each class"),
        ("clips.csv", {"sequence_column": "clip"}, "these are sequences"),
        ("table.csv", {"columns": "a:int64"}, "rows without any"),
    ):
        with pytest.raises(ConfigError, match=told):
            converted(tmp_path / source, tmp_path / "out", **{"near_duplicates": "drop", **options})


def test_what_one_run_tells_is_what_the_next_one_leaves_out(tmp_path: Path) -> None:
    """``--exclude warnings.jsonl:near_leak,label_conflict``."""
    names = collection(tmp_path / "in", 9, 20)
    manifest = table(tmp_path / "in", names)
    options: dict[str, Any] = {"splits": SPLITS}
    converted(manifest, tmp_path / "one", **options)
    lines = findings(tmp_path / "one", "warnings")
    bad = {Path(line["uri"]).name for line in lines if line["code"] in ("near_leak", "label_conflict")}
    assert {"near_leak", "label_conflict"} <= {line["code"] for line in lines}
    exclude = f"{tmp_path / 'one' / 'warnings.jsonl'}:near_leak,label_conflict"
    second = converted(manifest, tmp_path / "two", exclude=exclude, strict=True, **options)
    assert second.excluded == {"exclude": len(bad)}
    assert set(splits_of(tmp_path / "two")) == set(names) - bad
    assert {"near_leak", "label_conflict"}.isdisjoint(second.warnings)
