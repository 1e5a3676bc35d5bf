"""The law of the way in: what is confirmed is in a table, whatever is raised wherever; and nothing of it is answered twice.

On all three platforms, by every way by which they bring something. An exception is raised at each place in turn (`injection`): at each
call of a function of the way in, and at each return to it after it had waited; in the tests of every day at each third one, in `make soak` at
all. The library, the arrivals, the hub's taking in and the SQLite store are the real ones; only the network is not there.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from pydantic import SecretStr

import adapters.contract.intake as intake
from adapters.contract.intake import WayIn
from adapters.contract.notaccepted import NotAccepted
from adapters.contract.pacing import Rate
from adapters.contract.supervision import Supervised
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.platform import Discord
from adapters.slack.adapter import SlackAdapter
from adapters.slack.platform import Slack
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.inbound import Me
from adapters.telegram.platform import Telegram
from adapters.telegram.webhook import SECRET_HEADER
from agent_core.ports import SystemClock, SystemIds
from agent_core.retry import INTAKE
from agent_core.store.inbox.rows import UnreadState
from agent_core.store.store import Store
from gateway.chats.arrival import Arrivals
from gateway.chats.commandintake import CommandIntake
from gateway.chats.unread import UnreadBox
from gateway.commands.carrying import ChatCommands
from gateway.commands.messages import Messages
from gateway.delivery.accounts import PlatformAccount
from gateway.delivery.outbox import Outbox
from gateway.delivery.surfaces import Surfaces
from gateway.people.access import rules
from gateway.people.members import AccountRules, Members
from gateway.queues.languages import LanguageRules, Languages
from gateway.sessions.runner import Runner
from tests.chats.injection import Injected, Places, Thrown, raising
from tests.gateway.rig import Rig, gateway

ON_THE_WAY = (
    "adapters/telegram/adapter.py",
    "adapters/telegram/inbound.py",
    "adapters/telegram/webhook.py",
    "adapters/discord/adapter.py",
    "adapters/discord/client.py",
    "adapters/discord/inbound.py",
    "adapters/discord/missed.py",
    "adapters/slack/adapter.py",
    "adapters/slack/door.py",
    "adapters/slack/inbound.py",
    "adapters/slack/missed.py",
    "adapters/slack/sockets.py",
    "adapters/contract/backlog.py",
    "adapters/contract/intake.py",
    "gateway/chats/arrival.py",
    "gateway/chats/commandintake.py",
    "gateway/people/members.py",
    "gateway/commands/messages.py",
    "gateway/people/routing.py",
    "gateway/people/access.py",
    "gateway/queues/inbox.py",
    "gateway/people/directory.py",
    "gateway/people/linking.py",
    "gateway/chats/arrival.py",
    "gateway/chats/unread.py",
    "gateway/queues/loglines.py",
)
IN_THE_HUB = (
    *(f"Accepting.{name}" for name in ("accept", "new_message", "put", "owned", "_take_in", "_put", "_check_room")),
    "Queues.at", "Queues.own",
)  # fmt: skip
LOCKS = ("InOrder.",)
"""As little as from `asyncio.Lock`, nobody can be saved from a lock that fails as it lets in the next."""


@dataclass
class Way:
    """One way by which a platform brings something."""

    adapter: Supervised
    bring: Callable[[Any], Awaitable[bool]]
    """Bring it once; whether the platform was told that it was taken."""
    make: Callable[[int], Any]
    """Something of a person's, number n, each in a chat of its own."""
    key: Callable[[int], str]
    odd: Callable[[int], Any]
    """Something that nobody can read."""
    arrivals: Arrivals
    store: Store


def nothing(*_: object) -> None:
    """In place of what would go on."""


def never_shown(_: Surfaces, work: Coroutine[Any, Any, None], __: str) -> None:
    """Nobody looks at these chats."""
    work.close()


async def nobody_cut(_: object) -> None:
    """Nobody is joined with anybody."""


