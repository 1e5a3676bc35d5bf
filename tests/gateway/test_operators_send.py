"""What ``outspoken send`` asks for: stored once under its key, into a chat that may be written to, and told as it is doing. Without a platform."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import Inbound
from adapters.contract.chat import CallFailed, ChatAddress, Fate
from agent_core.store.deliveries.rows import Delivery, DeliveryRow, DeliveryState
from agent_core.store.inbox.rows import Accepted, InboxRow, InboxState
from agent_core.store.store import Damaged, OwnedElsewhere, StorageFull, StorageUnavailable
from gateway.chats.where import NoSuchChat
from gateway.commands.posts import decode_post
from gateway.delivery.outcome import state_of
from gateway.http import sending
from gateway.http.sending import MOST_TEXT, Sending, SendRequest
from gateway.people.routing import Command
from gateway.queues.inbox import encode
from tests.agent_core.turns import gives

KEY = "operators-key"
CHAT, OTHER = ChatAddress("telegram", "1", "7"), ChatAddress("telegram", "1", "8")
PART = DeliveryRow("telegram/1/7/", "inbox:1", "b", 0, 1, b"{}", "h", "k", at=5)


@dataclass
class House:
    """A chat's inbox and outbox in memory."""

    spool: Path
    rows: dict[int, InboxRow] = field(default_factory=dict[int, InboxRow])
    posts: list[Any] = field(default_factory=list[Any])
    states: list[DeliveryState] = field(default_factory=list[DeliveryState])
    """How the one part of a message is doing, look by look; the last stays."""
    trouble: Exception | None = None
    full: bool = False
    waited: list[float] = field(default_factory=list[float])

    async def by_key(self, account: str, key: str) -> InboxRow | None:
        if isinstance(self.trouble, StorageUnavailable):
            raise self.trouble
        return next((one for one in self.rows.values() if (one.account, one.platform_key) == (account, key)), None)

    async def one(self, number: int) -> InboxRow | None:
        return self.rows.get(number)

    async def of(self, origin: str) -> list[Delivery]:
        number = int(origin.removeprefix("inbox:"))
        if number not in self.rows or not self.states:
            return []
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return [Delivery("s", replace(PART, state=state, cause="blocked" if state is DeliveryState.FAILED else ""))]

    async def take(self, inbound: Inbound, command: Command) -> tuple[Accepted, None]:
        if self.trouble is not None:
            raise self.trouble
        number = len(self.rows) + 1
        self.rows[number] = InboxRow(
            number,
            inbound.account,
            inbound.platform_key,
            "s",
            number,
            "command",
            encode(inbound),
            InboxState.NEW,
            None,
            1,
        )
        self.posts.append((inbound, decode_post(command.words)))
        return Accepted(number, "s", number, duplicate=False, state=InboxState.NEW, turn=None), None

    async def find(self, to: str) -> ChatAddress:
        match to:
            case "telegram/7":
                return CHAT
            case "telegram/8":
                return OTHER
            case "telegram/gone":
                raise CallFailed(Fate.REFUSED, "it blocks us")
            case _:
                raise NoSuchChat(f"{to} is none")

    async def find_allowed(self, to: str) -> ChatAddress:
        if to != "news":
            raise NoSuchChat(f"{to} is none that agents may write to")
        return CHAT

    async def change(self, seconds: float) -> None:
        self.waited.append(seconds)

    @asynccontextmanager
    async def calling(self, key: str = KEY) -> AsyncGenerator[TestClient[Any, Any]]:
        store = SimpleNamespace(inbox=self, deliveries=self, sessions=SimpleNamespace(by_key=_none))
        full = SimpleNamespace() if self.full else None
        quotas = SimpleNamespace(
            ledger=SimpleNamespace(whole_room=gives(full)), note=gives(None), words=gives("There is no room.")
        )
        made = Sending(
            cast("Any", store), cast("Any", None), cast("Any", self), cast("Any", quotas),
            cast("Any", SimpleNamespace(records=self)), cast("Any", self), KEY, self.spool,
        )  # fmt: skip
        app = web.Application()
        app.add_routes(made.routes())
        async with TestClient(TestServer(app), headers={"Authorization": f"Bearer {key}"}) as client:
            yield client


