"""Helper processes: results, what they tell, how they fail and end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from beam_tfrecord.conversion import helpers
from beam_tfrecord.conversion.helpers import Helper, Tell, close_all, helpers_wanted, start_in_advance
from beam_tfrecord.conversion.shared_work import Crew, Errand, HelperPool
from beam_tfrecord.errors import ConfigError, JobError


@pytest.fixture(autouse=True)
def no_helper_is_left() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of this file can be found by a helper."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def squared(number: int, tell: Tell) -> tuple[int, int]:
    tell("half", number / 2)
    return number * number, os.getpid()


def here(number: int) -> tuple[int, int]:
    time.sleep(0.02)  # long enough for the helper to take something as well
    return number * number, os.getpid()


def failing(what: str, tell: Tell) -> None:
    if what == "config":
        raise ConfigError("choose another value")
    if what == "exit":
        os._exit(7)
    raise ZeroDivisionError(what)


def sleeping(marker: str, tell: Tell) -> None:
    Path(marker).write_text(str(os.getpid()))
    time.sleep(60)


def give_until_it_fails(crew: Crew[str, None]) -> None:
    for _ in range(200):
        list(crew.take("config"))
        time.sleep(0.05)


def wait_until_taken(crew: Crew[tuple[str, ...], list[str]]) -> None:
    while crew._tasks.qsize():
        time.sleep(0.05)


def modules_loaded(names: tuple[str, ...], tell: Tell) -> list[str]:
    return [name for name in names if name in sys.modules]


def test_a_helper_computes_in_a_process_of_its_own_and_tells_what_the_work_tells() -> None:
    helper, told = Helper(), []
    helper.begin(squared)
    value, process = helper.call((12,), lambda *values: told.append(values))
    assert value == 144
    assert process != os.getpid()
    assert told == [("half", 6.0)]


@pytest.mark.parametrize(("what", "kind"), [("config", ConfigError), ("bug", ZeroDivisionError)])
def test_what_the_work_raises_arrives_as_itself_with_the_traceback_of_the_helper(
    what: str, kind: type[Exception]
) -> None:
    helper = Helper()
    helper.begin(failing)
    with pytest.raises(kind) as raised:
        helper.call((what,), print)
    assert "in failing" in str(raised.value.__cause__)
    with pytest.raises(ZeroDivisionError):  # and it goes on
        helper.call(("again",), print)


def test_a_helper_that_dies_is_told_with_the_cure() -> None:
    helper = Helper()
    helper.begin(failing)
    with pytest.raises(JobError, match=r"status 7.*--resume.*--processes 1"):
        helper.call(("exit",), print)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_crew_gives_each_result_once_whoever_computes_it(count: int) -> None:
    crew: Crew[int, tuple[int, int]] = Crew(squared, here, count)
    results = [result for number in range(1, 41) for result in crew.take(number)]
    results += crew.finish()
    assert sorted(value for value, _ in results) == [number * number for number in range(1, 41)]
    processes = {process for _, process in results}
    assert os.getpid() in processes
    assert (len(processes) > 1) == (count > 0)


def test_helpers_of_a_finished_crew_serve_the_next_one() -> None:
    first: Crew[int, tuple[int, int]] = Crew(squared, here, 1)
    list(first.take(1))
    [(_, process)] = list(first.finish())
    second: Crew[int, tuple[int, int]] = Crew(squared, here, 1)
    list(second.take(2))
    assert list(second.finish()) in ([(4, process)], [(4, os.getpid())])
    assert len(helpers._RUNNING) == 1


def test_a_pool_gives_each_task_to_one_of_its_helpers_which_are_there_afterwards() -> None:
    pool: HelperPool[int, tuple[int, int]] = HelperPool(squared, 2)
    futures = [pool.submit(number) for number in range(20)]
    results = [future.result() for future in futures]
    assert [value for value, _ in results] == [number * number for number in range(20)]
    assert {process for _, process in results} <= {helper._process.pid for helper in helpers._RUNNING}
    assert len(pool) == len(helpers._RUNNING) == 2
    pool.finish()
    assert len(helpers._WAITING) == 2


def test_a_failure_in_a_pool_is_that_of_its_task() -> None:
    pool: HelperPool[str, None] = HelperPool(failing, 1)
    with pytest.raises(ConfigError, match="choose another value"):
        pool.submit("config").result()
    with pytest.raises(ZeroDivisionError):
        pool.submit("bug").result()
    with pytest.raises(JobError, match="status 7"):
        pool.submit("exit").result()
    with pytest.raises(JobError, match="status 7"):  # and it stays so
        pool.submit("bug").result()
    pool.close()
    assert not helpers._RUNNING


def test_a_pool_whose_helper_is_gone_before_the_first_task_says_so() -> None:
    pool: HelperPool[int, tuple[int, int]] = HelperPool(squared, 1)
    helpers._RUNNING[0]._process.kill()
    helpers._RUNNING[0]._process.wait()
    with pytest.raises(JobError, match="status -9"):
        pool.submit(1).result()
    pool.close()


def test_an_errand_is_done_meanwhile_and_its_helper_is_there_afterwards() -> None:
    errand: Errand[tuple[int, int]] = Errand(squared, 9)
    [helper] = helpers._RUNNING
    assert errand.result() == (81, helper._process.pid)
    assert [helper] == helpers._WAITING


def test_an_errand_that_fails_or_is_not_wanted_any_more_leaves_no_helper() -> None:
    failed: Errand[None] = Errand(failing, "config")
    with pytest.raises(ConfigError, match="choose another value"):
        failed.result()
    unwanted: Errand[tuple[int, int]] = Errand(squared, 9)
    unwanted.close()
    assert not helpers._RUNNING


def test_a_failure_in_a_helper_ends_the_crew() -> None:
    crew: Crew[str, None] = Crew(failing, lambda what: None, 1)
    with pytest.raises(ConfigError, match="choose another value"):
        give_until_it_fails(crew)
    crew.close()
    assert not helpers._RUNNING


def test_helpers_started_in_advance_have_imported_what_is_needed() -> None:
    start_in_advance(1, ["beam_tfrecord.conversion.planning.block_reading"])
    assert len(helpers._WAITING) == 1
    crew: Crew[tuple[str, ...], list[str]] = Crew(modules_loaded, lambda names: [], 1)
    names = ("beam_tfrecord.conversion.planning.block_reading", "apache_beam", "tensorflow", "pandas", "pyarrow")
    found = list(crew.take(names))
    wait_until_taken(crew)
    assert [*found, *crew.finish()] == [["beam_tfrecord.conversion.planning.block_reading"]]


def test_a_helper_ends_with_the_process_that_started_it_even_when_that_is_killed(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from beam_tfrecord.conversion.helpers import Helper\n"
        "import test_helpers\n"
        f"helper = Helper(); helper.begin(test_helpers.{sleeping.__name__}); helper.call(({str(marker)!r},), print)"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        while not (marker.exists() and marker.read_text()):
            assert parent.poll() is None
            time.sleep(0.05)
        helper = psutil.Process(int(marker.read_text()))
        parent.kill()
    helper.wait(timeout=10)


def test_one_process_for_each_core_unless_told_otherwise() -> None:
    assert helpers_wanted(1) == 0
    assert helpers_wanted(5) == 4
    assert helpers_wanted(None) == len(psutil.Process().cpu_affinity()) - 1


def where(folder: str, tell: Tell) -> str:
    return str(Path.cwd())


def found_by_crew(count: int = 1) -> str:
    crew: Crew[str, str] = Crew(where, where_here, count)
    crew._waiting_task = lambda: None  # type: ignore[method-assign]
    return [*crew.take(""), *crew.finish()][0]


def where_here(folder: str) -> str:
    return "here"


def test_a_helper_of_another_folder_path_or_environment_is_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_by_crew()
    [first] = helpers._WAITING
    monkeypatch.chdir(tmp_path)
    assert found_by_crew() == str(tmp_path)
    [second] = helpers._WAITING
    assert second is not first
    assert not first.is_alive
    monkeypatch.setenv("SOME_CREDENTIALS", "new")
    found_by_crew()
    assert helpers._WAITING[0] is not second
    third = helpers._WAITING[0]
    monkeypatch.syspath_prepend(str(tmp_path))
    found_by_crew()
    assert helpers._WAITING[0] is not third


def test_a_waiting_helper_that_was_killed_is_replaced() -> None:
    found_by_crew()
    helpers._WAITING[0]._process.kill()
    helpers._WAITING[0]._process.wait()
    assert found_by_crew() == str(Path.cwd())


def test_work_that_cannot_be_unpickled_there_is_told_as_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    helper = Helper()
    monkeypatch.setitem(sys.modules, "nowhere_else", sys.modules[__name__])
    monkeypatch.setattr(squared, "__module__", "nowhere_else")
    helper.begin(squared)
    with pytest.raises(ModuleNotFoundError, match="nowhere_else"):
        helper.call((1,), print)


def test_a_forked_process_leaves_the_helpers_to_their_owner() -> None:
    found_by_crew()
    child = os.fork()
    if not child:
        os._exit(len(helpers._RUNNING) + len(helpers._WAITING))
    assert os.waitpid(child, 0)[1] == 0
    assert found_by_crew() == str(Path.cwd())