@asynccontextmanager
async def arrivals_of(folder: Path) -> AsyncGenerator[tuple[Arrivals, Rig, Outbox]]:
    async def reply(*_: object) -> None:
        raise AssertionError("no turn runs here")

    with pytest.MonkeyPatch.context() as kept:
        kept.setattr(Runner, "_begin", nothing)  # what is taken in stays as it is
        kept.setattr(CommandIntake, "_begin", nothing)  # likewise
        kept.setattr(Surfaces, "begin", never_shown)
        async with gateway(folder, reply) as rig:
            clock = SystemClock()
            ids = SystemIds(clock)
            outbox = Outbox(rig.store, clock, ids.seed(), rig.hub.tell)
            hub, store = rig.hub, rig.store
            members = Members(store, clock, ids, nobody_cut)
            await members.open()
            languages = Languages(LanguageRules(), hub.queues, store)
            messages = Messages(hub.accepting, hub.stopping, members, outbox, None, store, clock, languages)
            carrying = ChatCommands(
                no_handlers,
                store,
                outbox,
                clock,
                members.directory.pointed,
                nothing,
                lambda _: None,
                lambda _request, _words, _undone: None,
                languages,
            )
            commands = CommandIntake(hub.accepting, members, carrying, clock)
            unread = UnreadBox(store, clock)
            arrivals = Arrivals(
                members, messages, commands, unread, hub.queues, outbox, store, clock, languages=languages
            )
            yield arrivals, rig, outbox


async def no_handlers() -> dict[str, Any]:
    return {}


def opened(arrivals: Arrivals, outbox: Outbox, adapter: Supervised) -> None:
    platform, account = adapter.name.split("/")
    intake: Any = arrivals
    intake._members.add_account(
        adapter.name, AccountRules(rules((), (), open_to_all=True, pairing=False), per_minute=0)
    )
    outbox.open_account(platform, account, PlatformAccount(adapter.port, Rate(1000, 1), lambda _: Rate(1000, 1)))


async def accepted(work: Awaitable[object]) -> bool:
    """Whether it came back."""
    try:
        await work
    except (NotAccepted, Injected, asyncio.CancelledError):
        return False
    return True


# --- Telegram ---


def update(n: int, **more: object) -> dict[str, Any]:
    sender = {"id": n, "first_name": "Ada", "is_bot": False}
    said = {"message_id": n, "date": 1, "chat": {"id": n, "type": "private"}, "from": sender, "text": f"say {n}"}
    return {"update_id": n, "message": {**said, **more}}


def odd_update(n: int) -> dict[str, Any]:
    return update(n, message_id="no number")


def telegram(arrivals: Arrivals) -> TelegramAdapter:
    settings = Telegram(
        token=SecretStr("7:token"),
        api_base="http://127.0.0.1:9",
        webhook_url="http://x",
        webhook_secret=SecretStr("word"),
    )
    adapter = TelegramAdapter(settings, arrivals, SystemClock())
    adapter._me = Me("7", "our_bot")
    return adapter


def by_polling(arrivals: Arrivals, store: Store) -> Way:
    adapter = telegram(arrivals)
    return Way(
        adapter, lambda one: accepted(adapter._take(one)), update, lambda n: f"{n}:{n}", odd_update, arrivals, store
    )


def by_webhook(arrivals: Arrivals, store: Store) -> Way:
    adapter = telegram(arrivals)

    async def bring(one: Any) -> bool:
        request = called(json.dumps(one).encode(), {SECRET_HEADER: "word"})
        try:
            return (await adapter._webhook.call(request)).status == 200
        except (Injected, asyncio.CancelledError):
            return False  # aiohttp makes a 500 of it

    return Way(adapter, bring, update, lambda n: f"{n}:{n}", odd_update, arrivals, store)


def called(body: bytes, headers: dict[str, str]) -> web.Request:
    request = make_mocked_request("POST", "/", headers={"Content-Type": "application/json", **headers})
    request._read_bytes = body
    return request


# --- Discord ---


def discord_message(n: int, **more: object) -> dict[str, Any]:
    author = {"id": str(n), "username": "ada", "discriminator": "0", "avatar": None}
    rest: dict[str, Any] = {
        "attachments": [],
        "embeds": [],
        "mentions": [],
        "mention_roles": [],
        "pinned": False,
        "type": 0,
        "tts": False,
    }
    said = {"id": str(n), "channel_id": str(n), "author": author, "content": f"say {n}", "mention_everyone": False}
    return {**rest, **said, "timestamp": "2026-01-01T00:00:00+00:00", "edited_timestamp": None, **more}


