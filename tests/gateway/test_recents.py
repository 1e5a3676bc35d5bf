"""What is told again of what was dropped, and for how long somebody may ask again for what was broken off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromApi, SessionKey, Showing
from agent_core.failures.notices import NotStarted
from agent_core.messages import InputMessage
from agent_core.store.inbox.rows import InboxState
from agent_core.store.turns.rows import TurnPlace
from agent_core.turn.events import TakenOver, TurnOpened
from agent_core.turn.state import NO_THOUGHTS
from agent_core.turn.view import View
from gateway.chats.onpage import show_on_page
from gateway.commands.carrying import Request
from gateway.commands.registry import BY_NAME
from gateway.delivery.owners import Owner
from gateway.queues import inbox, pageanswers
from gateway.queues.queue import RECENT_TURNS
from gateway.queues.queues import Queues
from gateway.sessions import recents
from gateway.sessions.recents import NOT_STARTED, recent_sights
from gateway.sessions.responses import JUST_MS, KeptByGateway
from tests.agent_core.turns import gives as gives_at_once

NOW = 1_700_000_000_000


async def no_messages(*_: object) -> Any:
    return {}


def gives(what: object) -> Callable[..., Awaitable[Any]]:
    async def given(*_: object) -> Any:
        return what

    return given


@pytest.mark.parametrize("state", [InboxState.DROPPED, InboxState.DONE])
@pytest.mark.parametrize("why", sorted(NOT_STARTED))
async def test_a_command_that_was_dropped_is_told_unless_its_person_wanted_it_so(
    monkeypatch: pytest.MonkeyPatch, why: str, state: InboxState
) -> None:
    said = FromApi(
        account="web", platform_key="k", session=SessionKey("web", "page", "s"), input=(InputMessage("/undo"),),
        surface="web", memory_scope="web/ada",
    )  # fmt: skip
    row = SimpleNamespace(id=1, arrival=1, body=inbox.encode(said), received_at=NOW, state=state, reason=why)

    store = SimpleNamespace(
        turns=SimpleNamespace(places=gives([]), some=gives([]), journals=gives({})),
        inbox=SimpleNamespace(beside_turns=gives([row])),
    )
    monkeypatch.setattr(pageanswers, "stored_answers", gives(()))
    _, sights = await recent_sights(cast("Any", store), recents.PAGE + "/page/s", "s", no_messages)
    told = state is InboxState.DROPPED and NOT_STARTED[why] not in (NotStarted.WITHDRAWN, NotStarted.FORGOTTEN)
    assert len(sights) == int(told)


@pytest.mark.parametrize("kind", [TakenOver, TurnOpened])
@pytest.mark.parametrize("age", [0, JUST_MS, JUST_MS + 1, None])
async def test_what_was_broken_off_may_be_asked_for_again_for_a_while(kind: Any, age: int | None) -> None:
    row = SimpleNamespace(platform_key="k", state=InboxState.DONE, turn="t")
    turn = SimpleNamespace(closed_at=NOW - age if age is not None else None)

    store = SimpleNamespace(
        inbox=SimpleNamespace(by_keys=gives([row])),
        turns=SimpleNamespace(one=gives(turn), journal=gives([SimpleNamespace(kind=kind.kind())])),
    )
    kept = KeptByGateway(cast("Any", store), cast("Any", None), cast("Any", None), 0)
    asked_again = kind is TakenOver and age is not None and age <= JUST_MS
    assert await kept.unanswered("", NOW) == (["k"] if asked_again else [])


@pytest.mark.parametrize("session", ["s", "another"])
@pytest.mark.parametrize("account", ["api", "web", "test"])
async def test_a_request_of_the_api_is_found_by_its_id_and_what_somebody_said_elsewhere_is_not(
    account: str, session: str
) -> None:
    said = FromApi(
        account=account, platform_key="k", session=SessionKey(account, "key", "a"), input=(InputMessage("hello"),),
        surface=account, memory_scope=account,
    )  # fmt: skip
    row = SimpleNamespace(
        id=1, session=session, account=account, body=inbox.encode(said), received_at=NOW, state=InboxState.DROPPED
    )
    store = SimpleNamespace(inbox=SimpleNamespace(one=gives(row)))
    kept = KeptByGateway(cast("Any", store), cast("Any", None), cast("Any", None), 0)
    assert (await kept.request("s", 1) is not None) == (account == "api" and session == "s")
    assert await kept.find("s", 1) is None, "it asked for nothing that is kept"


@pytest.mark.parametrize("turn", ["t", "another"])
@pytest.mark.parametrize("removed", ["", "no longer kept"])
async def test_a_response_is_the_latest_of_its_conversation_as_long_as_it_is_kept(turn: str, removed: str) -> None:
    row: Any = SimpleNamespace(id=1, session="s", state=InboxState.DONE, turn="t")
    store = SimpleNamespace(turns=SimpleNamespace(latest=gives([SimpleNamespace(turn=turn, removed=removed)])))
    queues = SimpleNamespace(of=dict[str, Any]().get)
    kept = KeptByGateway(cast("Any", store), cast("Any", queues), cast("Any", None), 0)
    assert await kept._is_latest(row) == (turn == "t" and not removed)


async def test_a_response_that_is_deleted_is_told_to_no_model_from_what_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []

    def notes(what: str) -> Any:
        async def noted(*_: object) -> None:
            done.append(what)

        return noted

    said = FromApi(
        account="api", platform_key="k", session=SessionKey("api", "key", "a"), input=(InputMessage("secret"),),
        surface="api", memory_scope="api", response={},
    )  # fmt: skip
    row = SimpleNamespace(
        id=1, session="s", account="api", body=inbox.encode(said), received_at=NOW, state=InboxState.DONE, turn="t1"
    )
    store = SimpleNamespace(
        inbox=SimpleNamespace(one=gives(row)),
        keeping=SimpleNamespace(remove_some=notes("journals"), remove=notes("words")),
        turns=SimpleNamespace(latest=gives([])),
    )
    queues = SimpleNamespace(of=dict[str, Any]().get, forget_memories=lambda: done.append("memories"))
    kept = KeptByGateway(
        cast("Any", store), cast("Any", queues), cast("Any", SimpleNamespace(stop_message=notes("stopped"))), 0
    )
    found = await kept.find("s", 1)
    assert found is not None
    await kept.delete(found)
    assert done == ["stopped", "journals", "memories", "words"]


@pytest.mark.parametrize("count", [0, 3, RECENT_TURNS, RECENT_TURNS + 7])
async def test_of_what_was_said_earlier_the_latest_is_shown(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    asked: list[str] = []

    async def sights(_store: object, turns: Sequence[str], _messages: object) -> list[Any]:
        asked.extend(turns)
        return []

    monkeypatch.setattr(recents, "_sights", sights)
    places = [TurnPlace(f"t{number}", number, -1, 0, "") for number in range(1, count + 5)]
    store = SimpleNamespace(turns=SimpleNamespace(places=gives(places)))
    await recents.earlier_sights(cast("Any", store), "s", f"t{count + 1}", no_messages)
    assert asked == [f"t{number}" for number in range(1, count + 1)][-RECENT_TURNS:]


@pytest.mark.parametrize("state", [InboxState.TAKEN, InboxState.DONE, InboxState.DROPPED])
async def test_a_turn_that_is_over_is_not_shown_as_if_it_ran_though_its_end_was_not_read(
    monkeypatch: pytest.MonkeyPatch, state: InboxState
) -> None:
    shown, ended = View((), open=True), object()

    async def look() -> None: ...

    far = SimpleNamespace(
        name="t", turn=SimpleNamespace(thoughts=NO_THOUGHTS), mark=(1, 0), look=look, shown=gives_at_once(shown)
    )
    row = SimpleNamespace(turn="t", state=state, id=7, session="s")
    store = SimpleNamespace(inbox=SimpleNamespace(one=gives(row)))
    monkeypatch.setattr(recents, "stored_end", gives(ended))
    message = recents.FarMessage(cast("Any", store), 7, cast("Any", SimpleNamespace(turn=gives_at_once(far))))
    assert await message.look(NOW) == (Showing("t", shown) if state is InboxState.TAKEN else ended)


@pytest.mark.parametrize("looks", [True, False])
def test_what_commands_said_is_shown_on_the_page_as_the_latest_of_so_much(*, looks: bool) -> None:
    key = SessionKey("web", "page", "s")
    queues, said = Queues(), FromApi(
        account="web", platform_key="k", session=key, input=(InputMessage("/status"),), surface="web", memory_scope="web/ada"
    )  # fmt: skip
    queue = queues.at(key.text())
    queue.recent_loaded = looks
    for number in range(RECENT_TURNS + 3):
        made = replace(said, platform_key=f"k{number}")
        request = Request(BY_NAME["status"], "", made, number, Owner("s", 1), admin=False, own=key, arrival=number)
        show_on_page(queues, request, [f"It is {number}."], "")
    shown = [one.key for one in queue.recent]
    assert shown == ([f"k{number}" for number in range(3, RECENT_TURNS + 3)] if looks else []), (
        "it is read when somebody looks"
    )
