"""Some thousand documents with odd values; ``python -m tests.fuzz_documents`` makes as many as you have time for."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.document_seeds import Files, Parts, Seed, seeds
from tests.fuzz_documents import fault_of, mutants, run, unchanged


@pytest.mark.parametrize(("count", "seed"), [(300, 4), pytest.param(1000, 3, marks=pytest.mark.slow)])
def test_an_odd_value_ends_in_records_rejects_or_an_error_and_loses_nothing_else(count: int, seed: int) -> None:
    faults, ends = run(count, seed)
    assert not faults, "\n".join(faults[:5])
    # The documents reach all ends.
    assert ends["converted"] > count / 10
    assert ends["rejects"] > count * 0.3
    assert ends["refused"] > count / 20


def test_all_seeds_convert_without_rejects() -> None:
    for seed in seeds():
        assert fault_of(unchanged(seed)) == ("converted", "")


def test_documents_are_the_same_for_the_same_seed() -> None:
    first, second = ([mutant.told for mutant in mutants(200, seed=5)] for _ in range(2))
    assert first == second


def test_a_moved_object_would_be_seen() -> None:
    """The oracle itself: a document whose last annotation is given to another picture behind its back is at fault."""
    seed = next(seed for seed in seeds() if seed.name == "coco boxes")

    def moved(tree: Any) -> dict[str, bytes]:
        document = json.loads(seed.render(tree)[seed.uri])
        document["annotations"][-1]["image_id"] = 3
        return {seed.uri: json.dumps(document).encode()}

    assert "b.png was" in fault_of(unchanged(replace(seed, render=moved)))[1]
    assert (
        "4 boxes in the document, 2 in"
        in fault_of(unchanged(replace(seed, objects=lambda files: _doubled(seed, files))))[1]
    )


def _doubled(seed: Seed, files: Files) -> Parts:
    return Parts({key: 2 * count for key, count in seed.objects(files).items()})
