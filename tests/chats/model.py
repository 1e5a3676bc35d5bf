"""A model for the tests of chats: it does what the person's last line says."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web

from agent_core.messages import said_by_the_person
from tests.listening import listening

Messages = list[dict[str, Any]]


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[dict[str, Any]]", content or [])
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)


def long_text(words: int) -> str:
    """Numbered words, so that it can be seen whether one is missing or twice."""
    return "\n\n".join(
        " ".join(f"word{n}" for n in range(begin, min(begin + 50, words))) + "." for begin in range(0, words, 50)
    )


def wide_line(number: int) -> str:
    """A line of code that is long enough for a hundred of them to fill several messages."""
    return f"print({number}, {'x' * 50!r})"


@dataclass
class ScriptedModel:
    """Listens on a free port. Lines it knows:

    ``say X``; ``slow X`` (a word each 0.15 s); ``hold X`` (after X it waits for `release`); ``aloud X`` (thinks in the text until `release`); ``long N``; ``code N``; ``slowcode N`` (a line each
    0.06 s); ``write NAME: X``, ``fill NAME KIB``, ``keep NAME CHARS``, ``usetool TOOL JSON``, ``delete NAME`` and ``send NAME`` (tools); ``empty``; ``stall``; ``down``; ``recall`` (what it was told before).
    """

    requests: list[Messages] = field(default_factory=list[Messages])
    models: list[str] = field(default_factory=list[str])
    url: str = ""
    released: asyncio.Event = field(default_factory=asyncio.Event)
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    failing: bool = False
    spoken: str = "say I heard you"
    """What it hears in every sound."""
    sound_usage: dict[str, str | int] = field(default_factory=dict[str, str | int])
    """What it says that listening used."""
    sounds: list[tuple[str, str, bytes]] = field(default_factory=list[tuple[str, str, bytes]])
    """What it was given to hear: the file's name, its type, its bytes."""
    deaf: list[str] = field(default_factory=list[str])
    """What happens to the next sounds instead: a status, or ``stall``."""
    said: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What it was to say aloud."""
    mute: list[str] = field(default_factory=list[str])
    """What happens to the next such wishes instead: a status."""
    uses: int = 10
    """So many tokens of a prompt it counts."""
    titles: list[str] = field(default_factory=list[str])
    """What it calls the next conversations; ``down`` and ``stall`` are failures."""
    begins: asyncio.Event = field(default_factory=asyncio.Event)
    """No answer begins before it is set."""

    def __post_init__(self) -> None:
        self.begins.set()

    async def seen(self) -> None:
        """A moment later."""
        await asyncio.sleep(0.02)

    def release(self) -> None:
        """Let everything that holds go on."""
        self.released.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        messages: Messages = body["messages"]
        self.requests.append(messages)
        self.models.append(body["model"])
        await self.begins.wait()
        if messages[-1]["role"] == "user" and text_of(messages[-1]["content"]).startswith("<conversation>"):
            return await self._title(request)
        if self.failing:
            return web.json_response({"error": {"message": "out of order"}}, status=503)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await self._reply(messages, response)
        return response

    async def _title(self, request: web.Request) -> web.StreamResponse:
        title = self.titles.pop(0) if self.titles else "down"
        if title == "down":
            return web.json_response({"error": {"message": "out of order"}}, status=503)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if title == "stall":
            await asyncio.sleep(60)
        await self._say(response, title)
        return response

    @property
    def asked(self) -> list[str]:
        """The person's last words of each request."""
        return [self.last(messages) for messages in self.requests]

    @staticmethod
    def last(messages: Messages) -> str:
        said = [said_by_the_person(text_of(m["content"])) for m in messages if m["role"] == "user"]
        return next(words for words in reversed(said) if words)

    async def listen(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        with file.file as sound:
            self.sounds.append((file.filename, file.content_type, sound.read()))
        match self.deaf.pop(0) if self.deaf else "":
            case "":
                return web.json_response(
                    {"text": self.spoken, **({"usage": self.sound_usage} if self.sound_usage else {})}
                )
            case "stall":
                await asyncio.sleep(60)
                return web.Response()
            case "drip":
                dripping = web.StreamResponse()
                await dripping.prepare(request)
                while True:
                    await dripping.write(b" ")
                    await asyncio.sleep(0.2)
            case status:
                return web.json_response({"error": {"message": "not now"}}, status=int(status))

    async def speak(self, request: web.Request) -> web.StreamResponse:
        self.said.append(await request.json())
        match self.mute.pop(0) if self.mute else "":
            case "":
                return web.Response(body=b"OggS\0\2" + b"spoken" * 20, content_type="audio/ogg")
            case status:
                return web.json_response({"error": {"message": "not now"}}, status=int(status))

    async def _reply(self, messages: Messages, response: web.StreamResponse) -> None:
        if messages[-1]["role"] == "tool":
            await self._say(response, f"Done: {text_of(messages[-1]['content'])[:80]}")
            return
        words = self.last(messages)
        line = next((li for li in reversed(words.splitlines()) if li.strip()), "")
        found = re.search(
            r"\b(say|slow|hold|aloud|long|code|slowcode|write|fill|keep|usetool|delete|send|empty|stall|down|recall|markdown|table)\b ?(.*)",
            line,
        )
        kind, rest = (found.group(1), found.group(2)) if found else ("", line)
        match kind:
            case "say":
                await self._say(response, rest)
            case "markdown":
                await self._say(
                    response, "**bold** and `code` and [link](https://example.org)\n\n```python\nprint(1)\n```"
                )
            case "table":
                for row in (
                    "Look:\n\n| name | value |\n|---|---|\n",
                    "| one | 1 |\n",
                    "| two | 2 |\n",
                    "| three | 3 |\n",
                ):
                    await response.write(chunk({"content": row}))
                    await asyncio.sleep(0.7)
                await self._end(response)
            case "slow":
                for word in rest.split():
                    await response.write(chunk({"content": word + " "}))
                    await asyncio.sleep(0.15)
                await self._end(response)
            case "aloud":  # thinks in the text, and only the end of that is marked
                await response.write(chunk({"content": "I should think of " + rest}))
                self.holding.set()
                await self.released.wait()
                await self._say(response, f".\n</think>\n\n{rest} end")
            case "hold":
                await response.write(chunk({"content": rest + " "}))
                self.holding.set()
                await self.released.wait()
                await self._say(response, "end")
            case "long":
                await self._say(response, long_text(int(rest)))
            case "code":
                lines = "\n".join(f"print({n})" for n in range(int(rest)))
                await self._say(response, f"Here it is.\n\n```python\n{lines}\n```\n\nThat was it.")
            case "slowcode":
                await response.write(chunk({"content": "Here it is.\n\n```python\n"}))
                for n in range(int(rest)):
                    await response.write(chunk({"content": wide_line(n) + "\n"}))
                    await asyncio.sleep(0.06)
                await self._say(response, "```\n\nThat was it.")
            case "write":
                name, _, content = rest.partition(": ")
                await response.write(chunk({"content": "I write it down."}))
                await self._call(response, "write_file", {"path": name, "content": content})
            case "fill":
                name, _, kib = rest.partition(" ")
                await self._call(response, "write_file", {"path": name, "content": "x" * (int(kib) * 1024)})
            case "keep":
                name, _, chars = rest.partition(" ")
                await self._call(response, "remember", {"name": name, "text": "x" * int(chars)})
            case "usetool":
                name, _, given = rest.partition(" ")
                await self._call(response, name, json.loads(given))
            case "delete":
                await self._call(response, "delete_file", {"path": rest})
            case "send":
                await self._call(response, "send_file", {"path": rest})
            case "empty":
                await self._end(response)
            case "stall":
                await response.write(chunk({"content": rest or "Well"}))
                await asyncio.sleep(30)
            case "down":
                response.force_close()
                if request_transport := response._req.transport if response._req else None:
                    request_transport.abort()
            case "recall":
                said = [text_of(m["content"]) for m in messages if m["role"] == "user"][:-1]
                await self._say(response, "I remember: " + " | ".join(said))
            case _:
                await self._say(response, f"You said: {words}")

    async def _say(self, response: web.StreamResponse, text: str) -> None:
        for begin in range(0, len(text), 400):
            await response.write(chunk({"content": text[begin : begin + 400]}))
        await self._end(response)

    async def _call(self, response: web.StreamResponse, tool: str, arguments: dict[str, Any]) -> None:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = f"call_{len(self.requests)}"
        await response.write(
            chunk({"tool_calls": [{"index": 0, "id": call, "type": "function", "function": function}]}, "tool_calls")
        )
        await response.write(b"data: [DONE]\n\n")

    async def _end(self, response: web.StreamResponse) -> None:
        await response.write(chunk({}, "stop"))
        usage: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": self.uses, "completion_tokens": 5}}
        await response.write(b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n")


@asynccontextmanager
async def scripted_model() -> AsyncGenerator[ScriptedModel]:
    """A model that listens for the block."""
    model = ScriptedModel()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", model.handle)
    app.router.add_post("/v1/audio/transcriptions", model.listen)
    app.router.add_post("/v1/audio/speech", model.speak)
    async with listening(app) as url:
        model.url = f"{url}/v1"
        try:
            yield model
        finally:
            model.release()