def by_gateway(arrivals: Arrivals, store: Store) -> Way:
    from adapters.discord.client import made_client

    adapter = DiscordAdapter(Discord(token=SecretStr("N3.x.y")), arrivals, SystemClock())
    client: Any = made_client(Discord(token=SecretStr("N3.x.y")), adapter, lambda: None, adapter.held.may_open)

    async def no_history(*_: object, **__: object) -> list[object]:
        return []

    async def fetched(number: int) -> object:
        return client.get_partial_messageable(number)

    client.http.logs_from, client.fetch_channel = no_history, fetched
    adapter.port.client = client
    parse = client._connection.parsers["MESSAGE_CREATE"]

    async def bring(one: Any) -> bool:
        try:
            parse(one)
            event = adapter._queue.get_nowait()
        except (Injected, asyncio.CancelledError):
            return False  # the connection ends, and the next one reads the history
        return await accepted(adapter._handle(client, event))

    return Way(
        adapter,
        bring,
        discord_message,
        lambda n: f"{n}:{n}",
        lambda n: discord_message(n, author="nobody"),
        arrivals,
        store,
    )


# --- Slack ---


def slack_event(n: int, **more: object) -> dict[str, Any]:
    ts = f"{int(time.time())}.{n:06d}"
    event = {"type": "message", "channel": f"D{n}", "channel_type": "im", "user": f"U{n}", "text": f"say {n}", "ts": ts}
    return {"type": "event_callback", "event_id": f"Ev{n}", "event": {**event, **more}}


def slack(arrivals: Arrivals, *, socket: bool) -> SlackAdapter:
    token = "xapp-1" if socket else ""
    settings = Slack(
        bot_token=SecretStr("xoxb-1-2-x"),
        app_token=SecretStr(token) if token else None,
        signing_secret=SecretStr("word"),
        api_base="http://127.0.0.1:9/",
    )
    adapter = SlackAdapter(settings, arrivals, SystemClock())
    adapter._me = adapter._missed.me = "U0"
    adapter._names = {f"U{n}": "Ada" for n in range(10_000)}
    adapter._missed._gap_ms = 0
    return adapter


