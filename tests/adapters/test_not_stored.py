"""What a platform told and could not be stored: it is looked for, since nobody tells it for ever, and who wrote it is told where they look."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.discord import adapter as discord_adapter
from adapters.discord import client as discord_client
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.inbound import Brought
from adapters.slack.adapter import SlackAdapter
from adapters.slack.inbound import key_of_body
from tests.agent_core.turns import gives

AWAY = NotAccepted("The database is away.", NotAcceptedCode.STORAGE_AWAY)


@pytest.mark.parametrize(("user", "refused"), [("U1", True), ("U1", False), ("UBOT", True), ("UBOT", False)])
async def test_what_slack_tells_is_acknowledged_when_it_is_stored_and_else_owed_and_looked_for(
    user: str, *, refused: bool
) -> None:
    done: list[str] = []
    told: list[object] = []

    def notes(what: str) -> Callable[..., None]:
        return lambda *_: done.append(what)

    async def take(_: object) -> None:
        if refused:
            raise AWAY

    async def noticed(_: object) -> None:
        await take(None)

    def waiting(_: NotAccepted, came: Iterable[Callable[[], object]]) -> None:
        told.extend(one() for one in came)

    event = {"type": "message", "channel": "D1", "ts": "1.0", "user": user, "text": "hi"}
    body = {"event": event}
    adapter = SimpleNamespace(
        _me="UBOT", _last_life=0.0, _clock=SimpleNamespace(monotonic=lambda: 1.0), _whose=notes("whose"),
        _missed=SimpleNamespace(noticed=noticed, owes=notes("looked for")), _take=take,
        _owed=SimpleNamespace(put=notes("owed")), _way=SimpleNamespace(waiting=waiting),
        _not_stored=notes("logged"), _message_of=gives(body),
    )  # fmt: skip
    assert await vars(SlackAdapter)["_take_in"](adapter, body) is not refused
    assert {*done} == ({"whose", "looked for", "owed", "logged"} if refused else {"whose"})
    assert told == ([body] if refused else [])


@pytest.mark.parametrize("threads", [True, False])
@pytest.mark.parametrize("for_us", [True, False])
@pytest.mark.parametrize("under_way", [True, False])
def test_on_discord_each_chat_is_told_that_waits_but_for_those_whose_thread_is(
    monkeypatch: pytest.MonkeyPatch, *, threads: bool, for_us: bool, under_way: bool
) -> None:
    read = SimpleNamespace(for_us=for_us)
    told: list[object] = []

    def waiting(_: NotAccepted, came: Iterable[Callable[[], object]]) -> None:
        told.extend(one() for one in came)

    monkeypatch.setattr(discord_client, "message_of", gives(None))
    monkeypatch.setattr(discord_adapter, "read_message", gives(read))
    came = [Brought("MESSAGE_CREATE", {"id": "1"}), Brought("MESSAGE_UPDATE", {"id": "2"}), object()]
    adapter: Any = SimpleNamespace(
        port=SimpleNamespace(client=SimpleNamespace(user=SimpleNamespace(id=7))), account="7", _came=came,
        _settings=SimpleNamespace(auto_threads=threads), _under_way={id(came[0])} if under_way else set[int](),
        _way=SimpleNamespace(waiting=waiting),
    )  # fmt: skip
    vars(DiscordAdapter)["_waiting"](adapter, AWAY)
    assert told == [None if threads and for_us and under_way else read]


def test_what_slack_tells_has_one_key_however_often_it_comes_and_no_other_has_it() -> None:
    """A message in which we are named comes as two events; a change of it is another thing that was told of the same message."""

    def key(event_id: str, kind: str, **more: str) -> str:
        return key_of_body({"event_id": event_id, "event": {"type": kind, "channel": "C1", "ts": "1.0", **more}})

    said = key("E1", "message", text="hi")
    assert said == key("E2", "app_mention", text="hi")
    changed = [key(name, "message", subtype="message_changed") for name in ("E3", "E4", "E4")]
    assert len({said, *changed}) == 3
