"""``beam-tfrecord verify``: every record of a dataset checked, and the dataset against its metadata."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from beam_tfrecord.datasets.shard_files import FoundFiles, find_datasets, stated_records
from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.reading import surrounded_import, tensorflow_version
from beam_tfrecord.storage import Storage, join
from beam_tfrecord.tools.showing.printable import printable
from beam_tfrecord.tools.verifying import Verdict
from beam_tfrecord.tools.verifying.dataset import join_verdicts, verdict_from_json
from beam_tfrecord.tools.verifying.decoders import AUTO, DECODERS, TENSORFLOW, choose_decoder
from pipelines.exits import DONE, FAILED, end_of_process, main_of
from pipelines.options import add_terminal_flags
from pipelines.parsers import ArgumentParser, choices_metavar, command_parser, count_of, one_of, place_to_write
from pipelines.places import PLACE_HELP, parse_places_and_beam_flags
from pipelines.running import Shown, load_beam, run_shown
from pipelines.terminal import counted, last_line, plural, say, say_beside_bar

DESCRIPTION = """Check every record: both checksums, the message, the features, the images, boxes and labels; and the
dataset: counts, checksums of files, ids, and what its metadata files say of one another. Files from elsewhere are
checked as far as nothing needs to be known of them. Exit status 1 when there is a fault."""
EXAMPLES = f"""places:
  {PLACE_HELP}

examples:
  beam-tfrecord verify out/
  beam-tfrecord verify 'elsewhere/train*.tfrecord.gz' --decoder pillow
  beam-tfrecord verify gs://bucket/out --runner DataflowRunner --temp_location gs://bucket/tmp ...

