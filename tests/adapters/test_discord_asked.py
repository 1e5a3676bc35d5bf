"""What Discord is asked beside messages: commands are registered when they are others, a press is answered as it was taken, connections that end let go of what
they held."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import SecretStr

from adapters.contract.chat import CallFailed, Cause, Fate
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.contract.supervision import AdapterDown
from adapters.discord import adapter as of_adapter
from adapters.discord import client as of_client
from adapters.discord.adapter import MENU, DiscordAdapter
from adapters.discord.inbound import Brought
from adapters.discord.library import discord
from adapters.discord.platform import Discord
from adapters.discord.port import DiscordPort
from adapters.discord.sessions import HANDED, ShardSessions, Upto
from agent_core.ports import SystemClock
from tests.agent_core.turns import gives

# ---------------------------------------------------------------------- commands


class Menu:
    """An adapter as far as it registers commands."""

    def __init__(self, fails: CallFailed | None = None) -> None:
        self.fails, self.asked, self.kept, self.away = fails, 0, dict[str, str](), False
        self.commands = [SimpleNamespace(name="stop", words="Stop it")]
        intake = SimpleNamespace(commands=lambda: self.commands, cursor=self._cursor, skip=self._skip)
        self.adapter = SimpleNamespace(_intake=intake, name="discord/1", port=SimpleNamespace(asked=self._asked))
        self.client = SimpleNamespace(application_id=5, http=SimpleNamespace(bulk_upsert_global_commands=gives(None)))

    async def _cursor(self, _: str, channel: str) -> str | None:
        return self.kept.get(channel)

    async def _skip(self, _: str, cursor: tuple[str, str]) -> None:
        if self.away:
            raise NotAccepted("away", NotAcceptedCode.STORAGE_AWAY)
        self.kept[cursor[0]] = cursor[1]

    async def _asked(self, _: object) -> None:
        self.asked += 1
        if self.fails is not None:
            raise self.fails

    async def set(self) -> None:
        await vars(DiscordAdapter)["_set_menu"](self.adapter, self.client)


def test_commands_are_given_only_where_the_bot_is() -> None:
    """By default an app can be put on a person's account, and its commands be given in any server or chat of theirs."""
    menu = of_client.menu_of([cast("Any", SimpleNamespace(name="stop", words="Stop it"))])
    assert [(one["integration_types"], one["contexts"]) for one in menu] == [([0], [0, 1])]


async def test_commands_are_registered_once_and_again_when_they_are_others() -> None:
    menu = Menu()
    await menu.set()
    await menu.set()
    assert (menu.asked, [*menu.kept]) == (1, [MENU])
    menu.commands = [SimpleNamespace(name="stop", words="Stop all of it")]
    await menu.set()
    assert menu.asked == 2
    menu.away, menu.commands = True, []
    await menu.set()
    await menu.set()
    assert menu.asked == 4, "what could not be noted is done once more"


@pytest.mark.parametrize("cause", [Cause.NOT_LET_IN, Cause.OTHER])
async def test_commands_that_are_not_taken_end_a_connection_only_where_we_are_not_let_in(cause: Cause) -> None:
    menu = Menu(CallFailed(Fate.REFUSED, "no", cause=cause))
    if cause is Cause.NOT_LET_IN:
        with pytest.raises(AdapterDown):
            await menu.set()
    else:
        await menu.set()
    assert menu.kept == {}, "and are registered the next time"


# ---------------------------------------------------------------------- presses


