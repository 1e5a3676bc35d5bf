"""A file of a conversation is had in that conversation, and in none beside it: neither one that was sent there, nor one that a person brought."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.contract.base import Ended, SessionKey, Showing
from adapters.contract.sessions import SessionSight, SessionTurn
from adapters.delivery.parts import call_mark
from agent_core.turn.view import Bubble, BubbleKind, View
from gateway.conversations import access
from gateway.conversations.access import OF_PAGE, GatewaySessions
from tests.agent_core.turns import gives

FILE = ("a.png", b"picture")
SPOOL = Path("/spool")
SENT = Bubble("c1.file", BubbleKind.FILE, "a.png", final=True, path="/elsewhere/outbox/a.png")


def sight(session: str, person: str = "browser:1") -> SessionSight:
    return SessionSight(session, SessionKey("web", "page", f"c-{session}", person=person), 1, 1)


class Table(dict[Any, Any]):
    """Rows by whatever they are asked for by."""

    async def one(self, name: object) -> Any:
        return self.get(name)

    async def by_key(self, platform: str, key: str) -> Any:
        assert platform == "web"
        return self.get(key)

    async def journal(self, turn: str) -> list[Any]:
        assert turn in self
        return []


def sessions(turns: Table, inbox: Table, keys: Table, seen: Ended | Showing | None = None) -> GatewaySessions:
    async def latest(session: str, number: int, limit: int, *, newest_first: bool) -> list[SessionTurn]:
        del session, limit, newest_first
        row = next(one for one in turns.values() if one.number == number + 1)
        return [SessionTurn(row.turn, row.number, 1, 2, told=True, seen=seen)]

    store: Any = SimpleNamespace(turns=turns, inbox=inbox, sessions=keys)
    none: Any = None
    of: Any = SimpleNamespace(turns=latest)
    forgetting: Any = SimpleNamespace(spool=SPOOL)
    return GatewaySessions(store, none, none, forgetting, of, none, none, Path("nowhere"), OF_PAGE)


def turn(name: str, session: str, number: int, removed: str = "") -> Any:
    return SimpleNamespace(turn=name, session=session, number=number, removed=removed)


async def test_what_was_sent_in_a_conversation_is_had_there_alone_and_as_long_as_it_is_kept() -> None:
    turns = Table({"t1": turn("t1", "s1", 1), "t2": turn("t2", "s1", 2, "forgotten"), "t3": turn("t3", "s3", 3)})
    of = sessions(turns, Table(), Table(), Showing("t", View((SENT,), open=True)))
    mark = call_mark(SENT.key)
    found = {
        (session, name): await of.sent(sight(session), name, mark)
        for session in ("s1", "s2", "s3") for name in ("t1", "t2", "t3", "t9")
    }  # fmt: skip
    assert {asked for asked, path in found.items() if path is not None} == {("s1", "t1"), ("s3", "t3")}
    assert found["s1", "t1"] == SPOOL / "outbox" / "a.png", "wherever the gateway had it when it was sent"
    assert await of.sent(sight("s1"), "t1", call_mark("c2.file")) is None


def read(row: Any, number: int) -> tuple[str, bytes] | None:
    return FILE if (row.id, number) == (5, 0) else None


async def test_what_a_person_brought_is_had_in_the_conversation_where_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_file_in", read)
    of = sessions(Table(), Table({"m1": SimpleNamespace(id=5, session="s1")}), Table())
    assert await of.brought(sight("s1"), "m1", 0) == FILE
    assert await of.brought(sight("s1"), "m1", 1) is None
    assert await of.brought(sight("s2"), "m1", 0) is None
    assert await of.brought(sight("s1"), "m\n1", 0) is None


async def test_in_a_branch_it_is_had_where_the_same_person_brought_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_file_in", read)
    monkeypatch.setattr(access, "closed_turn", gives(object()))
    monkeypatch.setattr(access, "files_named", gives([(5, 0, "a.png")]))
    turns = Table({"t1": turn("t1", "s1", 1), "t2": turn("t2", "s1", 2, "forgotten")})
    home, inbox = sight("s0").key, Table({5: SimpleNamespace(id=5, session="s0")})
    of = sessions(turns, inbox, Table({"s0": SimpleNamespace(key=home.text())}))
    assert await of.brought(sight("s1"), "t1", 0) == FILE
    assert await of.brought(sight("s1"), "t1", 1) is None
    assert await of.brought(sight("s1"), "t2", 0) is None, "it was forgotten"
    assert await of.brought(sight("s2"), "t1", 0) is None, "it is another conversation's"
    assert await of.brought(sight("s1", "browser:2"), "t1", 0) is None, "somebody else brought it"
