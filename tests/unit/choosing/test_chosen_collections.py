"""Random collections of every layout, with random options of choosing, beside a filter in plain Python."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.fuzz_collections import Collection, collection, placed
from tests.label_files import HEIGHT, WIDTH, Picture
from tests.layouts import seen
from tests.samples import write_files

TRIALS = int(os.environ.get("CHOOSING_TRIALS", "150"))


def options_for(made: Collection, rng: random.Random, folder: Path) -> tuple[dict[str, Any], set[str]]:
    """(some options, about labels and pictures that are there as a rule; the paths that --exclude names)."""
    excluded: set[str] = set()
    labels = sorted({name for one in made.pictures.values() for name in names_of(one)}) or ["thing"]
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        options["map_labels"] = {name: rng.choice(["animal", "b", ""]) for name in rng.sample(labels, 1)}
    names = sorted({*labels, "animal", "b"})
    if rng.random() < 0.4:
        options["keep_labels"] = rng.sample(names, min(len(names), 3))
    elif rng.random() < 0.4:
        options["drop_labels"] = rng.sample(names, 1)
    if rng.random() < 0.5:
        options["min_box"] = rng.choice(["10px", "11", "12px", "16%", "20%", "23%"])
    if rng.random() < 0.3:
        options["drop_unlabelled"] = True
    if rng.random() < 0.5 and len({one.split for one in made.pictures.values()}) > 1:
        options["where"] = rng.choice(["split = test", "split != val", ["split != test", "split != val"]])
    if rng.random() < 0.4:
        paths = rng.sample(sorted(made.pictures), max(1, len(made.pictures) // 3))
        excluded = {path for path in paths if "\n" not in path}
        lines = "".join(f"{folder}/in/{path}\n" for path in sorted(excluded))
        (folder / "without.txt").write_bytes(lines.encode("utf-8", "surrogateescape"))
        options["exclude"] = str(folder / "without.txt")
    return options, excluded


def names_of(one: Picture) -> list[str]:
    return [name for name in one.label.split("|") if name] + [name for name, _ in one.objects or ()]


def chosen(one: Picture, options: Mapping[str, Any]) -> tuple[Picture | None, str, int]:
    """(what is left of a picture or None, the option that chose it away, how many objects went)."""
    mapped, keep, drop = options.get("map_labels", {}), options.get("keep_labels"), options.get("drop_labels", [])

    def why(name: str) -> str:
        new = mapped.get(name, name)
        if new == "":
            return "map_labels"
        if keep is not None and new not in keep:
            return "keep_labels"
        return "drop_labels" if new in drop else ""

    objects = one.objects
    if objects is not None:
        objects = tuple((mapped.get(name, name), box) for name, box in objects if not why(name))
        if "min_box" in options:
            least = options["min_box"]
            number = float(least.rstrip("px%"))
            across, down = (number * WIDTH / 100, number * HEIGHT / 100) if "%" in least else (number, number)
            objects = tuple((n, b) for n, b in objects if b[2] - b[0] >= across and b[3] - b[1] >= down)
    gone = len(one.objects or ()) - len(objects or ())
    reason = why(one.label) if one.label and not objects else ""
    label = "" if one.label and why(one.label) else mapped.get(one.label, one.label)
    left = replace(one, label=label, objects=objects)
    if not reason and options.get("drop_unlabelled") and not (label or objects or one.mask):
        reason = "drop_unlabelled"
    return (None, reason, len(one.objects or ())) if reason else (left, "", gone)


def satisfies(one: Picture, where: Any) -> bool:
    conditions = [where] if isinstance(where, str) else where or []
    return all((one.split == c.split()[2]) == (c.split()[1] == "=") for c in conditions)


def test_what_is_left_of_random_collections_is_what_a_plain_filter_leaves(tmp_path: Path) -> None:
    tried: Counter[str] = Counter()
    for index in range(TRIALS):
        made = collection(index, seed=41)
        if not made.certain or made.missing or any("|" in one.label for one in made.pictures.values()):
            continue
        folder = tmp_path / str(index)
        write_files(folder / "in", made.files)
        inputs = [placed(place, folder / "in") for place in made.inputs]
        plain = seen(inputs)
        if plain.error or plain.rejects:
            continue
        options, excluded = options_for(made, random.Random(index), folder)
        told = seen(inputs, **options)
        expected: dict[str, Picture] = {}
        reasons: Counter[str] = Counter()
        start = f"{folder / 'in'}/"
        for uri, one in plain.pictures.items():
            if uri.removeprefix(start) in excluded:
                reasons["exclude"] += 1
            elif not satisfies(one, options.get("where")):
                reasons["where"] += 1
            else:
                left, reason, _ = chosen(one, options)
                reasons[reason] += bool(reason)
                if left is not None:
                    expected[uri] = left
        reasons = +reasons
        context = json.dumps({"index": index, "told": made.told, "options": options}, default=str)
        if not expected and plain.pictures:
            assert "nothing is left" in told.error, context
            tried["refused"] += 1
            continue
        assert told.error == "", context
        assert told.pictures == expected, context
        assert told.excluded == dict(reasons), context
        assert told.rows == len(plain.pictures) == len(expected) + sum(reasons.values()), context
        used = {name for one in expected.values() for name in names_of(one)}
        assert used <= set(told.labels), context
        tried.update(list(options))
        tried["compared"] += 1
    assert tried["compared"] > TRIALS // 4
    assert min(tried[name] for name in ("map_labels", "keep_labels", "min_box", "exclude", "where")) > 0
    assert tried["refused"] > 0