class Wire:
    """The end of a socket."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send_str(self, text: str) -> None:
        self.sent.append(text)


def by_socket(arrivals: Arrivals, store: Store) -> Way:
    from adapters.slack.sockets import SocketLink, Sockets

    adapter = slack(arrivals, socket=True)
    sockets = Sockets(1, adapter._socket_url, adapter._take_in)

    async def bring(one: Any) -> bool:
        wire: Any = Wire()
        try:
            sockets._frame(SocketLink(wire), json.dumps({"envelope_id": "e1", "type": "events_api", "payload": one}))
        except (Injected, asyncio.CancelledError):
            return False  # the socket ends, and what was missed is read
        await asyncio.gather(*sockets._tasks, return_exceptions=True)
        return bool(wire.sent)

    return Way(
        adapter, bring, slack_event, _slack_key, lambda n: slack_event(n, text=5, user={}, ts="x"), arrivals, store
    )


def _slack_key(n: int) -> str:
    return f"D{n}:"


def by_events(arrivals: Arrivals, store: Store) -> Way:
    adapter = slack(arrivals, socket=False)
    (route,) = adapter.routes()

    async def bring(one: Any) -> bool:
        body, at = json.dumps(one), str(int(time.time()))
        mark = hmac.new(b"word", f"v0:{at}:{body}".encode(), hashlib.sha256).hexdigest()
        request = called(body.encode(), {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={mark}"})
        try:
            return (await route.handler(request)).status == 200
        except (Injected, asyncio.CancelledError):
            return False

    return Way(
        adapter, bring, slack_event, _slack_key, lambda n: slack_event(n, text=5, user={}, ts="x"), arrivals, store
    )


WAYS: dict[str, Callable[[Arrivals, Store], Way]] = {
    "telegram by polling": by_polling,
    "telegram by webhook": by_webhook,
    "discord": by_gateway,
    "slack by socket": by_socket,
    "slack by events": by_events,
}


@pytest.fixture(params=sorted(WAYS))
async def way(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Way]:
    monkeypatch.setattr(intake, "INTAKE", replace(INTAKE, first=0.0))
    monkeypatch.setattr("adapters.slack.adapter.SETTLE_SECONDS", 0.0)
    async with arrivals_of(tmp_path) as (arrivals, rig, outbox):
        made = WAYS[request.param](arrivals, rig.store)
        opened(arrivals, outbox, made.adapter)
        yield made


async def rows_of(way: Way, n: int) -> int:
    """How many messages of number n are stored."""
    from sqlalchemy import func, select

    from agent_core.store import tables as t

    key = t.inbox.c.platform_key.startswith(way.key(n), autoescape=True)
    return int((await way.store.asks.all(select(func.count()).where(key)))[0][0])


async def kept_of(way: Way, n: int) -> int:
    """How much of number n is kept raw."""
    rows = await way.store.unread.waiting("another")
    return sum(f'say {n}"' in row.body.decode() for row in rows)


Raising = Callable[[Way, int, type[BaseException]], AbstractContextManager[Places]]


def at_a_call(_: Way, number: int, error: type[BaseException]) -> AbstractContextManager[Places]:
    return raising(number, ON_THE_WAY, IN_THE_HUB, error, spared=LOCKS)


@contextmanager
def at_an_await(way: Way, number: int, error: type[BaseException]) -> Generator[Places]:
    adapter: Any = way.adapter
    places, taking, plain = Places(), adapter._way, WayIn.take

    async def take(*args: Any, **kwargs: Any) -> None:
        await Thrown(plain(taking, *args, **kwargs), number, places, error)

    taking.take = take
    try:
        yield places
    finally:
        del taking.take


@pytest.mark.parametrize("error", [Injected, asyncio.CancelledError])
@pytest.mark.parametrize("somewhere", [at_a_call, at_an_await])
async def test_whatever_is_raised_wherever_what_is_confirmed_is_in_a_table(
    way: Way, somewhere: Raising, error: type[BaseException]
) -> None:
    step = 3 if somewhere is at_a_call and "TESTS_ALL_PLACES" not in os.environ else 1
    n, places = 1000, -(len(way.adapter.name) + (error is Injected)) % step
    while True:
        n, places = n + 1, places + step
        one = way.make(n)
        with somewhere(way, places, error) as met:
            confirmed = await way.bring(one)
        if not met.hit:
            break
        stored, kept = await rows_of(way, n), await kept_of(way, n)
        assert not confirmed or stored + kept >= 1, f"confirmed and nowhere: {met.hit}"
        assert await way.bring(one), f"it is not taken when it comes again: {met.hit}"
        assert await rows_of(way, n) + await kept_of(way, n) >= 1, met.hit
        for row in await way.store.unread.waiting("another"):
            await way.adapter.again(row.body)
            await way.store.unread.change(replace(row, state=UnreadState.DONE))
        assert await rows_of(way, n) == 1, f"not once: {met.hit}"
    assert places > (1 if somewhere is at_an_await else 40), "hardly any place was tried"


async def test_what_nobody_can_read_is_kept_and_holds_nobody_up(way: Way) -> None:
    assert await way.bring(way.odd(5))
    rows = await way.store.unread.waiting("another")
    assert [row.state for row in rows] == [UnreadState.WAITING]
    assert json.loads(rows[0].body)
    assert way.adapter.sight("up", "", None).inbound_age_seconds is not None
    assert await way.bring(way.odd(5))
    assert len(await way.store.unread.waiting("another")) == 1, "told again, it is kept once"
    assert await way.bring(way.make(6))
    assert await rows_of(way, 6) == 1


def by_the_bot(name: str, n: int) -> list[Any]:
    """Messages of our own, as the platform tells them: one that was sent, changed, and taken back."""
    if name == "discord":
        author = {"id": "1", "username": "bot", "discriminator": "0", "avatar": None, "bot": True}
        return [discord_message(n, author=author)]
    ours: dict[str, Any] = {"user": "U0", "bot_id": "B0", "ts": "1.000000"}
    gone = {"subtype": "tombstone", "ts": "1.000000", "user": "USLACKBOT"}
    return [
        slack_event(n, **ours),
        slack_event(n, subtype="message_changed", message=ours, previous_message=ours),
        slack_event(n, subtype="message_deleted", deleted_ts="1.000000", previous_message=ours),
        slack_event(n, subtype="message_changed", message=gone, previous_message=ours),
    ]


@pytest.mark.parametrize("name", ["discord", "slack by socket", "slack by events"])
async def test_what_a_program_says_is_confirmed_and_nobody_reads_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of what a platform tells is our own, and whoever has the connection is told it for all gateways."""

    def read(*_: object, **__: object) -> Any:
        raise AssertionError("it is read")

    async with arrivals_of(tmp_path) as (arrivals, rig, outbox):
        way = WAYS[name](arrivals, rig.store)
        opened(arrivals, outbox, way.adapter)
        with monkeypatch.context() as patched:
            for place in ("discord.client.message_of", "slack.adapter.read_body"):
                patched.setattr(f"adapters.{place}", read)
            for one in by_the_bot(name, 5):
                assert await way.bring(one)
        assert await way.store.unread.waiting("another") == [], "nor is it kept for later"
        assert await way.bring(way.make(6))
        assert await rows_of(way, 6) == 1


