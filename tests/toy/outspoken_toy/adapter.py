"""The adapter of the toy platform: what docs/adapters.md walks through. It translates; it decides nothing.

Two halves: `ToyPort` makes single calls, `ToyAdapter` brings events in. Neither retries anything, nor keeps anything that would be
missed after a crash.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass

import structlog
from aiohttp import web
from outspoken_toy.protocol import (
    FILE_LIMIT_BYTES,
    LINE_LIMIT_BYTES,
    PING_SECONDS,
    TEXT_LIMIT,
    Answer,
    Call,
    Event,
    Hello,
    Span,
    Welcome,
)
from pydantic import ValidationError

from adapters.contract.chat import (
    Ability,
    AdapterSight,
    Attachment,
    AttachmentKind,
    CallFailed,
    Cause,
    ChatAddress,
    ChatIntake,
    ChatKind,
    ChatMessage,
    ChatOrigin,
    ChatPerson,
    ChatPort,
    Content,
    ContentKind,
    Fate,
    Piece,
    Traits,
    not_by_edit,
)
from adapters.contract.files import bytes_of
from adapters.contract.intake import WayIn, Whence, raw_of
from adapters.contract.notaccepted import NotAccepted
from adapters.contract.supervision import AdapterDown
from adapters.text.files import lift_long_code
from adapters.text.flatten import flatten
from adapters.text.parse import read
from adapters.text.split import split
from adapters.text.styled import Styled
from agent_core.ports import Clock

log = structlog.get_logger("toy")

PLATFORM = "toy"
ROOM_FOR_LABEL = 160
"""Words that the outbox may put before a part."""
CALL_SECONDS = 10.0
CHANNEL = "events"
REFUSALS = {
    "token": Cause.NOT_LET_IN,
    "form": Cause.FORM,
    "blocked": Cause.BLOCKED,
    "no rights": Cause.NO_RIGHTS,
    "no message": Cause.NO_MESSAGE,
}


@dataclass(frozen=True, slots=True)
class ToySettings:
    """Where the platform is, and who we are there."""

    host: str
    port: int
    token: str
    account: str


# ---------------------------------------------------------------------- out


def pieces(markdown: str, *, growing: bool, plain: bool = False) -> tuple[Piece, ...]:
    """See `ChatPort.parts`. A module's function, so that a worker can do it."""
    blocks = read(markdown, growing=growing, plain=plain)
    blocks, files = (blocks, ()) if growing else lift_long_code(blocks)
    texts = split(flatten(blocks), TEXT_LIMIT - ROOM_FOR_LABEL, len)
    return (*(text for text in texts if text.text.strip()), *files)


class ToyPort(ChatPort):
    """Implements `adapters.contract.chat.ChatPort`."""

    def __init__(self, settings: ToySettings) -> None:
        self._settings = settings

    @property
    def ability(self) -> Ability:
        return Ability.KEYED

    def traits(self, address: ChatAddress) -> Traits:
        del address
        return Traits(drafts=False, preview_seconds=0.5)

    parts = staticmethod(pieces)

    @staticmethod
    def shorter(body: Styled, most_units: int) -> tuple[Styled, ...]:
        return split(body, most_units)

    async def create(self, address: ChatAddress, content: Content, key: str) -> str:
        data = b""
        if content.kind is ContentKind.FILE:
            data = await bytes_of(content, FILE_LIMIT_BYTES, "the toy platform")
        return await self.call(
            Call(
                do="create",
                chat=address.chat,
                thread=address.thread,
                key=key,
                text=content.body.text,
                spans=_spans(content.body),
                buttons=tuple((button.label, button.data) for button in content.buttons),
                reply_to=content.reply_to,
                silent=content.silent,
                file_name=content.file_name if data else "",
                data=base64.b64encode(data).decode(),
            )
        )

    async def edit(self, address: ChatAddress, platform_id: str, content: Content) -> None:
        if content.kind is ContentKind.FILE:
            raise not_by_edit(content.kind)
        buttons = tuple((button.label, button.data) for button in content.buttons)
        text, spans = content.body.text, _spans(content.body)
        await self.call(
            Call(do="edit", chat=address.chat, message=platform_id, text=text, spans=spans, buttons=buttons)
        )

    async def delete(self, address: ChatAddress, platform_id: str) -> None:
        await self.call(Call(do="delete", chat=address.chat, message=platform_id))

    async def typing(self, address: ChatAddress) -> None:
        await self.call(Call(do="typing", chat=address.chat, thread=address.thread))

    async def private(self, person: str) -> str:
        return await self.call(Call(do="private", message=person))

    async def fetch(self, ref: str, limit_bytes: int) -> bytes:
        data = base64.b64decode(await self.call(Call(do="fetch", message=ref)))
        if len(data) > limit_bytes:
            raise CallFailed(Fate.REFUSED, "it is too large", cause=Cause.FILE)
        return data

    async def call(self, call: Call) -> str:
        """Make one call. Raises `CallFailed` with what is known: before the line is out, nothing happened; after it, who knows."""
        sent = False
        try:
            async with asyncio.timeout(CALL_SECONDS), connected(self._settings, listen=False) as (reader, writer):
                writer.write(call.model_dump_json().encode() + b"\n")
                sent = True
                await writer.drain()
                line = await reader.readline()
                answer = Answer.model_validate_json(line)
        except (OSError, TimeoutError, ValidationError) as error:  # a line that is cut short is a lost connection, too
            words = f"the connection was lost ({type(error).__name__})"
            raise CallFailed(Fate.UNKNOWN if sent else Fate.NOT_SENT, words) from error
        if not answer.refused:
            return answer.value
        match answer.refused:
            case "too fast":
                raise CallFailed(Fate.TOO_FAST, "too fast", retry_after=answer.after_seconds)
            case "later":
                raise CallFailed(Fate.NOT_SENT, "the platform is out of order")
            case _:
                raise CallFailed(Fate.REFUSED, answer.refused, cause=REFUSALS[answer.refused])


