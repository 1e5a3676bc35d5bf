"""An exit is one record, its stored facts are read whatever version wrote them, and a new one is made in one file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures import exits
from agent_core.failures.errors import ProtocolError
from agent_core.failures.exits import EXITS, ExitCode, ending, read
from agent_core.failures.notices import NotStarted
from agent_core.failures.remedies import Failure, exit_for
from agent_core.limits.spend import Budget, Measure
from agent_core.rules.loops import LoopCode
from agent_core.storedjson import dumps

ROOT = Path(__file__).parents[2]

_numbers, _texts, _flags = st.integers(0, 10**6), st.text(max_size=9), st.booleans()
_names = st.lists(st.sampled_from(["read_file", "write_file", ""]), max_size=8)
_spend = st.fixed_dictionaries(
    {
        "budget": st.sampled_from([one.value for one in Budget]),
        "measure": st.sampled_from([one.value for one in Measure]),
        "limit": _numbers,
        "used": _numbers,
    },
    optional={"held": _numbers, "currency": _texts, "opens": _texts, "opens_in_seconds": _numbers},
)
STORED: dict[str, st.SearchStrategy[object]] = {
    "cause": st.none() | st.sampled_from([one.value for one in BreakCause]),
    "seconds": _numbers, "attempts": _numbers, "steps": _numbers,
    "tools_done": _names, "tools_dropped": _names, "tools_unsure": _names,
    "tool": _texts, "count": _numbers, "limit": _numbers, "status": _numbers, "retry_after_seconds": _numbers,
    "announced": _texts, "pattern": _texts, "tried": st.lists(_texts, max_size=3), "alone": _flags, "without": _texts, "reference": _texts,
    "size": _numbers, "chars": _numbers, "reason": st.none() | st.sampled_from([one.value for one in NotStarted]),
    "detail": _texts, "model": _texts, "text_shown": _flags, "unclear": _flags, "limit_was_asked": _flags, "forgotten": _flags,
    "spend": st.none() | _spend,
}  # fmt: skip
"""Every fact that a version has stored, with any exit: the first ones wrote them all each time, later ones those that say something."""


@given(st.sampled_from(list(ExitCode)), st.fixed_dictionaries({}, optional=STORED) | st.fixed_dictionaries(STORED))
def test_what_any_version_stored_of_an_exit_is_read_and_kept(code: ExitCode, stored: dict[str, object]) -> None:
    found = read({"code": code.value, "facts": stored})
    assert type(found) is EXITS[code]
    own = {name: value for name, value in stored.items() if name in {field.name for field in fields(found)}}
    assert found == read({"code": code.value, "facts": own}), "what is not its own changes nothing"
    written = json.loads(dumps(found))
    assert written.get("facts", {}).items() <= own.items() or "spend" in own
    assert read(written) == found
    assert written["code"] == code.value
    notice = found.notice()
    assert (notice is None) == (code in (ExitCode.ANSWERED, ExitCode.HANDED_TO_CLIENT))


def test_every_fact_that_was_stored_belongs_to_an_exit_and_no_exit_has_another() -> None:
    assert {field.name for record in EXITS.values() for field in fields(record)} == set(STORED)


@pytest.mark.parametrize("code", list(ExitCode))
def test_an_exit_that_says_nothing_more_is_stored_as_its_code(code: ExitCode) -> None:
    bare = EXITS[code]()
    assert json.loads(dumps(bare)) == {"code": code.value}
    assert read({"code": code.value}) == bare


@pytest.mark.parametrize("stored", [{}, {"code": "nonsense"}, {"code": "stopped", "facts": {"tools_done": 7}}])
def test_what_is_no_exit_is_not_read(stored: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(stored)


def test_a_journals_code_makes_an_end_of_its_family_alone() -> None:
    assert ending(ExitCode.NO_PROGRESS, exits.Looped) is exits.NoProgress
    with pytest.raises(ProtocolError, match="stopped"):
        ending(ExitCode.STOPPED, exits.Looped)


@pytest.mark.parametrize("failure", list(Failure))
@pytest.mark.parametrize("tools_ran", [False, True])
def test_every_failed_call_ends_in_an_exit_that_has_its_facts(failure: Failure, tools_ran: bool) -> None:
    for cause in BreakCause:
        assert issubclass(EXITS[exit_for(failure, cause, tools_ran=tools_ran)], exits.Failed)


def test_every_loop_ends_in_an_exit_that_has_its_facts() -> None:
    assert all(issubclass(EXITS[code], exits.Looped) for code in get_args(LoopCode))


# --- a new one ---

MEMBER = '    MODEL_ASLEEP = "model_asleep"\n'
RECORD = '''
@ends(ExitCode.MODEL_ASLEEP, ExitClass.LIMIT, "the model sleeps", operator="Wake it up ([model] name).", example={"hours": 3, "tools_done": []})
class ModelAsleep(Exit):
    """The model has gone to bed."""

    hours: int = 0

    def text(self) -> str:
        return say(f"The model sleeps for {self.hours} hours.", self.work, CONTINUE)

'''
ASKED = """
import json
from agent_core.journal.replay import exit_words
from agent_core.journal.rows import decode, encode
from agent_core.turn.events import TurnEnded
from agent_core.failures.exits import ModelAsleep
from agent_core.turn.view import exit_view
from adapters.terminal.ask import _KNOWN
from tests.printed.exits import markdown
from gateway.operate.triage.issues import turn_issue

