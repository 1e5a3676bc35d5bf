"""The toy platform itself: a server on a loopback port, people who act, a screen to look at, and faults by script."""

from __future__ import annotations

import asyncio
import base64
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from outspoken_toy.protocol import (
    LINE_LIMIT_BYTES,
    PING_SECONDS,
    Answer,
    Call,
    Event,
    File,
    Hello,
    Person,
    Span,
    Welcome,
)

from tests.fakes.common import Bell

BOT = "bot"
TOKEN = "toy-token-1234"
TYPING_SECONDS = 5.0
WRITES = ("create", "edit", "delete", "typing")


@dataclass
class Message:
    """What stands in a chat."""

    id: str
    by: str
    text: str
    thread: str = ""
    spans: tuple[Span, ...] = ()
    buttons: tuple[tuple[str, str], ...] = ()
    reply_to: str = ""
    silent: bool = False
    file_name: str = ""
    data: bytes = b""
    edits: int = 0

    def styled(self, style: str) -> tuple[str, ...]:
        return tuple(self.text[span.start : span.end] for span in self.spans if span.style == style)


@dataclass
class Chat:
    id: str
    private: bool
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    closed: str = ""
    """Why the bot may not write here."""
    typing_until: float = 0.0


class ToyServer:
    """`open` it, let people act, look at `chats`."""

    def __init__(self) -> None:
        self.chats: dict[str, Chat] = {}
        self.menu: tuple[str, ...] = ()
        self.faults: deque[str] = deque()
        """What befalls the next messages that are created."""
        self.writes: list[float] = []
        self._untaken: deque[bytes] = deque()
        self._last = b""
        self._numbers = 0
        self._keys: dict[str, str] = {}
        self._files: dict[str, bytes] = {}
        self._listener: asyncio.StreamWriter | None = None
        self._bell = Bell()
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self.port = 0

    # ------------------------------------------------------------------ people

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def chat(self, name: str, *, private: bool) -> Chat:
        return self.chats.setdefault(name, Chat(name, private))

    def says(
        self,
        chat: Chat,
        person: Person,
        text: str,
        *,
        files: Mapping[str, tuple[bytes, str]] | None = None,
        **more: object,
    ) -> str:
        """A person writes; the message's id."""
        number = self.number()
        attached: list[File] = []
        for name, (data, mime) in (files or {}).items():
            ref = f"file-{number}-{name}"
            self._files[ref] = data
            attached.append(File(ref=ref, name=name, mime=mime, size=len(data)))
        shown = Message(str(number), person.id, text, thread=str(more.get("thread", "")))
        chat.messages[shown.id] = shown
        known = {"number": number, "kind": "message", "chat": chat.id, "private": chat.private, "message": shown.id}
        self._tell(Event.model_validate({**known, "person": person, "text": text, "files": attached, **more}))
        return shown.id

    def edits(self, chat: Chat, message: str, text: str) -> None:
        shown = chat.messages[message]
        shown.text = text
        person = Person(id=shown.by, name=shown.by)
        self._tell(
            Event(
                number=self.number(),
                kind="edit",
                chat=chat.id,
                private=chat.private,
                person=person,
                message=message,
                text=text,
                thread=shown.thread,
            )
        )

    def presses(self, chat: Chat, person: Person, message: str, label: str) -> None:
        self.pressed(chat, person, message, dict(chat.messages[message].buttons)[label])

    def pressed(self, chat: Chat, person: Person, message: str, data: str) -> None:
        """What a person's program sends for a press, whatever it is."""
        shown = chat.messages[message]
        self._tell(
            Event(
                number=self.number(),
                kind="press",
                chat=chat.id,
                private=chat.private,
                person=person,
                message=message,
                text=data,
                thread=shown.thread,
            )
        )

    def again(self) -> None:
        """The last event comes once more."""
        self._send(self._last)

    def oddity(self) -> None:
        """A line comes that is no event."""
        self._send(b'{"number": "none", "kind": 5}\n')

    def deafen(self) -> None:
        """The connection stays open, and nothing comes through it any more."""
        self._listener = None

    def _tell(self, event: Event) -> None:
        self._last = event.model_dump_json().encode() + b"\n"
        self._send(self._last)

    def _send(self, line: bytes) -> None:
        self._untaken.append(line)
        if self._listener is not None:
            self._listener.write(line)
        self._bell.ring()

    async def until(self, condition: Callable[[], bool], within: float) -> None:
        await self._bell.until(condition, within, lambda: str(self.chats))

    # ------------------------------------------------------------------ the wire

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[ToyServer]:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LINE_LIMIT_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self._server.close()
            for talk in self._talks:
                talk.cancel()
            await asyncio.gather(*self._talks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        try:
            with suppress(ConnectionError):
                await self._talk(reader, writer)
        finally:
            self._talks.discard(task)
            if self._listener is writer:
                self._listener = None
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = Hello.model_validate_json(await reader.readline())
        welcome = Welcome(ok=hello.token == TOKEN, bot=BOT)
        writer.write(welcome.model_dump_json().encode() + b"\n")
        if not welcome.ok:
            return
        if hello.listen:
            await self._listen(reader, writer)
        elif line := await reader.readline():
            answer = self._answer(Call.model_validate_json(line))
            self._bell.ring()
            if answer is not None:
                writer.write(answer.model_dump_json().encode() + b"\n")
                await writer.drain()

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._listener = writer
        writer.writelines(self._untaken)
        while True:
            try:
                async with asyncio.timeout(PING_SECONDS):
                    line = await reader.readline()
            except TimeoutError:
                if self._listener is writer:
                    writer.write(b"\n")
                continue
            if not line:
                return
            if self._listener is writer:
                self._untaken.popleft()

    def _answer(self, call: Call) -> Answer | None:
        """What comes of a call; None if its answer is lost, with the connection."""
        if call.do in WRITES:
            self.writes.append(time.monotonic())
        if call.do == "create" and self.faults:
            fault = self.faults.popleft()
            if fault == "reset":
                return None
            if fault == "lost":
                self._do(call)
                return None
            if fault == "503":
                return Answer(refused="later")
            if fault == "form":
                return Answer(refused="form")
            if fault.startswith("flood"):
                return Answer(refused="too fast", after_seconds=float(fault.split()[1]))
        return self._do(call)

    def _do(self, call: Call) -> Answer:
        match call.do:
            case "menu":
                self.menu = call.names
                return Answer()
            case "private":
                return Answer(value=self.chat(f"p-{call.message}", private=True).id)
            case "fetch":
                return Answer(value=base64.b64encode(self._files[call.message]).decode())
            case "create" | "edit" | "delete" | "typing":
                return self._write(self.chats[call.chat], call)

    def _write(self, chat: Chat, call: Call) -> Answer:
        if chat.closed == "blocked":
            return Answer(refused="blocked")
        if chat.closed:
            return Answer(refused="no rights")
        if call.do == "typing":
            chat.typing_until = time.monotonic() + TYPING_SECONDS
            return Answer()
        if call.do == "create":
            if call.key not in self._keys:
                shown = Message(
                    str(self.number()), BOT, call.text, call.thread, call.spans, call.buttons, call.reply_to, call.silent,
                    call.file_name, base64.b64decode(call.data),
                )  # fmt: skip
                chat.messages[shown.id] = shown
                chat.typing_until = 0.0
                self._keys[call.key] = shown.id
            return Answer(value=self._keys[call.key])
        if call.message not in chat.messages:
            return Answer(refused="no message")
        if call.do == "delete":
            del chat.messages[call.message]
            return Answer()
        shown = chat.messages[call.message]
        shown.text, shown.spans, shown.buttons = call.text, call.spans, call.buttons
        shown.edits += 1
        return Answer()