class Pressed:
    """A press, or a command, and what its person is answered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refused: NotAccepted | None, *, button: bool) -> None:
        self.answered: list[tuple[str, dict[str, Any]]] = []
        self.refused = refused
        kind = discord.InteractionType.component if button else discord.InteractionType.application_command
        response = SimpleNamespace(defer=self._defer, send_message=self._send)
        self.interaction = SimpleNamespace(type=kind, response=response)
        monkeypatch.setattr(of_adapter, "read_interaction", gives(SimpleNamespace(command="stop", text="all")))
        self.adapter = SimpleNamespace(
            account="1", port=SimpleNamespace(asked=DiscordPort.asked), _intake=SimpleNamespace(receive=self._receive)
        )
        self.adapter._acknowledge = lambda *told, **more: vars(DiscordAdapter)["_acknowledge"](  # pyright: ignore[reportUnknownLambdaType]
            self.adapter, *told, **more
        )

    async def _receive(self, *_: object) -> None:
        self.answered.append(("stored", {}))
        if self.refused is not None:
            self.answered.clear()
            raise self.refused

    async def _defer(self, **more: Any) -> None:
        self.answered.append(("seen", more))

    async def _send(self, words: str, **more: Any) -> None:
        self.answered.append((words, more))


ALONE = {"ephemeral": True}


@pytest.mark.parametrize("button", [True, False])
async def test_a_press_is_acknowledged_when_it_is_stored_and_a_command_is_for_who_gave_it(
    monkeypatch: pytest.MonkeyPatch, *, button: bool
) -> None:
    pressed = Pressed(monkeypatch, None, button=button)
    assert await vars(DiscordAdapter)["_pressed"](pressed.adapter, pressed.interaction)
    assert pressed.answered == [("stored", {}), ("seen", {}) if button else ("/stop all", ALONE)]


@pytest.mark.parametrize("button", [True, False])
async def test_who_pressed_what_could_not_be_stored_reads_so_alone(
    monkeypatch: pytest.MonkeyPatch, *, button: bool
) -> None:
    refused = NotAccepted("The storage is away.", NotAcceptedCode.STORAGE_AWAY)
    pressed = Pressed(monkeypatch, refused, button=button)
    assert not await vars(DiscordAdapter)["_pressed"](pressed.adapter, pressed.interaction)
    assert pressed.answered == [("The storage is away.", ALONE)]


@pytest.mark.parametrize("refused", [None, NotAccepted("The storage is away.", NotAcceptedCode.STORAGE_AWAY)])
async def test_a_press_that_was_kept_is_done_with_when_it_is_stored_and_nobody_is_answered(
    monkeypatch: pytest.MonkeyPatch, refused: NotAccepted | None
) -> None:
    """Its person has been told long ago, and Discord takes no answer to it any more."""
    pressed = Pressed(monkeypatch, refused, button=True)
    pressed.adapter.port.client = SimpleNamespace(user=None)
    monkeypatch.setattr(of_client, "interaction_of", gives(pressed.interaction))
    again = vars(DiscordAdapter)["again"](pressed.adapter, b'{"kind": "INTERACTION_CREATE", "data": {}}')
    if refused is None:
        await again
        assert pressed.answered == [("stored", {})]
    else:
        with pytest.raises(NotAccepted):
            await again
        assert pressed.answered == []


# ---------------------------------------------------------------------- connections


class Client:
    """A client of one connection."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.resumes = None

    async def close(self) -> None:
        self.done.append("closed")

    async def let_go(self) -> None:
        self.done.append("let go")


@pytest.mark.parametrize("let_in", [True, False])
async def test_a_connection_that_ends_keeps_the_way_out_only_if_it_is_the_one_that_sends(
    monkeypatch: pytest.MonkeyPatch, *, let_in: bool
) -> None:
    client = Client()
    monkeypatch.setattr("adapters.discord.client.made_client", gives(client))
    adapter = SimpleNamespace(
        _settings=SimpleNamespace(shards=0), _intake=SimpleNamespace(several=False), _clients={}, _handled={None: 3},
        held=SimpleNamespace(may_open=None), _sending=None, _listening=None,
    )  # fmt: skip

    async def lets_in(*_: object, **__: object) -> None:
        adapter._sending = client if let_in else None
        raise AdapterDown("it ends")

    adapter._let_in = lets_in
    with pytest.raises(AdapterDown):
        await vars(DiscordAdapter)["_connection"](adapter, lambda: None, None)
    assert client.done == (["closed"] if let_in else ["closed", "let go"])
    assert (adapter._clients, adapter._handled) == ({}, {})


