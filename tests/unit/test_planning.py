from __future__ import annotations

import random
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord.annotations.base import Vocabulary
from beam_tfrecord.annotations.boxes import Objects
from beam_tfrecord.annotations.label import Label, LabelKind
from beam_tfrecord.annotations.mask_file import SemanticMaskKind
from beam_tfrecord.annotations.objects import Box, Object
from beam_tfrecord.conversion.planning import survey as survey_module
from beam_tfrecord.conversion.planning.blocks import REJECTS, BlockItem, pack_block, pack_entry, unpack_entry
from beam_tfrecord.conversion.planning.dataset_plan import (
    DatasetPlan,
    ids_of_numbers,
    plan_dataset,
    plan_shard_counts,
    plan_vocabulary,
)
from beam_tfrecord.conversion.planning.mask_depth import deep_kinds
from beam_tfrecord.conversion.planning.straddling import hashes_by_heap, join_straddling, straddling_in
from beam_tfrecord.conversion.planning.survey import (
    SAMPLE_SIZE,
    BlockBuilder,
    SizeSample,
    Survey,
    merge_surveys,
    natural_key,
)
from beam_tfrecord.core.elements import Entry, Finding, Frame, Member, RejectedRow
from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.base import Source
from beam_tfrecord.options.config import ConvertConfig, ShardConfig
from beam_tfrecord.storage import Storage
from tests.samples import png, write_files

NO_SOURCES: tuple[Source, ...] = ()


def config(**options: object) -> ConvertConfig:
    return ConvertConfig.from_options({"input": "in", "output": "out", **options})


def entry(number: int, label: str = "cat", split: str | None = None, group: str | None = None) -> Entry:
    name = f"{number}.jpg"
    value = LabelKind().parse({"label": label}, config(), lambda code, message: None)
    return Entry(name, f"data.csv:{number + 2}", f"/x/{name}", name, split, group, {"label": value})


def blocks_of(
    entries: list[Entry | RejectedRow], options: ConvertConfig, size: int = 7
) -> tuple[Survey, list[BlockItem]]:
    surveys, items = [], []
    for start in range(0, len(entries), size):
        builder = BlockBuilder(options.splits, 0)
        for item in entries[start : start + size]:
            builder.add(item)
        surveys.append(builder.survey())
        items.extend(builder.items)
    return merge_surveys(surveys), items


def plan_of(entries: list[Entry | RejectedRow], options: ConvertConfig) -> tuple[DatasetPlan, list[BlockItem]]:
    survey, items = blocks_of(entries, options)
    return plan_dataset(survey, NO_SOURCES, None, options, lambda uris: dict.fromkeys(uris, 100)), items


def placed(entries: list[Entry | RejectedRow], options: ConvertConfig) -> dict[tuple[str, int], int]:
    plan, items = plan_of(entries, options)
    return dict(Counter(plan.place(item, options) for item in items))


@pytest.mark.parametrize(("count", "shards"), [(100, 4), (101, 4), (3, 8), (1, 1), (1000, 16)])
def test_shards_are_even_and_never_empty(count: int, shards: int) -> None:
    sizes = placed([entry(n) for n in range(count)], config(num_shards=shards))
    assert len(sizes) == min(count, shards)
    assert sum(sizes.values()) == count
    assert max(sizes.values()) - min(sizes.values()) <= 1


def test_the_plan_does_not_depend_on_the_order_of_arrival() -> None:
    options = config(num_shards=5, splits="train=0.8,validation=0.2", stratify=True)
    entries = [entry(n, "ab"[n % 2]) for n in range(200)]
    plan, items = plan_of(entries, options)
    shuffled = random.Random(1).sample(entries, len(entries))
    other, other_items = plan_of(shuffled, options)
    assert other.splits == plan.splits
    assert other.strata == plan.strata
    assert {item.payload: other.place(item, options) for item in other_items} == {
        item.payload: plan.place(item, options) for item in items
    }


def test_stratified_splits_keep_the_shares_of_every_class() -> None:
    options = config(splits="train=0.8,validation=0.1,test=0.1", stratify=True)
    labels = ["common"] * 400 + ["rare"] * 10 + ["scarce"] * 3 + ["single"]
    entries = [entry(n, label) for n, label in enumerate(labels)]
    plan, items = plan_of(entries, options)
    found: dict[str, Counter[str]] = {}
    for item in items:
        found.setdefault(item.stratum, Counter())[plan.place(item, options)[0]] += 1
    assert found["common"] == {"train": 320, "validation": 40, "test": 40}
    assert found["rare"] == {"train": 8, "validation": 1, "test": 1}
    assert found["scarce"] == {"train": 1, "validation": 1, "test": 1}
    assert sum(found["single"].values()) == 1
    for name, split in plan.splits.items():
        assert split.num_entries == sum(counts[name] for counts in found.values())


