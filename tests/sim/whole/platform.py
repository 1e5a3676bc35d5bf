"""The simulated service as a platform of the program: its section, its adapter and its port. Nothing of it touches a network."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from aiohttp import web
from typing_extensions import override

from adapters.contract.chat import (
    Ability,
    AdapterSight,
    ChatAddress,
    ChatIntake,
    ChatKind,
    ChatMessage,
    ChatOrigin,
    ChatPerson,
    ChatPort,
    Content,
    Piece,
    Traits,
)
from adapters.contract.intake import WayIn, Whence, raw_of
from adapters.contract.notaccepted import NotAccepted
from adapters.contract.pacing import Rate
from adapters.contract.platforms import Asker, Built, ChatSection, Pieces, Platform, SetupResult
from adapters.contract.supervision import AdapterDown
from adapters.text.flatten import flatten
from adapters.text.parse import read
from adapters.text.split import split
from adapters.text.styled import Styled
from agent_core.ports import Clock
from tests.sim.whole.service import Event, Service

NAME = "sim"
TEXT_LIMIT = 40
"""Characters of a part: so few that answers have several, though what the model says is short."""
RATE = Rate(burst=20, interval_ms=50)
CHANNEL = "events"


@dataclass
class World:
    """What the adapter of this incarnation works with; set before it is built."""

    service: Service
    draw: random.Random


WORLD: list[World] = []


def pieces(markdown: str, *, growing: bool, plain: bool = False) -> tuple[Piece, ...]:
    """See `ChatPort.parts`."""
    texts = split(flatten(read(markdown, growing=growing, plain=plain)), TEXT_LIMIT, len)
    return tuple(text for text in texts if text.text.strip())


class SimPort(ChatPort):
    """Implements `adapters.contract.chat.ChatPort`."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._service = world.service
        self._draw = world.draw
        self._clock = clock

    @property
    def ability(self) -> Ability:
        return self._service.ability

    def traits(self, address: ChatAddress) -> Traits:
        del address
        return Traits(drafts=False, preview_seconds=0.5)

    parts = staticmethod(pieces)

    @staticmethod
    def shorter(body: Styled, most_units: int) -> tuple[Styled, ...]:
        return split(body, most_units)

    async def create(self, address: ChatAddress, content: Content, key: str) -> str:
        service, chat = self._service, address.chat
        return await service.call(
            "create",
            chat,
            self._draw,
            lambda: service.create(chat, content, key, self._clock.monotonic()),
            formed=bool(content.body.spans),
        )

    async def edit(self, address: ChatAddress, platform_id: str, content: Content) -> None:
        service, chat = self._service, address.chat
        formed = bool(content.body.spans)
        await service.call("edit", chat, self._draw, lambda: service.edit(chat, platform_id, content), formed=formed)

    async def delete(self, address: ChatAddress, platform_id: str) -> None:
        service, chat = self._service, address.chat
        await service.call("delete", chat, self._draw, lambda: service.delete(chat, platform_id))

    async def typing(self, address: ChatAddress) -> None:
        await self._service.call("typing", address.chat, self._draw, lambda: "")

    async def find(self, address: ChatAddress, content: Content, key: str, since_ms: int) -> str | None:
        del content, since_ms
        if self._service.ability is Ability.NONE:
            return None
        service, chat = self._service, address.chat
        return await service.call("find", chat, self._draw, lambda: service.find(chat, key)) or None

    async def private(self, person: str) -> str:
        return f"p-{person}"

    async def fetch(self, ref: str, limit_bytes: int) -> bytes:
        raise NotImplementedError(f"nobody sends files here: {ref}, {limit_bytes}")


def read_event(event: Event) -> ChatMessage:
    """What an event means for us."""
    origin = ChatOrigin(
        address=ChatAddress(NAME, BOT_ACCOUNT, event.chat),
        kind=ChatKind.PRIVATE if event.private else ChatKind.GROUP,
        person=ChatPerson(event.person, event.person),
        message=event.message,
    )
    return ChatMessage(
        origin=origin,
        key=f"{event.chat}:{event.message}",
        text=event.pressed or event.text,
        command="press" if event.pressed else event.command,
        for_us=event.mentions or bool(event.pressed),
    )


BOT_ACCOUNT = "bot"


class SimAdapter:
    """Implements `adapters.contract.supervision.Supervised`."""

    account = BOT_ACCOUNT
    name = f"{NAME}/{BOT_ACCOUNT}"

    def __init__(self, world: World, intake: ChatIntake, clock: Clock) -> None:
        self._world = world
        self._intake = intake
        self._clock = clock
        self.port: ChatPort = SimPort(world, clock)
        self._way = WayIn(self.name, intake, clock)

    def opened(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def run(self, up: Callable[[], None]) -> None:
        """Take each event; when it is stored, and only then, the service is told."""
        service, draw = self._world.service, self._world.draw
        up()
        try:
            while True:
                event = await service.waiting(draw)
                await asyncio.sleep(draw.choice((0.0, 0.01, 0.05)))
                await self._take(event)
                service.confirm(event)
        except ConnectionResetError as error:
            raise AdapterDown("The service cannot be reached.") from error

    async def _take(self, event: Event) -> None:
        message = read_event(event)
        while True:
            try:
                await self._way.take(
                    lambda: raw_of("", vars(event), Whence),
                    lambda: message,
                    self._act,
                    key=lambda read: read.key,
                    cursor=(CHANNEL, str(event.number)),
                )
            except NotAccepted as refused:
                self._way.waiting(refused, [lambda: message])
                await asyncio.sleep(1.0)
            else:
                return

    async def _act(self, message: ChatMessage) -> bool:
        await self._intake.receive(message, (CHANNEL, message.origin.message[1:]))
        return True

    async def stand(self) -> None:
        """Nothing is needed to send."""

    async def again(self, body: bytes) -> None:
        raise NotImplementedError(f"nothing unreadable comes here: {body[:40]!r}")

    @property
    def silent_seconds(self) -> float:
        return 0.0

    @property
    def deaf_after_seconds(self) -> float:
        return 60.0

    def routes(self) -> list[web.RouteDef]:
        return []

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight:
        return AdapterSight(self.name, state, words, self._way.age_seconds, outbound)


class Sim(ChatSection):
    """It is always on."""

    @property
    @override
    def configured(self) -> bool:
        return True

    @override
    def build(self, intake: ChatIntake, clock: Clock) -> Built:
        return Built(SimAdapter(WORLD[-1], intake, clock), RATE, lambda _: RATE)

    @override
    def ask(self, asker: Asker) -> SetupResult | None:
        raise NotImplementedError("nobody sets it up")


def _pieces() -> Pieces:
    return pieces


PLATFORM = Platform(name=NAME, title="Sim", section=Sim, pieces=_pieces, chat_id=r"[gp].+", counts_messages=True)
