"""Numbers that the documentation states are those of the code. Measured ones name the command that measures them."""

from __future__ import annotations

import re

import pytest

from beam_tfrecord.annotations import box_rules
from beam_tfrecord.conversion.choosing import limiting
from beam_tfrecord.conversion.planning import block_reading, survey
from beam_tfrecord.conversion.writing import shards
from beam_tfrecord.images import jpeg_scans, safety
from beam_tfrecord.options.config import ImagePolicy, OutputConfig, RunConfig, ShardConfig
from beam_tfrecord.publishing import leaks
from beam_tfrecord.reading import loader
from beam_tfrecord.storage import fetch, gcs_login, retry, streams, web
from beam_tfrecord.tools.packing import measuring
from tests.conftest import ROOT

MIB = 2**20
POLICY = ImagePolicy()
RETRY = retry.RetryPolicy()

# (page, what it says, with {} for each number, and the numbers)
SAID = [
    ("README.md", "(default {}%): nothing is published", [int(100 * OutputConfig(output="x").max_rejects)]),
    ("docs/errors.md", "`--max_rejects` (default {}%)", [int(100 * OutputConfig(output="x").max_rejects)]),
    ("docs/images.md", "`--quality` (default {})", [POLICY.quality]),
    ("docs/images.md", "`--max_pixels` (default {:,})", [POLICY.max_pixels]),
    ("docs/images.md", "sides above {:,}, and PNG", [safety._JPEG_MAX_SIDE]),
    ("docs/images.md", "sides above {:,}, whatever", [safety._PNG_MAX_SIDE]),
    ("docs/images.md", "({} megapixels in colour)", [safety._MAX_AREA // 3 // 10**6]),
    ("docs/images.md", "may have {} scans, and scans times pixels may not pass 10¹⁰", [jpeg_scans.MAX_SCANS]),
    ("docs/clusters.md", "{} where each read waits for an object store", [shards.REMOTE_THREADS]),
    ("docs/storage.md", "At most {} tries and {:.0f} seconds for each request", [RETRY.attempts, RETRY.total_time]),
    ("docs/storage.md", "Outside of Google Cloud the search ends after about a second", []),
    (
        "docs/storage.md",
        "takes {:.0f} seconds at most, and waiting for more bytes {:.0f}",
        [fetch.CONNECT_SECONDS, fetch.SILENT_SECONDS],
    ),
    ("docs/storage.md", "{} MiB, takes at most {:.0f} minutes", [web.MAX_BYTES // MIB, web.MAX_SECONDS / 60]),
    ("docs/storage.md", "is redirected at most {} times", [web.MAX_REDIRECTS]),
    ("docs/storage.md", "beyond {} MiB in a temporary file", [streams.MEMORY_LIMIT // MIB]),
    ("docs/reading.md", "a buffer of up to {} MiB of encoded images", [loader.SHUFFLED_BYTES // MIB]),
    ("docs/reading.md", "a sample of up to {} MiB", [measuring.SAMPLE_BYTES // MIB]),
    ("docs/reading.md", "from the start of up to {} shards", [measuring.MOST_SHARDS]),
    ("docs/annotations.md", "sample of {} mask files", [survey.SAMPLE_SIZE]),
    ("docs/choosing.md", "Above {} million rows in a split", [limiting.KEPT_HASHES // 10**6]),
    ("docs/splits.md", "up to {} million rows in a split", [survey.SKETCH_LIMIT // 10**6]),
    (
        "docs/splits.md",
        "{:,} rows with `validation={}` about {} are in it, give or take {:.0f}",
        [1000, 0.2, 200, 25.3],
    ),
    ("docs/scale.md", "Up to {} million rows in a split the survey keeps", [survey.SKETCH_LIMIT // 10**6]),
    ("docs/scale.md", "| {} million rows of all classes together", [survey.STRATA_LIMIT // 10**6]),
    ("docs/scale.md", "more than {} million hashes go to temporary files", [leaks.IN_MEMORY // 10**6]),
    ("docs/scale.md", "in a block of {:,}, before the plan", [block_reading.BLOCK_ITEMS]),
    ("docs/scale.md", "up to {} MiB of images read ahead", [RunConfig().read_ahead // MIB]),
    ("docs/scale.md", "it reads {} images at a time", [shards.REMOTE_THREADS]),
    ("docs/scale.md", "| {} MiB (default) |", [ShardConfig().shard_size // MIB]),
]


@pytest.mark.parametrize(("page", "said", "numbers"), SAID)
def test_the_number_is_that_of_the_code(page: str, said: str, numbers: list[float]) -> None:
    text = re.sub(r"\s+", " ", (ROOT / page).read_text("utf-8"))
    assert said.format(*numbers) in text


def test_limits_that_are_told_in_words() -> None:
    assert safety._MAX_AREA == 2**29
    assert jpeg_scans.MAX_SCAN_PIXELS == 10**10
    assert gcs_login._METADATA_PROBE_SECONDS == 1.0
    assert (box_rules.ROUNDING_PIXELS, box_rules.FLOAT_PIXELS) == (1, 0.01)
    assert pytest.approx(25.3, abs=0.01) == 2 * (1000 * 0.2 * 0.8) ** 0.5  # standard deviations of the draws
