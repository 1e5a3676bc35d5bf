"""What is told again of what was dropped, and for how long somebody may ask again for what was broken off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromApi, SessionKey
from agent_core.failures.notices import NotStarted
from agent_core.messages import InputMessage
from agent_core.store.inbox.rows import InboxState
from agent_core.turn.events import TakenOver, TurnOpened
from gateway.queues import inbox, pageanswers
from gateway.sessions import recents
from gateway.sessions.recents import NOT_STARTED, recent_sights
from gateway.sessions.responses import JUST_MS, KeptByGateway

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
