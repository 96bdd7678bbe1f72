"""A pipeline run by a command: on the engine that Beam's flags name, with its progress shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beam_tfrecord.conversion.writing.progress import PROGRESS
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import scheme_of
from beam_tfrecord.storage.uris import OBJECT_SCHEMES, WEB_SCHEMES
from pipelines.lean_import import import_beam_lean
from pipelines.terminal import ProgressDisplay

if TYPE_CHECKING:
    from apache_beam import PTransform
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.runner import PipelineResult


OWN_SCHEMES = ("", *OBJECT_SCHEMES, *WEB_SCHEMES)  # of stores that need none of Beam's file systems


def load_beam(beam_flags: Sequence[str], places: Iterable[str]) -> PipelineOptions:
    """Beam's options, and Beam itself: without what it loads in case, for a job of this process.

    Importing Beam takes longer than anything before it, so a command does this as late as it can, and before it imports
    a transform.
    """
    if not beam_flags and all(scheme_of(place) in OWN_SCHEMES for place in places):
        import_beam_lean()
    from beam_tfrecord.transforms import running

    options = running.make_options(beam_flags)
    running.quiet_server(options)
    if running.is_bound(options):
        running.quiet_runner()
    return options


@dataclass(frozen=True)
class Shown:
    """How the progress of a command is shown. total: of the units, where it is known in advance."""

    quiet: bool
    unit: str = "rows"
    bad: str = "rejected"
    total: int | None = None


def run_shown(
    transform: PTransform,
    options: PipelineOptions,
    shown: Shown,
    config: ConvertConfig | None = None,
    watch: Callable[[], None] = lambda: None,
) -> PipelineResult:
    """Run a root transform to its end. Raises what :func:`beam_tfrecord.transforms.running.run_watched` raises.

    watch: called now and then; what it raises ends the waiting.
    """
    from beam_tfrecord.transforms.running import make_pipeline, run_watched

    pipeline = make_pipeline(options, config)
    _ = pipeline | transform.default_label() >> transform
    PROGRESS.reset()
    PROGRESS.total = shown.total
    display = ProgressDisplay(PROGRESS, quiet=shown.quiet, unit=shown.unit, bad=shown.bad)

    def tell() -> None:
        display.update()
        watch()

    try:
        return run_watched(pipeline, tell)
    finally:
        display.close()