ended = TurnEnded(at=1, exit=ModelAsleep(hours=2, model="m"))
row = encode(ended)
same = decode(row.kind, row.body) == ended
issue = turn_issue("model_asleep|h|m|-|-")
print(json.dumps([markdown(), same, json.loads(row.body)["exit"], exit_view(ended.exit).text, exit_words(ended.exit), issue.action,
                  "model_asleep" in _KNOWN]))
"""


def _asked(folder: Path, member: str, record: str) -> subprocess.CompletedProcess[str]:
    shutil.copytree(ROOT / "agent_core", folder / "agent_core", ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "agent_core" / "failures" / "exits.py"
    text = file.read_text("utf-8")
    first, before = (
        '    ANSWERED = "answered"\n',
        "# ---------------------------------------------------------------------- the gateway itself",
    )
    assert first in text
    assert before in text
    file.write_text(text.replace(first, first + member).replace(before, record + "\n" + before), "utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    return subprocess.run(
        [sys.executable, "-c", ASKED], cwd=folder, env=env, check=False, capture_output=True, text=True, timeout=120
    )


def test_a_new_exit_is_a_record_in_one_file(tmp_path: Path) -> None:
    ran = _asked(tmp_path, MEMBER, RECORD)
    assert ran.returncode == 0, ran.stderr
    page, same, stored, shown, replayed, action, known = json.loads(ran.stdout)
    assert "| [`model_asleep`](#model_asleep) | limit | `length` | 500 | 11 |" in page
    said = "The model sleeps for 3 hours. Say “continue” to let it try again from here."
    assert f"### `model_asleep`\n\nThe model has gone to bed.\n\n> ⚠️ {said}\n\nButtons: " in page
    assert "For the operator: Wake it up ([model] name)." in page
    assert (same, known) == (True, True)
    assert stored == {"code": "model_asleep", "facts": {"model": "m", "hours": 2}}
    assert shown == "The model sleeps for 2 hours. Say “continue” to let it try again from here."
    assert (replayed, action) == ("model asleep", "Wake it up ([model] name).")


def test_a_code_without_a_record_is_told_when_the_program_begins(tmp_path: Path) -> None:
    ran = _asked(tmp_path, MEMBER, "")
    assert ran.returncode != 0
    assert "an exit without a record in exits.py: model_asleep" in ran.stderr


def test_every_exit_has_words_of_its_own() -> None:
    """Nothing else says so before somebody reads them: an abstract class would cost every first turn a walk over all of them."""
    for kind in EXITS.values():
        assert kind.text is not exits.Exit.text, kind
        assert not issubclass(kind, exits.Cut) or kind.by_the_model is not exits.Cut.by_the_model, kind
