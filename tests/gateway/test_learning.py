"""What failures teach is asked of the store once: of conversations that had no trouble it is known, and what was not compared yet is compared later."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_core.learning.incidents import IncidentRules
from agent_core.store.store import Damaged, StorageUnavailable
from agent_core.store.troubles.rows import IncidentRow, IncidentState
from gateway.sessions import learning as of_learning
from gateway.sessions.learning import OURSELVES, Learning
from tests.gateway.test_accepting import in_chat
from tests.store.support import IDS, FakeClock, opened

ROW: Any = SimpleNamespace(fingerprint="f")


class Troubles:
    """What is stored of troubles, and what it was asked."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[str, Any]]] = {}
        self.asked: list[str] = []
        self.compared: list[tuple[str, ...]] = []
        self.fails: Exception | None = None

    async def of(self, name: str, since: int) -> list[tuple[str, Any]]:
        del since
        self.asked.append(name)
        return self.rows.get(name, [])

    async def counts(self, since: int, fingerprints: tuple[str, ...], left_out: object) -> list[Any]:
        del since, left_out
        self.compared.append(fingerprints)
        if self.fails is not None:
            raise self.fails
        return []

    async def incidents(self) -> list[Any]:
        return []


def learning(troubles: Troubles, asked: Any = None) -> Learning:
    store: Any = SimpleNamespace(troubles=troubles)
    return Learning(IncidentRules(), asked, None, store, FakeClock(), IDS)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_they_are(rows: object, _: object) -> object:
        return rows

    monkeypatch.setattr(of_learning, "stalls_of", as_they_are)


async def test_a_conversation_of_ours_is_asked_for_its_troubles_again_when_it_had_some_or_was_somebody_elses() -> None:
    troubles = Troubles()
    one, said = learning(troubles), in_chat("2", 1)
    for _ in range(2):
        await one.known(said, "s", 1)
    assert troubles.asked == ["s"], "it had none, and nobody else adds to it"
    one.troubled("s", [])
    await one.known(said, "s", 1)
    assert troubles.asked == ["s"]
    one.troubled("s", [ROW])
    for _ in range(2):
        await one.known(said, "s", 1)
    assert troubles.asked == ["s"] * 2
    await one.known(said, "s", 3)
    assert troubles.asked == ["s"] * 3, "under another epoch somebody else may have added to it"
    troubles.rows["s2"] = [("s2", ROW)]
    for _ in range(2):
        await one.known(said, "s2", 1)
    assert troubles.asked[3:] == ["s2", "s2"]


@pytest.mark.parametrize("error", [StorageUnavailable("away"), Damaged("damaged")])
async def test_what_went_wrong_while_it_could_not_be_compared_is_compared_later(error: Exception) -> None:
    troubles = Troubles()
    one, said = learning(troubles), in_chat("2", 1)
    await one.look()
    one.troubled("s", [ROW])
    troubles.fails = error
    if isinstance(error, Damaged):
        await one.known(said, "s", 1)  # of no use to the turn, which goes on
    else:
        with pytest.raises(StorageUnavailable):
            await one.known(said, "s", 1)
    troubles.fails = None
    await one.known(said, "s", 1)
    await one.known(said, "s", 1)
    assert troubles.compared == [(), ("f",), ("f",)]


async def test_only_models_that_turns_ask_and_the_gateway_itself_are_anybodys_concern() -> None:
    def asked(endpoint: str, model: str) -> bool:
        return (endpoint, model) == ("host", "m")

    one = learning(Troubles(), asked)
    concerns = cast("Any", one)._concerns
    assert [concerns(*each) for each in (("host", "m"), ("host", "old"), ("gone", "m"), (OURSELVES, "t1, set aside"))] == [
        True, False, False, True,
    ]  # fmt: skip


async def test_a_turn_begins_also_where_what_was_learnt_cannot_be_understood() -> None:
    troubles = Troubles()
    troubles.fails = ValueError("not enough values to unpack")
    known = await learning(troubles).known(in_chat("2", 1), "s_1", 1)
    assert ([*known.stalls], known.incidents) == ([], ())


async def test_who_could_not_be_told_meanwhile_is_told_of_what_happened_lately_and_of_nothing_older(
    sqlite: str,
) -> None:
    clock, rules, told = FakeClock(), IncidentRules(), list[str]()
    lately = rules.window_ms + rules.quiet_ms
    async with opened(sqlite, clock) as store:
        for ago in (0, lately - 1, lately, lately + 1):
            row = IncidentRow(
                f"i{ago}", f"f{ago}", IncidentState.OPEN, "stalled", "", "", "", clock.now, clock.now - ago
            )
            await store.troubles.put_incident(row)
        one = Learning(rules, cast("Any", None), lambda key, _: told.append(key), store, clock, IDS)
        await cast("Any", one)._tell_of_late()
    assert {key.split(":")[1] for key in told} == {"i0", f"i{lately - 1}"}