async def test_what_could_not_be_stored_is_not_confirmed_and_not_counted_as_come_in(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_core.store.store import StorageUnavailable

    async def away(*_: object, **__: object) -> None:
        raise StorageUnavailable("away")

    seven = way.make(7)  # once: its time is that of the platform's clock
    with monkeypatch.context() as broken:
        broken.setattr(way.store.writer, "submit", away)
        broken.setattr(way.store.writer, "alone", away)
        assert not await _soon(way.bring(seven))
        assert way.adapter.sight("up", "", None).inbound_age_seconds is None
    assert await way.bring(seven)
    assert await rows_of(way, 7) == 1


async def _soon(work: Awaitable[bool]) -> bool:
    """Whether it was confirmed; what goes on waiting for the storage did not confirm it."""
    try:
        async with asyncio.timeout(1.0):
            return await work
    except TimeoutError:
        return False


ODD_UPDATES: list[object] = [
    "no object",
    None,
    [],
    {},
    {"update_id": "a"},
    {"update_id": None, "message": {}},
    {"update_id": 1, "message": {"message_id": 1}},
    update(2, chat={"id": "3", "type": "private"}),
    update(3, **{"from": {"id": "x"}}),
    update(4, **{"from": {"id": True}}),
    update(5, date=10**15),
    update(6, entities=[{"type": "bot_command"}]),
    update(7, entities=[{"type": "mention", "offset": 10**30, "length": 1}]),
    update(8, migrate_to_chat_id="far"),
    update(9, photo=[5]),
    update(10, document={"file_id": None}),
    update(11, text="\ud800"),
    update(12, text="\x00" * 10),
    update(13, text="x" * 2_000_000),
    update(14, reply_to_message={"from": {}, "text": "y"}),
    {"update_id": 15, "callback_query": {"id": 5, "data": "d", "from": {"id": 1}, "message": update(1)["message"]}},
    {"update_id": 16, "callback_query": {"data": "d", "message": {"chat": {}}}},
    {"update_id": 17, "edited_message": {"message_id": []}},
    {"update_id": "18", "message": update(18)["message"]},
    {"update_id": 19, "message_reaction": {"chat": 5}},
    {"update_id": 20, "chat_member": {}},
]


@pytest.mark.parametrize("number", range(len(ODD_UPDATES)))
async def test_whatever_telegram_brings_is_taken_kept_or_rightly_left_and_blocks_nothing(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "INTAKE", replace(INTAKE, first=0.0))
    async with arrivals_of(tmp_path) as (arrivals, rig, outbox):
        way = by_polling(arrivals, rig.store)
        opened(arrivals, outbox, way.adapter)
        assert await way.bring(ODD_UPDATES[number])
        assert await way.bring(ODD_UPDATES[number])
        assert len(await rig.store.unread.waiting("another")) <= 1
        assert await way.bring(way.make(1000))
        assert await rows_of(way, 1000) == 1


ODD_EVENTS: list[object] = [
    None,
    "text",
    [1],
    {},
    {"event": 5},
    {"event": {"type": "message"}},
    slack_event(1, ts=5),
    slack_event(2, ts="not.a.number"),
    slack_event(3, channel=None),
    slack_event(4, user=["U1"]),
    slack_event(5, files=[5]),
    slack_event(6, files=[{"size": "many"}]),
    slack_event(7, subtype="message_changed", message=5),
    slack_event(8, subtype="message_deleted", deleted_ts=None),
    slack_event(9, text="\ud800 \x00"),
    slack_event(10, ts="99999999999.000001"),
    {"type": "block_actions", "actions": 5},
    {"type": "block_actions", "actions": [{"value": "v"}], "channel": {"id": "D1"}},
    {"command": "/outspoken"},
    {"event": {"type": "agent_session_stopped", "channel": "D1"}},
    {"event": {"type": "app_home_opened", "tab": "messages"}},
    {"event": {"type": "reaction_added", "item": 5}},
]


@pytest.mark.parametrize("number", range(len(ODD_EVENTS)))
async def test_whatever_slack_tells_is_taken_kept_or_rightly_left_and_blocks_nothing(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "INTAKE", replace(INTAKE, first=0.0))
    async with arrivals_of(tmp_path) as (arrivals, rig, outbox):
        way = by_socket(arrivals, rig.store)
        opened(arrivals, outbox, way.adapter)
        assert await way.bring(ODD_EVENTS[number])
        assert await way.bring(ODD_EVENTS[number])
        assert len(await rig.store.unread.waiting("another")) <= 1
        assert await way.bring(way.make(1000))
        assert await rows_of(way, 1000) == 1
