"""What commands do with what they are told: nothing is decided about one that is not meant, and the exit status says how it went."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.checks import probe
from adapters.checks.findings import Finding, problem
from agent_core.jsonvalue import Json
from agent_core.store import reading as stored
from agent_core.store.errors import StorageUnavailable
from agent_core.text.redaction import Redactor
from agent_core.tools.base import ToolOutcome, ToolStatus
from gateway.cli import approvals, db, guarded, look, tools
from gateway.cli.guarded import TRY_AGAIN
from gateway.config import reading as configuration
from gateway.explain import story
from gateway.operate import context, database, trying

FIRST, SECOND = "appr_t_1_0000000000aa", "appr_t_2_1111111111aa"


def always(value: object) -> Callable[..., object]:
    def given(*_: object, **__: object) -> object:
        return value

    return given


class Waits:
    """A gateway in which these wait."""

    def __init__(self, *ids: str, offers: Sequence[str] = ("once",)) -> None:
        self.waiting: list[dict[str, Json]] = [{"id": one, "offers": [*offers]} for one in ids]
        self.decided: list[tuple[str, bool, str]] = []

    async def approvals(self) -> list[dict[str, Json]]:
        return self.waiting

    async def decide_call(self, name: str, *, approve: bool, lasts: str) -> dict[str, Json]:
        self.decided.append((name, approve, lasts))
        return {"status": "approved" if approve else "denied", "lasts": lasts}


@pytest.mark.parametrize("approve", [True, False])
@pytest.mark.parametrize(
    ("said", "lasts", "decided"),
    [
        ("0aa", "once", FIRST),
        ("1111aa", "once", SECOND),
        ("aa", "once", ""),  # both
        ("bb", "once", ""),  # neither
        ("0000", "once", ""),  # in the middle of one
        ("0aa", "always", ""),  # which is not offered
        (SECOND, "once", SECOND),
    ],
)
async def test_only_the_one_call_that_is_meant_is_decided(
    monkeypatch: pytest.MonkeyPatch, said: str, lasts: str, decided: str, *, approve: bool
) -> None:
    gateway = Waits(FIRST, SECOND)

    async def remote(_: object) -> Waits:
        return gateway

    monkeypatch.setattr(approvals, "_remote", remote)
    command: Any = approvals
    status = await command._decide(None, said, approve=approve, lasts=lasts)
    if lasts == "always" and not approve:
        decided = FIRST  # nothing lasts of what is denied
    assert gateway.decided == ([(decided, approve, lasts)] if decided else [])
    assert status == (0 if decided else 1)


@pytest.mark.parametrize("status", ToolStatus)
async def test_a_try_of_a_tool_ends_well_only_if_it_did(monkeypatch: pytest.MonkeyPatch, status: ToolStatus) -> None:
    async def tried(*_: object) -> tuple[ToolOutcome, str]:
        return ToolOutcome(status, "it said so"), ""

    monkeypatch.setattr(context, "load_all", always((SimpleNamespace(config=None), None)))
    monkeypatch.setattr(context, "configure_logs", always(None))
    monkeypatch.setattr(trying, "tried", tried)
    command: Any = tools
    assert (await command._try(None, "dice", "{}") == 0) is (status is ToolStatus.OK)


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("question", probe.Question)
async def test_health_ends_well_only_if_the_answer_is_yes_and_the_key_goes_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, question: probe.Question, *, yes: bool
) -> None:
    asked: list[object] = []

    async def health(url: str, one: probe.Question, key: str | None, seconds: float) -> probe.ProbeResult:
        asked.extend((url, one, key, seconds))
        return probe.ProbeResult(yes=yes, why=("it is starting",))

    key = SimpleNamespace(get_secret_value=lambda: "secret")
    server = SimpleNamespace(host="0.0.0.0", port=8787, operator_key=key)
    loaded = SimpleNamespace(config=SimpleNamespace(server=server))
    monkeypatch.setattr(context, "load_all", always((loaded, None)))
    monkeypatch.setattr(probe, "health", health)
    command: Any = look
    assert (await command._health(None, question.value, 4.0) == 0) is yes
    well = question is probe.Question.WELL
    assert asked == ["http://127.0.0.1:8787", question, "secret" if well else None, 4.0]


@pytest.mark.parametrize("quick", [True, False])
async def test_a_check_of_the_database_is_as_thorough_as_was_asked_and_ends_as_what_it_found(
    monkeypatch: pytest.MonkeyPatch, *, quick: bool
) -> None:
    asked: list[bool] = []

    async def checked(*_: object, thorough: bool) -> list[Finding]:
        asked.append(thorough)
        return [problem("database.damage", "It is damaged.", "Restore a backup.")]

    monkeypatch.setattr(context, "load_all", always((SimpleNamespace(config=None), None)))
    monkeypatch.setattr(database, "checked", checked)
    command: Any = db
    assert await command._check(None, quick=quick, as_json=False) == 1
    assert asked == [not quick]


@pytest.mark.parametrize("found", [True, False])
async def test_explain_ends_well_only_for_what_is_stored(monkeypatch: pytest.MonkeyPatch, *, found: bool) -> None:
    class Explains:
        def __init__(self, *_: object, **more: object) -> None:
            assert more == {"show_text": False, "kept_days": 9}

        async def of(self, _: str) -> object:
            return SimpleNamespace(found=found, text=always("It says sk-secret."))

    @asynccontextmanager
    async def open_reads(_: object) -> AsyncGenerator[None]:
        yield

    kept = SimpleNamespace(storage=SimpleNamespace(url=""), retention=SimpleNamespace(bodies_days=9))
    said: list[object] = []
    monkeypatch.setattr(context, "load_all", always((SimpleNamespace(config=kept), SimpleNamespace(database="db"))))
    monkeypatch.setattr(configuration, "redactor_of", always(Redactor.of(["sk-secret"])))
    monkeypatch.setattr(stored, "open_reads", open_reads)
    monkeypatch.setattr(story, "Explainer", Explains)
    monkeypatch.setattr(look.click, "echo", said.append)
    command: Any = look
    assert (await command._explain(None, "t_1", "", "", show_text=False, as_json=False) == 0) is found
    assert "sk-secret" not in str(said)
    assert "It says" in str(said)


@pytest.mark.parametrize("approve", [True, False])
async def test_without_an_id_nothing_is_decided_though_a_single_call_waits(
    monkeypatch: pytest.MonkeyPatch, *, approve: bool
) -> None:
    """A script whose variable is empty would decide what nobody has looked at."""
    gateway = Waits(FIRST)

    async def remote(_: object) -> Waits:
        return gateway

    monkeypatch.setattr(approvals, "_remote", remote)
    command: Any = approvals
    assert await command._decide(None, "", approve=approve, lasts="once") == 1
    assert await command._show(None, "", as_json=True) == 1
    assert gateway.decided == []


async def test_what_cannot_be_looked_up_now_is_not_said_to_be_stored_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        def __init__(self, *_: object, **__: object) -> None: ...

        async def of(self, _: str) -> object:
            raise StorageUnavailable("The server does not answer.")

    @asynccontextmanager
    async def open_reads(_: object) -> AsyncGenerator[None]:
        yield

    kept = SimpleNamespace(storage=SimpleNamespace(url=""), retention=SimpleNamespace(bodies_days=9))
    monkeypatch.setattr(context, "load_all", always((SimpleNamespace(config=kept), SimpleNamespace(database="db"))))
    monkeypatch.setattr(stored, "open_reads", open_reads)
    monkeypatch.setattr(story, "Explainer", Away)
    command: Any = look
    with pytest.raises(StorageUnavailable) as away:
        await command._explain(None, "t_1", "", "", show_text=False, as_json=False)
    assert await asyncio.to_thread(guarded_status, away.value) == TRY_AGAIN


def guarded_status(error: Exception) -> int:
    """With what a command ends that meets this."""

    async def meets() -> int:
        raise error

    with pytest.raises(SystemExit) as ended:
        guarded.guarded(meets)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize("grouped", [False, True])
def test_that_no_further_file_may_be_opened_is_said_with_what_to_do(
    capsys: pytest.CaptureFixture[str], *, grouped: bool
) -> None:
    why = OSError(errno.EMFILE, "Too many open files")

    async def work() -> int:
        raise ExceptionGroup("tasks", [why, ValueError("it was ended by that")]) if grouped else why

    with pytest.raises(SystemExit) as ended:
        guarded.guarded(work)
    assert ended.value.code == TRY_AGAIN
    assert "ulimit -n" in capsys.readouterr().err
