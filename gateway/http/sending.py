"""What ``outspoken send`` calls: an operator's message into a chat, stored before it is confirmed, and how it is doing.

It is a command in the chat's inbox like any other, so the same key makes no second one for as long as messages are kept, and
its parts are stored in the commit that says that the command is done.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from adapters.contract.chat import CallFailed, ChatAddress
from adapters.http.common import Problem, guarded, problem_response, refusal
from adapters.http.entrance import NotJson, json_of
from adapters.http.routes import HttpRoute
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import BLOCK, blocks, for_person
from agent_core.records import dataclass
from agent_core.store.store import OwnedElsewhere, StorageUnavailable, Store
from gateway.chats.commandintake import CommandIntake
from gateway.chats.where import NoSuchChat, Where
from gateway.commands.posts import Post, encode_post, post_inbound
from gateway.delivery.outbox import Outbox
from gateway.delivery.outcome import state_of
from gateway.http.admin import json_response
from gateway.limits.quotas import OPERATORS, Quotas
from gateway.people.routing import Command
from gateway.queues import inbox
from gateway.sessions.accepting import Accepting
from gateway.storage.storewatch import not_stored

MOST_TEXT = 100_000
"""Characters of one message."""
LONGEST_WAIT_SECONDS = 30.0
"""That one request waits for a delivery."""
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SendRequest:
    """A message as it was asked for."""

    to: str
    text: str
    files: tuple[tuple[str, bytes], ...]
    key: str
    agents: bool = False
    """Another agent wants it, by the operators' key: it may write where ours may."""

    def digest(self) -> str:
        """What tells two messages under one key apart."""
        mark = hashlib.blake2b(digest_size=16)
        for piece in (
            self.to.encode(),
            self.text.encode(),
            *(part for n, data in self.files for part in (n.encode(), data)),
        ):
            mark.update(len(piece).to_bytes(8))
            mark.update(piece)
        return mark.hexdigest()


class Sending:
    """Serves ``POST /api/send`` and ``GET /api/send/{id}``. Needs the operators' key, as `gateway.http.admin` does."""

    def __init__(
        self,
        store: Store,
        accepting: Accepting,
        commands: CommandIntake,
        quotas: Quotas | None,
        outbox: Outbox,
        where: Where,
        key: str | None,
        spool: Path,
    ) -> None:
        self._store = store
        self._accepting = accepting
        self._commands = commands
        self._quotas = quotas
        self._outbox = outbox
        self._where = where
        self._key = key
        self._spool = spool

    def routes(self) -> list[web.RouteDef]:
        return [
            HttpRoute.SEND.served(guarded(self._key, self._send)),
            HttpRoute.SENT.served(guarded(self._key, self._state)),
        ]

    async def _send(self, request: web.Request) -> web.Response:
        try:
            message = read(await request.read())
        except web.HTTPRequestEntityTooLarge:
            return problem_response(
                Problem(413, "That is larger than [server] max_body_bytes allows; nothing was sent.")
            )
        if isinstance(message, Problem):
            return problem_response(message)
        try:
            find = self._where.find_allowed if message.agents else self._where.find
            address = await find(message.to)
        except NoSuchChat as error:
            return problem_response(Problem(403 if message.agents else 404, str(error), param="to"))
        except CallFailed as error:
            return problem_response(Problem(502, f"The platform does not give that chat: {error.words}", param="to"))
        try:
            return await self._accept(message, address)
        except StorageUnavailable as error:
            return problem_response(refusal(not_stored(error)))
        except OwnedElsewhere as error:
            return problem_response(Problem(503, f"Another node writes into this chat: {error}"))

    async def _accept(self, message: SendRequest, address: ChatAddress) -> web.Response:
        inbound = post_inbound(address, f"send:{message.key or secrets.token_hex(12)}", message.digest())
        key = inbound.session
        known = await self._store.inbox.by_key(inbound.account, inbound.platform_key)
        if known is None:
            no_room = self._no_room(message)
            if no_room is not None:
                return problem_response(no_room)
            owned = await self._store.sessions.by_key(key.text())
            if owned is not None:
                self._accepting.queues.release(await self._accepting.owned(key.text(), owned.session))
            files = await asyncio.to_thread(self._put, inbound.digest, message.files)
            command = Command("post", encode_post(Post(message.text, files)))
            accepted, doing = await self._commands.take(inbound, command)
            number = accepted.inbox_id
            if doing is not None:
                await asyncio.wait({doing})
        else:
            number = known.id
            if inbox.decode(known.body).digest != inbound.digest:
                words = (
                    f"The key {message.key!r} was used before, for another message. Use a new key for a new message."
                )
                return problem_response(Problem(409, words, param="key"))
        body = await self._told(number)
        if body["state"] == "accepted":
            words = "The message is accepted, and its parts could not be stored yet; the next start of the gateway does that."
            return problem_response(Problem(503, words))
        return json_response(body)

    def _no_room(self, message: SendRequest) -> Problem | None:
        """Why the files cannot be kept until they are sent."""
        quotas, size = self._quotas, sum(blocks(len(data)) + BLOCK for _, data in message.files)
        full = quotas.ledger.whole_room(size) if quotas is not None else None
        if quotas is None or full is None:
            return None
        quotas.note(OPERATORS, full)
        return Problem(507, f"Nothing was sent. {quotas.words() or for_person(full)}", param="files")

    def _put(self, digest: str, files: Sequence[tuple[str, bytes]]) -> tuple[tuple[Path, str], ...]:
        """Keep the files until they are sent; the same ones are put to the same place."""
        found: list[tuple[Path, str]] = []
        for number, (name, data) in enumerate(files):
            folder = self._spool / f"send-{digest}-{number}"
            folder.mkdir(parents=True, exist_ok=True)
            beside = folder / ".part"
            beside.write_bytes(data)
            beside.replace(folder / name)
            found.append((folder / name, name))
        return tuple(found)

    async def _state(self, request: web.Request) -> web.Response:
        number = request.match_info["id"]
        row = await self._store.inbox.one(int(number)) if re.fullmatch(r"\d{1,18}", number) else None
        if row is None or not row.platform_key.startswith("send:"):
            return problem_response(Problem(404, f"There is no delivery {number}; they are kept for seven days."))
        try:
            seconds = min(float(request.query.get("wait", "0")), LONGEST_WAIT_SECONDS)
        except ValueError:
            return problem_response(Problem(400, "wait must be a number of seconds", param="wait"))
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        body = await self._told(row.id)
        while body["state"] in ("accepted", "pending") and loop.time() < until:
            await self._outbox.records.change(min(LOOK_SECONDS, max(0.01, until - loop.time())))
            body = await self._told(row.id)
        return json_response(body)

    async def _told(self, number: int) -> dict[str, Json]:
        parts = await self._store.deliveries.of(f"inbox:{number}")
        state, cause = state_of(parts)
        return {"id": str(number), "state": state, "parts": len(parts), "cause": cause}