Flags that are not listed go to Beam (--runner, --direct_num_workers, --project ...)."""
MAX_FAULTS = 1000
SHOWN_BY_CODE = 20


def make_parser(prog: str = "beam-tfrecord verify") -> ArgumentParser:
    """The parser of the command, but for the places."""
    parser = command_parser(prog, "PLACE... [options]", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--decoder",
        type=one_of(AUTO, *DECODERS),
        metavar=choices_metavar((AUTO, *DECODERS)),
        default=AUTO,
        help="what decodes the images: tensorflow or pillow all of them; auto (the default) libjpeg-turbo and zlib, "
        "and where they leave a doubt tensorflow, or pillow if that is not installed",
    )
    parser.add_argument(
        "--max_faults",
        type=count_of,
        default=MAX_FAULTS,
        metavar="N",
        help=f"name at most so many faults of one kind for each file, and count the rest (default: {MAX_FAULTS}; "
        "0 for all)",
    )
    parser.add_argument(
        "--threads", type=count_of, default=0, metavar="N", help="threads for each file (default: one per core)"
    )
    parser.add_argument(
        "--results",
        type=place_to_write,
        metavar="FILE",
        help="where the verdict is written as JSON; workers on other machines must be able to write there "
        "(default: in --temp_location, or in a temporary folder of this machine)",
    )
    add_terminal_flags(parser)
    return parser


def verify(arguments: Sequence[str]) -> int:
    """Parse, run and tell. Raises the errors of :mod:`beam_tfrecord.errors`."""
    flags, places, beam_flags = parse_places_and_beam_flags(make_parser(), arguments)
    started = time.monotonic()
    storage = Storage()
    found = find_datasets(places, storage)
    verdict = join_verdicts([(each.folder, run(each, flags, beam_flags, storage)) for each in found])
    if flags.results and len(found) > 1:
        storage.write_bytes(flags.results, json.dumps(verdict.to_json()).encode())
    seconds = time.monotonic() - started
    if not flags.json:
        for fault in verdict.faults:
            print(printable(str(fault)))
    if not flags.quiet:
        for line in further_lines(verdict):
            say(printable(line))
    last_line(values(verdict, seconds), text(verdict, seconds), as_json=flags.json)
    return FAILED if verdict.num_faults else DONE


def run(found: FoundFiles, flags: argparse.Namespace, beam_flags: Sequence[str], storage: Storage) -> Verdict:
    """The verdict of the pipeline, on the runner that the flags name."""
    # The decoders of this process, not a training: no GPU is taken, and no word is said about there being none.
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    options = load_beam(beam_flags, [file.uri for file in found.files])
    from beam_tfrecord.transforms.running import is_local
    from beam_tfrecord.transforms.verifying import VerifyDataset, VerifyOptions

    with contextlib.ExitStack() as stack:
        if is_local(options):
            decoder = choose_decoder(flags.decoder)
            stack.enter_context(surrounded_import(functools.partial(loading_tensorflow, decoder, quiet=flags.quiet)))
            if decoder == TENSORFLOW:
                tensorflow_version()  # now, rather than in the middle of a count
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="beam-tfrecord-"))
        results = flags.results or results_place(options.get_all_options().get("temp_location"), folder)
        if not flags.results and not is_local(options) and results.startswith(folder):
            raise ConfigError("on this runner, name with --results a file that its workers and this machine can reach")
        chosen = VerifyOptions(flags.decoder, flags.max_faults, flags.threads or None, results)
        shown = Shown(flags.quiet, "records", "faulty", stated_records(found.files))
        run_shown(VerifyDataset(found, chosen, storage), options, shown)
        return read_verdict(results, storage, keep=bool(flags.results))


@contextlib.contextmanager
def loading_tensorflow(decoder: str, *, quiet: bool) -> Iterator[None]:
    """What TensorFlow is imported in: a word about it, as it takes seconds, and silence, as it is not quiet itself."""
    if not quiet:
        which = "" if decoder == TENSORFLOW else " that leave a doubt"
        say_beside_bar(f"loading TensorFlow, which decodes the images{which}")
    with silent_stderr():
        yield


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Nothing reaches stderr, not even from C++: for the import of TensorFlow, which talks of graphics cards.

    From any thread; but what others say meanwhile is lost, a progress that is shown again soon.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def results_place(temp_location: str | None, folder: str) -> str:
    """Where the verdict travels from the workers to this process when the user does not say."""
    if not temp_location:
        return f"{folder}/verdict.json"
    return join(temp_location, f"{os.path.basename(folder)}.json")


def read_verdict(uri: str, storage: Storage, *, keep: bool) -> Verdict:
    """The verdict that the pipeline wrote; its file is deleted unless it is to be kept."""
    try:
        with storage.open(uri) as file:
            verdict = verdict_from_json(file.read())
    except FileNotFoundError:
        raise DatasetError(f"the pipeline ended, but its verdict is not at {uri}") from None
    if not keep:
        storage.delete([uri])
    return verdict


def further_lines(verdict: Verdict) -> list[str]:
    """What there is to tell beside the faults."""
    lines = [f"note: {note}" for note in verdict.notes]
    if verdict.unlisted:
        lines.append(f"not named above: {counted(verdict.unlisted)}; --max_faults 0 names all")
    if verdict.num_faults > SHOWN_BY_CODE:
        lines.append(f"faults: {counted(verdict.by_code)}")
    if verdict.checked:
        lines.append(f"checked: {', '.join(verdict.checked)}")
    return lines


def values(verdict: Verdict, seconds: float) -> dict[str, Any]:
    """What --json prints."""
    return {
        "records": verdict.records,
        "shards": verdict.shards,
        "images": verdict.images,
        "faults": verdict.num_faults,
        "seconds": round(seconds, 3),
        "decoder": verdict.decoder,
        "by_code": verdict.by_code,
        "details": verdict.to_json()["faults"],
        "notes": list(verdict.notes),
        "checked": list(verdict.checked),
    }


def text(verdict: Verdict, seconds: float) -> str:
    """The last line for a person."""
    faults = plural(verdict.num_faults, "fault") if verdict.num_faults else "no faults"
    return f"{plural(verdict.records, 'record')}, {plural(verdict.shards, 'shard')}, {faults}, {seconds:.1f} s"


main = main_of(verify, "the job has ended; nothing was changed")


if __name__ == "__main__":
    sys.exit(end_of_process(main()))