async def _none(_: str) -> None:
    return None


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "spool", states=[DeliveryState.WANTED])


async def sent(http: TestClient[Any, Any], **body: Any) -> tuple[int, dict[str, Any]]:
    async with http.post("/api/send", json={"to": "telegram/7", "text": "hello", **body}) as response:
        return response.status, await response.json()


def file(name: str = "a.txt", data: bytes = b"x") -> dict[str, str]:
    return {"name": name, "data": base64.b64encode(data).decode()}


@pytest.mark.parametrize("state", InboxState)
async def test_a_message_under_one_key_is_one_and_another_under_it_is_refused(house: House, state: InboxState) -> None:
    async with house.calling() as http:
        status, first = await sent(http, key="k", files=[file()])
        house.rows[1] = replace(house.rows[1], state=state)
        assert (status, first["state"], first["parts"]) == (200, "pending", 1)
        assert await sent(http, key="k", files=[file()]) == (200, first)
        others: list[dict[str, Any]] = [
            {"text": "hello!"}, {"files": [file(data=b"y")]}, {"files": [file("b.txt")]}, {"files": []},
        ]  # fmt: skip
        for other in others:
            status, told = await sent(http, **{"key": "k", "files": [file()], **other})
            assert (status, told["error"]["param"]) == (409, "key"), other
        assert len(house.posts) == 1
        for _ in range(2):
            await sent(http)
        assert len(house.posts) == 3, "without a key each is one of its own"
    (inbound, post), *_ = house.posts
    assert (inbound.chat.address, post.text) == (CHAT, "hello")
    assert [(path.read_bytes(), name) for path, name in post.files] == [(b"x", "a.txt")]
    assert not list(house.spool.rglob(".part"))


@pytest.mark.parametrize(
    ("to", "agents", "status"),
    [
        ("telegram/7", False, 200),
        ("telegram/9", False, 404),
        ("telegram/gone", False, 502),
        ("news", True, 200),
        ("telegram/7", True, 403),
        ("news", False, 404),
    ],
)
async def test_an_agent_writes_where_agents_may_and_whoever_runs_it_wherever_there_is_a_chat(
    house: House, to: str, agents: bool, status: int
) -> None:
    async with house.calling() as http:
        assert (await sent(http, to=to, agents=agents))[0] == status
    assert len(house.posts) == (status == 200)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"text": "x" * (MOST_TEXT + 1)}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": 7}, "to"),
        ({"key": "k" * 201}, "key"),
        ({"agents": "yes"}, "agents"),
        ({"files": {}}, "files"),
        ({"files": [file(data=b"")]}, "files"),
        ({"files": [{"name": "a", "data": "§§"}]}, "files"),
        *[({"files": [file(name)]}, "files") for name in ("", ".", "..", ".part", "a/b", "a\\b", "a\0b", "ä" * 101)],
    ],
)
async def test_what_cannot_be_sent_is_refused_by_its_name_and_nothing_of_it_is_kept(
    house: House, body: dict[str, Any], param: str
) -> None:
    async with house.calling() as http:
        status, told = await sent(http, **body)
    assert (status, told["error"]["param"]) == (400, param)
    assert not house.posts
    assert not house.spool.exists()


async def test_what_there_is_no_room_for_is_not_sent_and_said_so(house: House) -> None:
    house.full = True
    async with house.calling() as http:
        status, told = await sent(http, files=[file()])
    assert (status, house.posts, house.spool.exists()) == (507, [], False)
    assert "Nothing was sent." in told["error"]["message"]