def read(body: bytes) -> SendRequest | Problem:
    """The message that a request's body asks for."""
    try:
        asked = json_of(body)
    except NotJson as error:
        return Problem(400, str(error))
    if not isinstance(asked, dict):
        return Problem(400, "The body must be an object with to and text.")
    to, text, key = asked.get("to"), asked.get("text", ""), asked.get("key", "")
    if not isinstance(to, str) or not isinstance(text, str) or not isinstance(key, str):
        return Problem(400, "to, text and key must be texts", param="to")
    if len(text) > MOST_TEXT:
        return Problem(
            400, f"The text has {len(text)} characters; {MOST_TEXT} are possible. Send it as a file.", param="text"
        )
    if len(key) > 200:
        return Problem(400, "The key is longer than 200 characters.", param="key")
    agents = asked.get("agents", False)
    if not isinstance(agents, bool):
        return Problem(400, "agents must be true or false.", param="agents")
    files = _files(asked.get("files", []))
    if isinstance(files, Problem):
        return files
    if not text.strip() and not files:
        return Problem(400, "There is nothing to send: neither text nor a file.", param="text")
    return SendRequest(to, text, files, key, agents)


def _files(listed: Json) -> tuple[tuple[str, bytes], ...] | Problem:
    if not isinstance(listed, list):
        return Problem(400, "files must be a list", param="files")
    found: list[tuple[str, bytes]] = []
    for one in listed:
        name = one.get("name") if isinstance(one, dict) else None
        data = one.get("data") if isinstance(one, dict) else None
        if not isinstance(name, str) or not isinstance(data, str):
            return Problem(400, "each file needs a name and its data in base64", param="files")
        if (
            not name
            or name in (".", "..", ".part")
            or "/" in name
            or "\\" in name
            or "\0" in name
            or len(name.encode()) > 200
        ):
            return Problem(400, "a file's name must be a plain name", param="files")
        try:
            content = base64.b64decode(data, validate=True)
        except ValueError:  # also for letters that are no ASCII
            return Problem(400, f"the data of {name} is not base64", param="files")
        if not content:
            return Problem(400, f"{name} is empty; an empty file cannot be sent.", param="files")
        found.append((name, content))
    return tuple(found)
