"""Adding surveys up: the same result in any grouping, and no more hashes in memory than are kept in the end."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from beam_tfrecord.conversion.planning import survey as survey_module
from beam_tfrecord.conversion.planning.survey import HashSketch, Survey, merge_surveys
from beam_tfrecord.transforms import planning
from beam_tfrecord.transforms.planning import CombineSurveys


def sketch(count: int, seed: int) -> HashSketch:
    values = np.random.default_rng(seed).integers(0, 2**64, count, np.uint64, endpoint=False)
    return HashSketch(count, values.tobytes())


def test_gigabytes_of_hashes_are_never_held_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SKETCH_LIMIT", 20_000)
    monkeypatch.setattr(survey_module, "SKETCH_LIMIT", 20_000)
    combine = CombineSurveys()

    def accumulators() -> Iterator[list[Survey]]:
        for number in range(400):  # 57 MB of hashes
            yield [Survey(rows=18_000, orders={"train": sketch(18_000, number)})]

    tracemalloc.start()
    merged = combine.extract_output(combine.merge_accumulators(accumulators()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (merged.rows, merged.orders["train"]) == (7_200_000, HashSketch(7_200_000, None))
    assert peak < 2_000_000


def test_few_hashes_are_all_kept_whatever_the_grouping() -> None:
    combine = CombineSurveys()
    surveys = [Survey(rows=10, orders={"train": sketch(10, number)}) for number in range(300)]
    groups = [surveys[start : start + 70] for start in range(0, 300, 70)]
    merged = combine.extract_output(combine.merge_accumulators(groups))
    expected = np.sort(np.concatenate([np.frombuffer(one.orders["train"].hashes or b"", np.uint64) for one in surveys]))
    found = merged.orders["train"].array
    assert merged.rows == 3000
    assert found is not None
    assert found.tolist() == expected.tolist()


def test_small_classes_stay_exact_when_all_classes_together_have_too_many_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(survey_module, "STRATA_LIMIT", 1000)
    sizes = {"huge": 900, "large": 260, "fair": 250, "rare": 3}
    rows = [name for name, count in sizes.items() for _ in range(count)]
    found = []
    for seed in range(6):
        shuffler = random.Random(seed)
        shuffler.shuffle(rows)
        parts = []
        for start in range(0, len(rows), 100 + 37 * seed):
            own = rows[start : start + 100 + 37 * seed]
            counts = {name: own.count(name) for name in sizes if name in own}
            strata = {name: (sketch(count, 1), sketch(count, 2)) for name, count in counts.items()}
            parts.append(Survey(rows=len(own), strata=strata))
        while len(parts) > 1:  # in pairs, in changing order
            shuffler.shuffle(parts)
            parts = [merge_surveys(parts[start : start + 2]) for start in range(0, len(parts), 2)]
        pairs = parts[0].strata
        assert {name: units.count for name, (units, _) in pairs.items()} == sizes
        found.append({name: (units.hashes is None, orders.hashes is None) for name, (units, orders) in pairs.items()})
    exact, given_up = (False, False), (True, True)
    assert found == [{"huge": given_up, "large": given_up, "fair": exact, "rare": exact}] * 6


def test_classes_stay_exact_below_the_limit_however_uneven_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_module, "STRATA_LIMIT", 1000)
    strata = {"huge": (sketch(990, 1), sketch(990, 2)), **{f"{n}": (sketch(1, n), sketch(1, n)) for n in range(10)}}
    assert merge_surveys([Survey(strata=strata)]).strata == strata
