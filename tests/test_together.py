"""The run itself: what several processes ran is told as if one had, and a process that dies fails its test and no other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.together import LEAST

ROOT = Path(__file__).parents[1]
OWN_NUMBER = re.compile(r"settings\(.*max_examples=")
SOME = """
import os, pytest, threading, time
@pytest.mark.parametrize("n", range(20))
def test_well(n, tmp_path):
    print("said by", n)
    assert not list(tmp_path.iterdir())
def test_wrong():
    print("words of the wrong one")
    assert 1 == 2
@pytest.mark.timeout(0.3)
def test_hanging():
    threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
    time.sleep(30)
def test_deadly():
    os._exit(3)
@pytest.fixture(scope="module")
def shared():
    yield
    print("ended")
def test_after(shared):
    pass
def test_skipped():
    pytest.skip("not here")
"""


ALONE = """
from tests.together import Together
def pytest_addoption(parser):
    parser.addoption("--processes", type=int)
    parser.addoption("--again", type=int, default=0)
def pytest_configure(config):
    each = lambda items: [[number] for number in range(len(items))]
    config.pluginmanager.register(Together(config.getoption("processes"), each, lambda: None, config.getoption("again")))
"""
"""What `tests.conftest` makes of the options, without all that it imports: that takes two seconds of processor time."""


def run(folder: Path, *options: str, tests: str = SOME, whole: bool = False) -> tuple[int, str]:
    """A run of these tests; with the `whole` of the house's own settings, or with what is tried here."""
    (folder / "test_some.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    if not whole:
        (folder / "conftest.py").write_text(ALONE)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini")]
    command += ["-p", "tests.conftest"] if whole else ["-p", "pytest_timeout"]
    env = {**os.environ, "COLUMNS": "200", **({} if whole else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})}
    command += [f"--basetemp={folder / 'temporary'}", "-q", "-rA", *options, str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_every_test_is_told_of_once_and_a_process_that_dies_fails_its_test_alone(tmp_path: Path) -> None:
    status, said = run(tmp_path, "--processes", "3", whole=True)
    assert "3 failed, 21 passed, 1 skipped" in said, said
    assert status == 1
    assert "The process that ran this test ended with 3." in said
    assert "Failed: Timeout" in said
    wrong = said.partition("words of the wrong one")
    assert wrong[1]
    assert all(said.count(f"said by {n}\n") == 1 for n in range(20))
    assert "INTERNALERROR" not in said


def test_the_first_failure_ends_the_run_where_that_is_wanted(tmp_path: Path) -> None:
    status, said = run(tmp_path, "--processes", "1", "-x")
    assert status in (1, 2), said
    assert "20 passed" in said  # but for the one that the process had already taken
    assert "skipped" not in said


BUSY = """
import os, pytest
from pathlib import Path
SEEN = Path(os.environ["SEEN"])
def test_only_well_at_the_second_time():
    print("words of the first time")
    SEEN.mkdir()
    try:
        assert SEEN.with_name("once").exists()
    finally:
        SEEN.rmdir()
        SEEN.with_name("once").touch()
def test_always_wrong():
    assert 1 == 2
def test_well():
    pass
"""


def test_what_failed_beside_others_may_pass_alone_and_is_told_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    status, said = run(tmp_path, "--processes", "2", "--again", "2", tests=BUSY)
    assert "1 failed, 2 passed" in said, said
    assert status == 1
    assert "FAILED BESIDE OTHERS, PASSED ALONE: test_some.py::test_only_well_at_the_second_time" in said
    assert "words of the first time" in said


def test_where_more_fail_than_may_none_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    status, said = run(tmp_path, "--processes", "2", "--again", "1", tests=BUSY)
    assert "2 failed, 1 passed" in said, said
    assert status == 1
    assert "PASSED ALONE" not in said


CROWD = """
import os, pytest, time
from pathlib import Path
from tests import together
together.STATISTICS = Path("FILE")
@pytest.mark.parametrize("n", range(24))
def test_beside_others(n):
    mine = Path("HERE") / str(n)
    mine.touch()
    time.sleep(0.2)
    print("beside", len(list(mine.parent.iterdir())), "of them")
    mine.unlink()
"""


@pytest.mark.parametrize(("computing", "room"), [(1, True), (100, False)])
def test_on_a_machine_that_is_busy_few_run_beside_each_other(tmp_path: Path, computing: int, room: bool) -> None:
    (here := tmp_path / "here").mkdir()
    (statistics := tmp_path / "stat").write_text(f"cpu 1 2\nprocs_running {computing}\nprocs_blocked 0\n")
    tests = CROWD.replace("FILE", str(statistics)).replace("HERE", str(here))
    status, said = run(tmp_path, "--processes", "12", tests=tests)
    assert status == 0, said
    most = max(int(line.split()[1]) for line in said.splitlines() if line.startswith("beside "))
    assert (most > LEAST) == room


def test_no_property_has_a_number_of_examples_of_its_own() -> None:
    """It would cost more than others each time, and be tried with no more in the soak."""
    told = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if OWN_NUMBER.search(path.read_text("utf-8"))
    }
    assert told == {"tests/examples.py"}
