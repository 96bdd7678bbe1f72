"""Several conversions into one output at the same time: exactly one publishes, and the others say why not in one line.

    python -m tests.contention --trials 200                        # on the local disk
    python -m tests.contention --trials 50 --store gs              # and conditional-gs, s3: emulators, started for it

Each run is a process of its own with images of its own, forked from a server that has imported everything, so that the
runs meet in the middle of their work and not while Python starts. In some trials one run is killed; in these at most
one publishes, and a further run finds the place free.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from tests.samples import noise, png, write_files

MOST_RUNS = 8
LATEST = 0.8  # seconds until the last run of a trial starts
KILLED = 0.15  # share of the trials in which a run is killed


@dataclass
class Counts:
    """What became of the runs. faults: what should not have happened."""

    trials: int = 0
    runs: int = 0
    published: int = 0
    told: Counter[str] = field(default_factory=Counter)
    killed: int = 0
    faults: list[str] = field(default_factory=list)


def make_inputs(folder: Path) -> list[Path]:
    """A class folder for each run, none like another: run N has N + 3 images."""
    for run in range(MOST_RUNS):
        images = {
            f"{'ab'[n % 2]}{run}/{n}.png": png(Image.fromarray(noise(8, 8, 100 * run + n))) for n in range(run + 3)
        }
        write_files(folder / f"in{run}", images)
    return [folder / f"in{run}" for run in range(MOST_RUNS)]


def one_run(arguments: Sequence[str], delay: float, log: str) -> None:
    """A command in a process of its own; ends it with the status."""
    from pipelines.main import main

    time.sleep(delay)
    with open(log, "w") as file, redirect_stderr(file), redirect_stdout(file):
        status = main(arguments)
    os._exit(status)


def started(context: Any, arguments: Sequence[str], delay: float, log: Path) -> Any:
    process = context.Process(target=one_run, args=(list(arguments), delay, str(log)))
    process.start()
    return process


def line_for(source: Path, output: str) -> list[str]:
    return ["convert", "--input", str(source), "--output", output, "--quiet"]


def trial(context: Any, chance: random.Random, inputs: Sequence[Path], output: str, logs: Path, counts: Counts) -> None:
    """Some runs at once; what became of them is added to the counts."""
    counts.trials += 1
    chosen = chance.sample(range(MOST_RUNS), chance.randint(2, MOST_RUNS))
    delays = [chance.uniform(0, chance.choice((0.02, 0.2, LATEST))) for _ in chosen]
    files = [logs / f"{counts.trials}-{run}.log" for run in chosen]
    processes = [
        started(context, line_for(inputs[run], output), delay, log)
        for run, delay, log in zip(chosen, delays, files, strict=True)
    ]
    kill = chance.random() < KILLED
    if kill:
        time.sleep(min(delays) + chance.uniform(0.05, 0.8))
        os.kill(processes[delays.index(min(delays))].pid, signal.SIGKILL)
    for process in processes:
        process.join(300)
    statuses = [process.exitcode for process in processes]
    counts.runs += len(statuses)
    counts.killed += statuses.count(-signal.SIGKILL)
    winners = [run for run, status in zip(chosen, statuses, strict=True) if status == 0]
    counts.published += len(winners)
    for run, status, log in zip(chosen, statuses, files, strict=True):
        said = log.read_text().splitlines() if log.exists() else []
        if status in (0, -signal.SIGKILL):
            continue
        if len(said) != 1 or not said[0].startswith("error: "):
            counts.faults.append(f"trial {counts.trials}: run {run} ended with {status} and said {said}")
        else:
            counts.told[_kind(said[0])] += 1
    if len(winners) != 1 and not (kill and -signal.SIGKILL in statuses and not winners):
        counts.faults.append(f"trial {counts.trials}: {len(winners)} of {len(chosen)} runs published: {statuses}")
    if not winners and not is_finished(output):
        further = started(context, line_for(inputs[chosen[0]], output), 0, logs / f"{counts.trials}-further.log")
        further.join(300)
        if further.exitcode != 0:
            said = (logs / f"{counts.trials}-further.log").read_text()
            counts.faults.append(f"trial {counts.trials}: a further run ended with {further.exitcode}: {said}")
            return
        winners = [chosen[0]]
    was_killed = not winners  # when it had published and not yet ended
    winner = chosen[statuses.index(-signal.SIGKILL)] if was_killed else winners[0]
    faults = faults_of(context, output, winner, inputs, logs)
    faults += [] if was_killed else left_in(output)
    counts.faults += [f"trial {counts.trials}: {fault}" for fault in faults]


def is_finished(output: str) -> bool:
    from beam_tfrecord.storage import Storage

    return Storage().is_file(f"{output}/dataset_info.json")


def faults_of(context: Any, output: str, winner: int, inputs: Sequence[Path], logs: Path) -> list[str]:
    """What is wrong with a dataset that one run published alone."""
    from beam_tfrecord.storage import Storage

    verify = started(context, ["verify", output, "--decoder", "pillow", "--quiet"], 0, logs / "verify.log")
    verify.join(300)
    faults = [] if verify.exitcode == 0 else [(logs / "verify.log").read_text()]
    storage = Storage()
    told = json.loads(storage.read(f"{output}/conversion.json"))
    if (told["written"], told["inputs"][0]["uri"]) != (winner + 3, str(inputs[winner])):
        faults.append(f"run {winner} said that it published, and the dataset is of {told['inputs'][0]['uri']}")
    return faults


def left_in(output: str) -> list[str]:
    from beam_tfrecord.storage import Storage

    return [f"{name} is left" for name in Storage().list_folder(output) if name.startswith(".")]


def _kind(line: str) -> str:
    for words in ("another run writes there", "holds a dataset already", "publishes nothing", "several runs"):
        if words in line:
            return words
    return line


def run_trials(trials: int, root: str, work: Path, seed: int) -> Counts:
    """So many trials below a place. work: a local folder for inputs and logs."""
    counts, chance = Counts(), random.Random(seed)
    inputs = make_inputs(work)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["pipelines.main", "pipelines.convert", "pipelines.verify", "beam_tfrecord.transforms.dataset",
         "beam_tfrecord.transforms.verifying", "apache_beam.runners.portability.fn_api_runner.fn_runner"]
    )  # fmt: skip
    for number in range(trials):
        trial(context, chance, inputs, f"{root}/out{number}", work, counts)
        if (number + 1) % 10 == 0:
            print(f"{number + 1} trials, {counts.runs} runs, {len(counts.faults)} faults", file=sys.stderr, flush=True)
    return counts


@contextmanager
def place(store: str, work: Path) -> Any:
    """A uri of an empty place: a folder, or a bucket of an emulator that runs as long as the block."""
    from tests import emulators

    if store == "local":
        yield str(work / "outputs")
        return
    port = emulators.free_port()
    command = {
        "gs": ["-m", "gcp_storage_emulator", "start", "--host", "127.0.0.1", "--port", str(port), "--in-memory"],
        "conditional-gs": ["-m", "tests.gcs_conditions", str(port)],
        "s3": ["-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
    }[store]
    with emulators.running(command, port):
        server = emulators.Emulator("s3" if store == "s3" else "gs", f"http://127.0.0.1:{port}")
        os.environ.update(server.environment())
        yield f"{server.scheme}://{server.new_bucket()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--store", choices=("local", "gs", "conditional-gs", "s3"), default="local")
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, place(flags.store, Path(folder)) as root:
        counts = run_trials(flags.trials, root, Path(folder), flags.seed)
    print(f"{counts.trials} trials, {counts.runs} runs, {counts.published} published, {counts.killed} killed")
    for kind, number in sorted(counts.told.items()):
        print(f"  {number} said: {kind}")
    for fault in counts.faults:
        print(f"FAULT {fault}")
    return 1 if counts.faults else 0


if __name__ == "__main__":
    sys.exit(main())