def test_a_group_never_straddles_splits() -> None:
    options = config(splits="train=0.5,validation=0.5")
    plan, items = plan_of([entry(n, group=f"g{n // 4}") for n in range(400)], options)
    by_group: dict[int, set[str]] = {}
    for number, item in enumerate(items):
        by_group.setdefault(number // 4, set()).add(plan.place(item, options)[0])
    assert all(len(splits) == 1 for splits in by_group.values())
    assert len(set().union(*by_group.values())) == 2


def test_rejects_are_planned_beside_the_records() -> None:
    reject = RejectedRow(Finding("data.csv:9", "", "parse", "bad_row", "the image cell is empty"))
    sizes = placed([entry(0), reject, reject], config())
    assert sizes == {("train", 0): 1, (REJECTS, 0): 2}


def masked(number: int, mask: str | None) -> Entry:
    name = f"{number}.jpg"
    value = SemanticMaskKind().parse({} if mask is None else {"mask": mask}, config(), lambda code, message: None)
    return Entry(
        name, f"d.csv:{number}", f"/x/{name}", name, annotations={} if value is None else {"semantic_mask": value}
    )


def schema_of(entries: list[Entry], options: ConvertConfig, deep: bool = False) -> tuple[str, ...]:
    survey, _ = blocks_of(list(entries), options, size=3)
    kinds = ["semantic_mask"] if deep else []
    plan = plan_dataset(survey, NO_SOURCES, None, options, lambda uris: dict.fromkeys(uris, 9), lambda masks: kinds)
    return plan.schema.kinds


def test_the_schema_knows_that_some_pictures_have_no_mask() -> None:
    assert schema_of([masked(n, "m.png") for n in range(9)], config()) == ("semantic_mask",)
    partial = ("semantic_mask", "semantic_mask/partial")
    for other in ("", None):  # stated to have none, or of an input that says nothing of masks
        assert schema_of([masked(n, "m.png" if n else other) for n in range(9)], config()) == partial
    assert schema_of([masked(n, None) for n in range(9)], config()) == ()


def test_the_schema_knows_how_deep_masks_are() -> None:
    entries = [masked(n, f"{n}.png") for n in range(4)]
    deep = ("semantic_mask", "semantic_mask/deep")
    assert schema_of(entries, config(), deep=True) == deep
    assert schema_of(entries, config(mask_bits="16")) == deep
    assert schema_of(entries, config(mask_bits="8"), deep=True) == ("semantic_mask",)
    assert schema_of([entry(1)], config(mask_bits="16")) == ("label",)


def test_the_same_masks_are_looked_at_whatever_the_order_of_arrival() -> None:
    entries = [masked(n, f"{n}.png") for n in range(3000)]
    sample = blocks_of(list(entries), config())[0].masks
    other = blocks_of(random.Random(3).sample(entries, len(entries)), config(), size=2000)[0].masks
    assert sample == other
    assert len({mask.uri for mask in sample["semantic_mask"]}) == SAMPLE_SIZE


def test_masks_are_looked_at_where_they_lie(tmp_path: Path) -> None:
    deep, flat = (np.full((2, 2), value, dtype) for value, dtype in ((300, np.uint16), (3, np.uint8)))
    files = {
        "flat.png": png(Image.fromarray(flat)),
        "deep.png": png(Image.fromarray(deep)),
        "broken.png": b"\x89PNG",
        "empty.png": b"",
    }
    write_files(tmp_path, files)
    Image.fromarray(deep).save(tmp_path / "deep.tif")
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as archive:
        archive.writestr("deep.png", files["deep.png"])
        (info,) = archive.infolist()
    member = Member(str(tmp_path / "m.zip"), ("deep.png",), info.header_offset, info.compress_size, "zip")

    def found(*names: str, member: Member | None = None) -> bool:
        sample = [SizeSample(0, str(tmp_path / name), member) for name in names]
        return deep_kinds({"semantic_mask": sample}, Storage()) == {"semantic_mask"}

    assert not found("flat.png", "broken.png", "empty.png", "missing.png")
    assert found("flat.png", "missing.png", "deep.png")
    assert found("deep.tif")
    assert found("inside.png", member=member)


def test_an_id_in_two_splits_is_noticed() -> None:
    plan, _ = plan_of([entry(1, split="train"), entry(1, split="test"), entry(2, split="train")], config())
    assert list(plan.straddling.values()) == ["test"]


@pytest.mark.parametrize("limit", [0, 100])
def test_without_all_hashes_the_same_ids_are_found_in_two_splits(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    shuffler = random.Random(0)
    names = ("test", "train", "validation", None)
    entries: list[Entry | RejectedRow] = [
        entry(shuffler.randrange(400), split=shuffler.choices(names, (1, 4, 2, 2))[0]) for _ in range(500)
    ]
    options = config(splits="train=0.5,test=0.5")
    exact, items = plan_of(entries, options)
    assert exact.compares_ids
    assert list(hashes_by_heap(pack_block(items), exact, options)) == []
    monkeypatch.setattr(survey_module, "SKETCH_LIMIT", limit)
    plan, items = plan_of(entries, options)
    assert not plan.compares_ids
    heaps: dict[int, list[tuple[str, bytes]]] = {}
    for start in range(0, len(items), 60):
        for heap, hashes in hashes_by_heap(pack_block(items[start : start + 60]), plan, options):
            heaps.setdefault(heap, []).append(hashes)
    for own in heaps.values():
        shuffler.shuffle(own)
    found = dict(join_straddling(map(straddling_in, heaps.values())).first)
    assert found == exact.straddling
    assert len(set(found.values())) == 2
    assert len(heaps) > 100


def test_shards_follow_the_size_of_the_images() -> None:
    survey, _ = blocks_of([entry(n) for n in range(1000)], config())
    sizes = plan_dataset(survey, NO_SOURCES, None, config(shard_size="1MB"), lambda uris: dict.fromkeys(uris, 9600))
    assert sizes.splits["train"].num_shards == 10  # 1000 * (9600 + 400) bytes


def test_images_that_are_nowhere_are_told_at_once() -> None:
    survey, _ = blocks_of([entry(n) for n in range(12)], config())
    sources = [Source("data.csv", "csv", None, "/data/wrong")]
    with pytest.raises(ManifestError, match=r"^0 of 12 images exist in /data/wrong .*--images"):
        plan_dataset(survey, sources, None, config(), lambda uris: {})
    assert plan_dataset(survey, sources, None, config(max_rejects="100%"), lambda uris: {}).survey.rows == 12


def test_shards_are_shared_out_by_records() -> None:
    records = {"train": 80, "validation": 10, "test": 10}
    assert plan_shard_counts(records, 1.0, ShardConfig(num_shards=10)) == {"train": 8, "validation": 1, "test": 1}
    assert plan_shard_counts(records, 1.0, ShardConfig(num_shards=2)) == {"train": 1, "validation": 1, "test": 1}
    asked = ShardConfig(num_shards="train=16,validation=20")
    assert plan_shard_counts(records, 1.0, asked) == {"train": 16, "validation": 10, "test": 1}


def test_shards_of_a_split_without_rows_are_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"'valid'.*did you mean 'validation'"):
        plan_shard_counts({"train": 1, "validation": 1}, 1.0, ShardConfig(num_shards="valid=2"))


# ---------------------------------------------------------------------------------------------------------------------


def source(labels: tuple[str, ...] | None, ids: tuple[int, ...] | None = None, uri: str = "a") -> Source:
    return Source(uri, "coco", None, "", labels=labels, category_ids=ids)


def test_labels_are_sorted_by_code_point() -> None:
    survey = Survey(labels={"b": 1, "B": 5, "ä": 1, "a": 2})
    assert plan_vocabulary(survey, [], None, 0, False).names == ("B", "a", "b", "ä")


def test_given_labels_keep_their_order() -> None:
    vocabulary = plan_vocabulary(Survey(labels={"x": 1}), [], ("z", "x"), 1, False)
    assert vocabulary == Vocabulary(("z", "x"), 1)
    assert vocabulary.id_of("x") == 2


def test_category_ids_are_made_dense_or_kept() -> None:
    sources = [source(("person", "cat"), (1, 17)), source(("person", "dog"), (1, 18), "b")]
    dense = plan_vocabulary(Survey(), sources, None, 1, False)
    assert (dense.names, dense.ids) == (("person", "cat", "dog"), (1, 2, 3))
    kept = plan_vocabulary(Survey(), sources, None, 1, True)
    assert (kept.names, kept.ids) == (("person", "cat", "dog"), (1, 17, 18))


def test_inputs_that_disagree_about_a_category_are_named() -> None:
    with pytest.raises(ManifestError, match=r"category 1 is 'person' in a and 'people' in b"):
        plan_vocabulary(Survey(), [source(("person",), (1,)), source(("people",), (1,), "b")], None, 1, False)


def test_origins_sort_by_their_numbers() -> None:
    assert sorted(["a.csv:10", "a.csv:9", "a.csv:100"], key=natural_key) == ["a.csv:9", "a.csv:10", "a.csv:100"]


def test_digits_of_other_scripts_are_text() -> None:
    assert sorted(["a²:1", "a٣:1", "a1:1"], key=natural_key) == ["a1:1", "a²:1", "a٣:1"]


def test_strata_and_groups_do_not_go_together() -> None:
    with pytest.raises(ConfigError, match=r"--stratify .*--group_column"):
        config(splits="train=1,test=1", stratify=True, group_column="patient")


def test_inputs_without_rows_are_named() -> None:
    with pytest.raises(ManifestError, match=r"no rows were found in data.csv"):
        plan_dataset(Survey(), [Source("data.csv", "csv", None, "/data")], None, config(), lambda uris: {})


def test_a_stated_rank_decides_the_order_and_stated_records_the_shards() -> None:
    options = config(shard_records="train=5+1+4")
    entries = [entry(number, split="train")._replace(rank=100 - number) for number in range(10)]
    random.Random(0).shuffle(entries)
    survey, items = blocks_of(list(entries), options)
    plan = plan_dataset(survey, NO_SOURCES, None, options, lambda uris: dict.fromkeys(uris, 1))
    assert [item.order for item in sorted(items)] == list(range(91, 101))
    shards = [plan.place(item, options) for item in sorted(items)]
    assert shards == [("train", 0)] * 5 + [("train", 1)] + [("train", 2)] * 4


def test_records_of_shards_must_be_those_that_there_are() -> None:
    for told, message in (("train=5+4", "9 records in the split 'train', which has 10"), ("trian=1", "did you mean")):
        options = config(shard_records=told)
        survey, _ = blocks_of([entry(number, split="train") for number in range(10)], options)
        with pytest.raises(ConfigError, match=message):
            plan_dataset(survey, NO_SOURCES, None, options, lambda uris: dict.fromkeys(uris, 1))


def test_stated_kinds_are_kinds_of_the_dataset() -> None:
    survey, _ = blocks_of([entry(0)._replace(kinds=("captions", "labels"))], config())
    plan = plan_dataset(survey, NO_SOURCES, None, config(), lambda uris: dict.fromkeys(uris, 1))
    assert plan.schema.kinds == ("captions", "label", "labels")


def test_ids_of_labels_can_be_stated() -> None:
    assert plan_vocabulary(Survey(), NO_SOURCES, ("a", "b"), 0, False, (4, 9)) == Vocabulary(("a", "b"), 4, (4, 9))
    with pytest.raises(ConfigError, match="3 ids for the 2 names"):
        plan_vocabulary(Survey(), NO_SOURCES, ("a", "b"), 0, False, (4, 9, 1))
    for options in ({"label_ids": "4,9"}, {"labels": "x", "label_ids": "4", "label_offset": 1}):
        with pytest.raises(ConfigError, match="--label_ids"):
            config(**options)
    for wrong in ("4,4", "x", ""):
        with pytest.raises(ConfigError, match="--label_ids"):
            config(labels="x", label_ids=wrong)


def test_what_crosses_the_shuffle_comes_back_as_it_was():
    box = Object("cat", Box(1.0, 2.0, 3.5, 4.0), origin="a.csv:3")
    entry = Entry(
        "id",
        "a.csv:2",
        "a.jpg",
        "a.jpg",
        "train",
        annotations={"label": Label(("cat",)), "boxes": Objects((box,))},
        member=Member("a.zip", ("b", "c"), 3, 4, "zip"),
        frames=(Frame("a.csv:4", "f.jpg", "f.jpg"),),
        warnings=(Finding("a.csv:2", "a.jpg", "parse", "box_clipped", "cut"),),
    )
    assert unpack_entry(pack_entry(entry)) == entry
    reject = RejectedRow(entry.warnings[0], 2, "clip")
    assert unpack_entry(pack_entry(reject)) == reject


def test_splits_that_differ_only_in_case_are_refused() -> None:
    survey, _ = blocks_of([entry(1, split="Train"), entry(2, split="train"), entry(3, split="test")], config())
    with pytest.raises(ConfigError, match=r"'Train' and 'train' differ only in case.*--input train="):
        plan_dataset(survey, NO_SOURCES, None, config(), lambda uris: {})


@pytest.mark.parametrize(
    ("names", "offset", "told"),
    [
        (("0", "1", "10", "2"), 0, "the label '10' has the id 2"),
        (("1", "2"), 0, "the label '1' has the id 0"),
        (("0", "1", "2"), 0, ""),
        (("1", "2"), 1, ""),
        (("0", "1", "x"), 5, ""),
        ((), 0, ""),
    ],
)
def test_numbers_whose_ids_are_others_are_told(names: tuple[str, ...], offset: int, told: str) -> None:
    decision = ids_of_numbers(Vocabulary(names, offset))
    assert (decision.value if decision else "") == told