@pytest.mark.parametrize(
    ("trouble", "status", "again", "words"),
    [
        (StorageUnavailable("away"), 503, "10", "Send it again"),
        (StorageFull("full"), 507, "60", "disk of the gateway is full"),
        (Damaged("rows"), 503, "10", "is damaged"),
        (OwnedElsewhere("s", 2), 503, None, "Another node"),
    ],
)
async def test_what_was_not_stored_is_not_told_as_sent(
    house: House, trouble: Exception, status: int, again: str | None, words: str
) -> None:
    house.trouble = trouble
    async with house.calling() as http, http.post("/api/send", json={"to": "telegram/7", "text": "x"}) as response:
        assert (response.status, response.headers.get("Retry-After")) == (status, again)
        assert words in (await response.json())["error"]["message"]


async def test_a_message_whose_parts_are_not_stored_yet_is_told_so(house: House) -> None:
    house.states = []
    async with house.calling() as http:
        assert (await sent(http))[0] == 503


async def test_how_it_is_doing_is_told_as_soon_as_it_is_over_and_of_such_messages_alone(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.calling() as http:
        await sent(http, key="k")
        house.rows[7] = replace(house.rows[1], id=7, platform_key="7:41")

        async def doing(number: str, wait: str = "") -> tuple[int, dict[str, Any]]:
            path = f"/api/send/{number}{f'?wait={wait}' if wait else ''}"
            async with asyncio.timeout(10), http.get(path) as response:
                return response.status, await response.json()

        assert (await doing("1"))[1] == {"id": "1", "state": "pending", "parts": 1, "cause": ""}
        assert house.waited == []
        for nothing in ("7", "9", "x", "1" * 19):
            assert (await doing(nothing))[0] == 404, "what people wrote is none of it"
        assert (await doing("1", "soon"))[0] == 400
        house.states = [DeliveryState.WANTED, DeliveryState.SENDING, DeliveryState.FAILED]
        monkeypatch.setattr(sending, "LONGEST_WAIT_SECONDS", 5.0)
        assert (await doing("1", "1e9"))[1] == {"id": "1", "state": "failed", "parts": 1, "cause": "blocked"}
        assert len(house.waited) == 2
        assert all(0 < seconds <= sending.LOOK_SECONDS for seconds in house.waited)
        house.states = [DeliveryState.SENT]
        assert (await doing("1", "9"))[1]["state"] == "sent"
        assert len(house.waited) == 2


async def test_nobody_else_sends_or_looks(house: House) -> None:
    async with house.calling("another-key") as http:
        assert (await sent(http))[0] == 401
        async with http.get("/api/send/1") as response:
            assert response.status == 401


def test_no_two_messages_are_taken_for_one_by_what_is_in_them() -> None:
    """Under one key, that would be sent which was asked for first."""
    found = [
        SendRequest("telegram/1", "23", (), ""), SendRequest("telegram/12", "3", (), ""), SendRequest("telegram/123", "", (), ""),
        SendRequest("telegram/1", "2", (("3", b""),), ""), SendRequest("telegram/1", "2", (("", b"3"),), ""), SendRequest("telegram/1", "", (("2", b"3"),), ""),
        SendRequest("telegram/1", "", (("23", b""),), ""),
    ]  # fmt: skip
    assert len({one.digest() for one in found}) == len(found)


@given(st.lists(st.sampled_from(list(DeliveryState)), max_size=4))
def test_a_message_is_as_far_as_the_part_of_it_that_is_least_far(states: list[DeliveryState]) -> None:
    """What is not wanted any more keeps nothing back."""
    parts = [Delivery("s", replace(PART, part=n, state=state, cause=f"why {n}")) for n, state in enumerate(states)]
    told, why = state_of(parts)
    if not states:
        assert (told, why) == ("accepted", "")
    elif DeliveryState.FAILED in states:
        assert (told, why) == ("failed", f"why {states.index(DeliveryState.FAILED)}")
    else:
        over = all(state in (DeliveryState.SENT, DeliveryState.SKIPPED) for state in states)
        assert (told, why) == (("sent", "") if over else ("pending", "why 0"))