class Asked:
    """What Discord says of how many sessions may begin, and who asks for their turn."""

    def __init__(self, remaining: int = 10, at_once: int = 1) -> None:
        limit = {"remaining": remaining, "reset_after": 7_200_000, "max_concurrency": at_once}
        self.places: list[str] = []
        self.sessions: ShardSessions | None = None
        self.waited: list[int] = []
        self.waits = [0]
        self.limit = (None, None, limit)
        self.sessions = ShardSessions(
            "discord/1", cast("Any", SimpleNamespace(reserve=self._reserve)), cast("Any", None)
        )

    async def _reserve(self, _: str, place: str, __: int) -> int:
        assert self.sessions is not None
        self.places.append(place)
        self.waited.append(self.sessions.waiting)
        wait = self.waits.pop(0)
        if wait < 0:
            raise NotAccepted("away", NotAcceptedCode.STORAGE_AWAY)
        return wait

    async def turn(self, shard: int | None) -> None:
        async def gateway() -> Any:
            return self.limit

        assert self.sessions is not None
        client = SimpleNamespace(shard_id=shard, http=SimpleNamespace(get_bot_gateway=gateway))
        await self.sessions.turn(cast("Any", client))


@pytest.mark.parametrize("at_once", [1, 4])
async def test_connections_wait_in_as_many_lines_as_discord_says(at_once: int) -> None:
    asked = Asked(at_once=at_once)
    asked.waits = [0] * 9
    for shard in (None, *range(8)):
        await asked.turn(shard)
    assert asked.places == [f"starts:{(shard or 0) % at_once}" for shard in (None, *range(8))]


async def test_who_waits_for_a_turn_counts_until_it_has_come_or_cannot() -> None:
    asked = Asked()
    asked.waits = [1, 1, 0, -1]
    await asked.turn(None)
    with pytest.raises(AdapterDown):
        await asked.turn(None)
    assert asked.waited == [1, 1, 1, 1]
    assert asked.sessions is not None
    assert asked.sessions.waiting == 0


async def test_who_may_begin_no_more_today_waits_until_tomorrow() -> None:
    with pytest.raises(AdapterDown) as down:
        await Asked(remaining=0).turn(None)
    assert down.value.wait_seconds == 7_200, "it is told in milliseconds"
    assert "2.0 hours" in str(down.value)


@pytest.mark.parametrize("answer", ["a portal's page", (None, None, {}), (None, None, None)])
async def test_how_many_sessions_may_begin_is_asked_again_where_the_answer_makes_no_sense(answer: Any) -> None:
    asked = Asked()
    asked.limit = answer
    with pytest.raises(AdapterDown, match="could not be understood") as down:
        await asked.turn(None)
    assert not down.value.fatal


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (CallFailed(Fate.REFUSED, "no", cause=Cause.NO_RIGHTS), False),
        (CallFailed(Fate.UNKNOWN, "odd", cause=Cause.UNREADABLE), False),
        (CallFailed(Fate.UNKNOWN, "gone"), True),
        (CallFailed(Fate.TOO_FAST, "wait"), True),
    ],
)
async def test_a_channel_of_which_discord_says_nothing_that_can_be_read_holds_up_nobody(
    error: CallFailed, *, waits: bool
) -> None:
    """The answer may be the same for ever, such as a kind of channel that the library does not know."""

    async def place_of(*_: object) -> Any:
        raise error

    made = SimpleNamespace(_missed=SimpleNamespace(place_of=place_of))
    client = SimpleNamespace(places={}, knows_servers=False, get_channel=gives(None))
    asked = vars(DiscordAdapter)["_asked_for"](made, client, "MESSAGE_CREATE", {"guild_id": "1", "channel_id": "2"})
    if waits:
        with pytest.raises(NotAccepted):
            await asked
    else:
        assert await asked is None


