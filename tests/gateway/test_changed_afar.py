"""What becomes of a whole conversation that another gateway runs: whoever asked is told what its owner would have told."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from adapters.contract.base import SessionKey
from adapters.contract.sessions import BusyElsewhere, SessionSight, StillRunning
from agent_core.jsonvalue import Json
from agent_core.store.sessions.rows import SessionRow
from agent_core.store.slices.calls import MOST_BYTES
from gateway.conversations.access import GatewaySessions
from gateway.several import changing
from gateway.several.far import FarControl, carry_out
from gateway.sharing.portion import FarChange
from tests.agent_core.turns import gives

KEY = SessionKey("api", "api", "c", person="ada")
SIGHT = SessionSight("s_1", KEY, 1, 2)
ROW = SessionRow("s_1", KEY.text(), 2, 1)


class Owner:
    """What the gateway has that runs it, where something is found to change or is not, or that cannot be."""

    def __init__(self, *, there: bool, trouble: type[Exception] | None, row: SessionRow | None, mine: bool) -> None:
        self._there, self._trouble, self._row = there, trouble, row
        self.done: list[object] = []
        self.store = SimpleNamespace(sessions=SimpleNamespace(one=self._one), inbox=SimpleNamespace(drop=self._drop))
        self.sights = SimpleNamespace(of=self._sights)
        portion = SimpleNamespace(mine=gives(mine))
        self.hub = SimpleNamespace(portion=portion, accepting=None, stopping=None, forgetting=None)

    async def _one(self, _: str) -> SessionRow | None:
        return self._row

    async def _sights(self, _: object) -> list[SessionSight]:
        return [SIGHT]

    async def _drop(self, inbox_id: int, reason: str) -> None:
        self.done.append((inbox_id, reason))

    async def describe(self, sight: SessionSight, metadata: object) -> SessionSight:
        return self._does(sight, FarChange.DESCRIBE, metadata, sight.metadata)

    async def reset(self, sight: SessionSight) -> SessionSight:
        return self._does(sight, FarChange.RESET)

    async def show(self, sight: SessionSight, turn: str) -> bool:
        self._does(sight, FarChange.SHOW, turn)
        return self._there

    async def delete(self, sight: SessionSight) -> None:
        self._does(sight, FarChange.DELETE)

    def _does(self, sight: SessionSight, change: FarChange, *words: object) -> SessionSight:
        if self._trouble is not None:
            raise self._trouble
        self.done.append((change, *words))
        return sight


def asker(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> GatewaySessions:
    """What another gateway does with the conversations of the first."""
    monkeypatch.setattr(changing, "access_of", gives(owner))

    async def ask(_: FarControl, key: str, wish: object, session: str, change: str, *words: Json) -> Json:
        del wish
        return await changing.changed(cast("Any", owner.hub), SessionKey.of(key), 7, session, FarChange(change), words)

    monkeypatch.setattr(FarControl, "_ask", ask)
    far = FarControl(cast("Any", None), cast("Any", None), cast("Any", None), {})
    stopping = SimpleNamespace(portion=SimpleNamespace(mine=gives(what=False), far=far))
    store, sights = cast("Any", owner.store), cast("Any", owner.sights)
    nothing = cast("Any", None)
    return GatewaySessions(store, nothing, cast("Any", stopping), nothing, sights, nothing, nothing, nothing, nothing)


async def asked(access: GatewaySessions, change: FarChange) -> object:
    match change:
        case FarChange.DESCRIBE:
            return (await access.describe(replace(SIGHT, metadata=SEEN), {"a": "b"})).metadata
        case FarChange.RESET:
            return await access.reset(SIGHT)
        case FarChange.SHOW:
            return await access.show(SIGHT, "t_1")
        case FarChange.DELETE:
            return await access.delete(SIGHT)


SEEN = {"c": "d"}
WORDS: dict[FarChange, tuple[object, ...]] = {FarChange.DESCRIBE: ({"a": "b"}, SEEN), FarChange.SHOW: ("t_1",)}


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("change", FarChange)
async def test_what_was_done_or_not_found_is_told_so(
    monkeypatch: pytest.MonkeyPatch, change: FarChange, *, there: bool
) -> None:
    owner = Owner(there=there, trouble=None, row=ROW, mine=True)
    told = await asked(asker(owner, monkeypatch), change)
    assert told == {FarChange.DESCRIBE: {"a": "b"}, FarChange.RESET: SIGHT, FarChange.SHOW: there}.get(change)
    done = (change, *WORDS.get(change, ()))
    assert owner.done == ([(7, changing.CARRIED_OUT), done] if change is FarChange.DELETE else [done])


@pytest.mark.parametrize("trouble", [StillRunning, BusyElsewhere])
@pytest.mark.parametrize("change", FarChange)
async def test_what_its_owner_could_not_do_is_not_told_as_done(
    monkeypatch: pytest.MonkeyPatch, change: FarChange, trouble: type[Exception]
) -> None:
    owner = Owner(there=True, trouble=trouble, row=ROW, mine=True)
    with pytest.raises(trouble):
        await asked(asker(owner, monkeypatch), change)


@pytest.mark.parametrize(("row", "mine"), [(None, True), (ROW, False), (SessionRow("s_1", "api/api/d//", 2, 1), True)])
@pytest.mark.parametrize("change", FarChange)
async def test_nothing_is_done_in_another_conversation_or_one_of_somebody_else(
    monkeypatch: pytest.MonkeyPatch, change: FarChange, row: SessionRow | None, *, mine: bool
) -> None:
    owner = Owner(there=True, trouble=None, row=row, mine=mine)
    with pytest.raises(BusyElsewhere):
        await asked(asker(owner, monkeypatch), change)
    assert owner.done == []


@pytest.mark.parametrize("mark", ["a", "語", "\x01", "😀"])
async def test_what_somebody_is_told_whose_answer_was_passed_on_fits_into_a_word(mark: str) -> None:
    async def answer(*_: object) -> str:
        return mark * 20_000

    told, own = list[str](), list[str]()
    hub = cast("Any", SimpleNamespace(stopping=SimpleNamespace(answer=answer)))
    words = orjson.dumps(["answer", "t_1", "c1", "yes", "ada"]).decode()
    await carry_out(hub, told.append, own.append, KEY, 7, words)
    (word,) = told
    assert len(word.encode()) < MOST_BYTES
    assert word == f"control:{own[0]}"
    assert orjson.loads(word.split(":", 2)[2]).startswith(mark * 500)