def _spans(body: Styled) -> tuple[Span, ...]:
    return tuple(Span(start=span.start, end=span.end, style=span.style.value) for span in body.spans)


@asynccontextmanager
async def connected(
    settings: ToySettings, *, listen: bool
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that was let in. Raises OSError, or `CallFailed` if the token is refused."""
    reader, writer = await asyncio.open_connection(settings.host, settings.port, limit=LINE_LIMIT_BYTES)
    try:
        writer.write(Hello(token=settings.token, listen=listen).model_dump_json().encode() + b"\n")
        line = await reader.readline()
        if not line:
            raise ConnectionResetError("the platform hung up")
        if not Welcome.model_validate_json(line).ok:
            raise CallFailed(Fate.REFUSED, "the token is refused", cause=Cause.NOT_LET_IN)
        yield reader, writer
    finally:
        writer.close()


# ---------------------------------------------------------------------- in


def read_event(event: Event, account: str) -> ChatMessage:
    """What an event means for us. Pure."""
    kind = ChatKind.PRIVATE if event.private else ChatKind.GROUP
    origin = ChatOrigin(
        address=ChatAddress(PLATFORM, account, event.chat, event.thread),
        kind=kind,
        person=ChatPerson(event.person.id, event.person.name),
        message=event.message,
        attachments=tuple(
            Attachment(
                AttachmentKind.IMAGE if file.mime.startswith("image/") else AttachmentKind.FILE,
                file.ref,
                file.name,
                file.mime,
                file.size,
            )
            for file in event.files
        ),
        group=event.album,
        unfinished=len(event.text) >= TEXT_LIMIT,
    )
    pressed = event.kind == "press"
    return ChatMessage(
        origin=origin,
        key=f"press:{event.number}" if pressed else f"{event.chat}:{event.message}",
        text=event.text,
        command="press" if pressed else event.command,
        for_us=event.mentions_bot or pressed,
        for_others=event.for_others,
        reply_to_us=event.reply_to_bot,
        edited=event.kind == "edit",
    )


class ToyAdapter:
    """Implements `adapters.contract.supervision.Supervised`."""

    def __init__(self, settings: ToySettings, intake: ChatIntake, clock: Clock) -> None:
        self._settings = settings
        self._intake = intake
        self._clock = clock
        self.account = settings.account
        self.name = f"{PLATFORM}/{settings.account}"
        self.port = ToyPort(settings)
        self._last_life = clock.monotonic()
        self._way = WayIn(self.name, intake, clock)

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Nothing has to be open for sending: each call has a connection of its own."""
        return nullcontext()

    async def run(self, up: Callable[[], None]) -> None:
        """Listen until cancelled, and take each event: when it is stored, and only then, the platform is told."""
        self._last_life = self._clock.monotonic()
        try:
            names = tuple(command.name for command in self._intake.commands())
            await self.port.call(Call(do="menu", names=names))
            async with connected(self._settings, listen=True) as (reader, writer):
                up()
                while line := await reader.readline():
                    self._last_life = self._clock.monotonic()
                    if line.strip():
                        await self._take(line)
                        writer.write(b"taken\n")
                        await writer.drain()
        except CallFailed as error:
            words = "The toy platform refuses the token." if error.cause is Cause.NOT_LET_IN else str(error)
            raise AdapterDown(words, fatal=error.cause is Cause.NOT_LET_IN, wait_seconds=error.retry_after) from error
        except OSError as error:
            raise AdapterDown(f"The toy platform cannot be reached ({error.strerror or error}).") from error
        log.warning("toy.hung_up", account=self.account)
        raise AdapterDown("The toy platform hung up.")

    async def _take(self, line: bytes) -> None:
        """Have an event stored, or, if it cannot be read, kept as it came. While nothing can be stored, nothing after it is taken."""
        while True:
            try:
                await self._way.take(
                    lambda: raw_of("", line.decode("utf-8", "replace"), Whence),
                    lambda: Event.model_validate_json(line),
                    self._act,
                    key=lambda event: read_event(event, self.account).key,
                )
            except NotAccepted:
                await asyncio.sleep(1.0)
                self._last_life = self._clock.monotonic()
            else:
                return

    async def _act(self, event: Event) -> bool:
        await self._intake.receive(read_event(event, self.account), (CHANNEL, str(event.number)))
        return True

    async def stand(self) -> None:
        """Nothing is needed to send."""

    async def again(self, body: bytes) -> None:
        """Take in what was kept."""
        await self._act(Event.model_validate_json(json.loads(body)))

    @property
    def silent_seconds(self) -> float:
        return self._clock.monotonic() - self._last_life

    @property
    def deaf_after_seconds(self) -> float:
        return PING_SECONDS * 5

    def routes(self) -> list[web.RouteDef]:
        return []  # the platform calls nothing at our server

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight:
        return AdapterSight(self.name, state, words, self._way.age_seconds, outbound)