class Leaves:
    """A client that another gateway goes on with, and what is stored of its session."""

    def __init__(self, *open_: bool, away: bool = False) -> None:
        self.closed: list[tuple[int, int]] = []
        self.stored: list[tuple[str, str]] = []
        self.away = away
        told: dict[str, Any] = {"session_id": "s1", "sequence": 9, "gateway": "wss://there"}
        self.sockets = [
            SimpleNamespace(open=one, close=self._closes(number), **told) for number, one in enumerate(open_)
        ]

    def _closes(self, number: int) -> Any:
        async def close(*, code: int) -> None:
            self.closed.append((number, code))

        return close

    async def _skip(self, _: str, cursor: tuple[str, str]) -> None:
        if self.away:
            raise NotAccepted("away", NotAcceptedCode.STORAGE_AWAY)
        self.stored.append(cursor)

    async def leave(self, upto: Upto | int, *, ready: bool = True, resumes: object = None) -> None:
        client = SimpleNamespace(
            shard_id=2, resumes=resumes, is_ready=gives(ready), sockets=gives(self.sockets),
            ws=SimpleNamespace(session_id="s1", sequence=9, gateway="wss://there"),
        )  # fmt: skip
        sessions = ShardSessions("discord/1", cast("Any", SimpleNamespace(skip=self._skip)), gives(upto))
        await sessions.leave(cast("Any", client))


@pytest.mark.parametrize("away", [False, True])
async def test_a_session_that_is_left_stays_one_that_can_be_gone_on_with(away: bool) -> None:
    """The code 1000 would end it: the next gateway would have to read all histories."""
    leaves = Leaves(True, False, True, away=away)
    await leaves.leave(Upto.NOTHING)
    assert leaves.closed == [(0, HANDED), (2, HANDED)]
    assert leaves.stored == ([] if away else [("session:2", "")])


@pytest.mark.parametrize("upto", [Upto.NOTHING, Upto.ALL, Upto.AS_BEFORE, 5])
async def test_of_what_has_only_begun_nothing_is_stored(upto: Upto | int) -> None:
    leaves = Leaves(True)
    await leaves.leave(upto, ready=False)
    assert (leaves.stored, leaves.closed) == ([], [(0, HANDED)])


async def test_how_far_a_session_is_that_somebody_else_began_is_stored_before_it_is_told_of_anything() -> None:
    """Whoever goes on with it is never told that it is ready: the next one would read all histories."""
    leaves = Leaves(True)
    await leaves.leave(5, ready=False, resumes="the session")
    assert leaves.stored == [("session:2", '["s1", 5, "wss://there"]')]


@pytest.mark.parametrize("under_way", [True, False])
@pytest.mark.parametrize("threads", [True, False])
async def test_a_mention_that_is_just_taken_into_a_thread_of_its_own_is_told_of_the_storage_there_alone(
    monkeypatch: pytest.MonkeyPatch, *, threads: bool, under_way: bool
) -> None:
    made = DiscordAdapter(Discord(token=SecretStr("N3.x.y"), auto_threads=threads), cast("Any", Told()), SystemClock())
    made.port.client = cast("Any", SimpleNamespace(user=SimpleNamespace(id=1)))
    monkeypatch.setattr(of_client, "message_of", gives(None))
    monkeypatch.setattr(of_adapter, "read_message", gives(SimpleNamespace(for_us=True)))
    came = Brought("MESSAGE_CREATE", {}, None, 1)
    made._came.append(came)
    made._under_way = {id(came)} if under_way else set()
    told: list[object] = []

    def waiting(_: object, found: Iterable[Callable[[], object]]) -> None:
        told.extend(read() for read in found)

    made._way = cast("Any", SimpleNamespace(waiting=waiting))
    made._waiting(NotAccepted("away", NotAcceptedCode.STORAGE_AWAY))
    assert [one is None for one in told] == [threads and under_way]


class Told(SimpleNamespace):
    several = False
