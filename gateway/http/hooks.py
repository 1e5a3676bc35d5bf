"""``POST /hooks/NAME``: another program begins a turn in a chat or a session, by a signed call.

Law: 202 is said when the message is stored, and only then; the same id again begins nothing and gets the same answer. Who has not signed is told
so, and nothing of what they sent is looked at.

Known to be weak: how many calls were taken in the last minute is kept in memory, so a start begins anew. GitHub's signature has no time; its calls
are known again by what they say, not by their id, which is not signed.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence

import orjson
import structlog
from aiohttp import web

from adapters.contract.base import FromApi, FromChat, Inbound, SessionKey, Ticket
from adapters.contract.chat import CallFailed, ChatAddress, ChatKind, ChatOrigin, ChatPerson, Content, ContentKind
from adapters.contract.notaccepted import NotAccepted
from adapters.http.common import Problem, problem_response, refusal
from adapters.http.entrance import NotJson, json_of
from adapters.http.routes import HttpRoute
from adapters.text.styled import Styled
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage
from agent_core.ports import Clock
from agent_core.signals import RequestRefused, Tell
from gateway.chats.where import NoSuchChat, Where
from gateway.config.types import SessionPolicy
from gateway.delivery.outbox import Outbox
from gateway.delivery.owners import Owner
from gateway.sessions.accepting import Accepting
from gateway.webhooks import signing
from gateway.webhooks.prompting import HookDoor, prompt_words, room_in
from gateway.webhooks.signing import Unsigned

log = structlog.get_logger("hook")

MOST_ID = 200
UNKNOWN = Problem(404, "There is no such hook.", code="unknown_hook")
REFUSALS: Mapping[Unsigned, Problem] = {
    Unsigned.INCOMPLETE: Problem(
        400,
        f"A header of the signature is missing or of another form: webhook-id (up to {MOST_ID} characters), webhook-timestamp (whole seconds since "
        "1970), webhook-signature.",
        code="not_signed",
    ),
    Unsigned.TOO_OLD: Problem(401, "webhook-timestamp is more than five minutes ago.", code="too_old"),
    Unsigned.TOO_NEW: Problem(401, "webhook-timestamp is more than five minutes ahead.", code="too_new"),
    Unsigned.WRONG: Problem(401, "The signature is wrong.", code="wrong_signature"),
}
REFUSALS_OF_GITHUB = {
    **REFUSALS,
    Unsigned.INCOMPLETE: Problem(
        400, "The header X-Hub-Signature-256 is missing, or does not begin with sha256=.", code="not_signed"
    ),
}


class HookIntake:
    """Serves it."""

    def __init__(
        self, doors: Sequence[HookDoor], accepting: Accepting, where: Where, outbox: Outbox, clock: Clock, tell: Tell
    ) -> None:
        self._doors = {door.name: door for door in doors}
        self._taken = {door.name: deque[int](maxlen=door.per_minute) for door in doors}
        self._accepting = accepting
        self._where = where
        self._outbox = outbox
        self._clock = clock
        self._tell = tell
        accepting.portion.rates["hook"] = self._count

    def routes(self) -> list[web.RouteDef]:
        """None without any hook."""
        return [HttpRoute.HOOK.served(self._called)] if self._doors else []

    async def _called(self, request: web.Request) -> web.Response:
        door = self._doors.get(request.match_info["name"])
        if door is None:
            return self._refused("", UNKNOWN)
        raw = await _read(request, door.body_bytes)
        if raw is None:
            words = f"The body is larger than {door.body_bytes} bytes."
            return self._refused(door.name, Problem(413, words, code="too_large"))
        name = _name(door, request, raw)
        why = _unsigned(door, request, raw, self._clock.now_ms())
        if why is not None or len(name) > MOST_ID or not name.isprintable():
            refusals = REFUSALS_OF_GITHUB if door.github else REFUSALS
            return self._refused(door.name, refusals[why or Unsigned.INCOMPLETE])
        try:
            body = json_of(raw)
        except NotJson as error:
            return self._refused(door.name, Problem(400, str(error), code="invalid_json"))
        try:
            address = await self._where.find(door.chat) if door.chat else None
            if (seconds := self._full(door)) and not await self._known(door, address, name):
                words = f"This hook takes {door.per_minute} calls a minute."
                full = Problem(429, words, "rate_limit_error", code="too_many", retry_after=seconds)
                return self._refused(door.name, full)
            return await self._accept(door, address, name, raw, body)
        except NotAccepted as refused:
            return self._refused(door.name, refusal(refused))
        except NoSuchChat as error:
            return self._refused(door.name, Problem(500, str(error), "server_error", code="no_chat"))
        except CallFailed as error:
            words = f"The platform does not give the chat: {error.words}"
            return self._refused(door.name, Problem(502, words, "server_error", code="no_chat"))

    async def _accept(
        self, door: HookDoor, address: ChatAddress | None, name: str, raw: bytes, body: Json
    ) -> web.Response:
        inbound = inbound_of(
            door, address, name, prompt_words(door, body), hashlib.blake2b(raw, digest_size=16).hexdigest()
        )
        ticket = await self._counted(door, inbound)
        if not ticket.duplicate:
            self._accepting.portion.let("hook", door.name)
            log.info("hook.taken", hook_name=door.name, inbox=ticket.inbox_id, session=ticket.session)
            if address is not None:
                await self._announce(door, address, inbound, ticket.inbox_id, ticket.session)
        told: dict[str, Json] = {"id": name, "message": ticket.inbox_id, "session": ticket.session}
        return web.Response(status=202, body=orjson.dumps(told), content_type="application/json")

    async def _counted(self, door: HookDoor, inbound: Inbound) -> Ticket:
        """Have it stored. It counts from now on, as others come meanwhile, and no more if it is not new."""
        taken, at, counts = self._taken[door.name], self._clock.now_ms(), not self._full(door)
        if counts:
            taken.append(at)
        stored = False
        try:
            ticket = await self._accepting.accept(inbound, busy=SessionPolicy.QUEUE)
            stored = not ticket.duplicate
        finally:
            if counts and not stored and at in taken:
                taken.remove(at)
        return ticket

    async def _announce(
        self, door: HookDoor, address: ChatAddress, inbound: Inbound, number: int, session: str
    ) -> None:
        """The chat is told why something comes that nobody there asked."""
        queue = self._accepting.queues.known(inbound.session.text())
        if queue is not None and queue.epoch:
            told = Content(ContentKind.ASIDE, Styled(f"🔔 Webhook: {door.name}"), silent=True)
            await self._outbox.words.say(address, Owner(session, queue.epoch), f"inbox:{number}", told)

    async def _known(self, door: HookDoor, address: ChatAddress | None, name: str) -> bool:
        """Whether the call was stored before: it is answered again, however many came."""
        account = f"{address.platform}/{address.account}" if address is not None else "api"
        return await self._accepting.store.inbox.by_key(account, _key(door, name)) is not None

    def _count(self, name: str) -> None:
        """A call was taken at another gateway."""
        if (taken := self._taken.get(name)) is not None:
            taken.append(self._clock.now_ms())

    def _full(self, door: HookDoor) -> int:
        return room_in([*self._taken[door.name]], door.per_minute, self._clock.now_ms())

    def _refused(self, name: str, problem: Problem) -> web.Response:
        self._tell(RequestRefused(status=problem.status))
        log.info("hook.refused", hook_name=name, status=problem.status, reason=problem.code or "")
        return problem_response(problem)


def inbound_of(door: HookDoor, address: ChatAddress | None, name: str, words: str, digest: str) -> Inbound:
    """The call as a message: of the chat, and of no person in it; or of a session of the API."""
    key, said = _key(door, name), (InputMessage(words, foreign=f"what came through the webhook {door.name}"),)
    if address is None:
        session = SessionKey("api", "key", door.session)
        return FromApi(
            account="api",
            platform_key=key,
            session=session,
            input=said,
            surface="api",
            memory_scope="api",
            digest=digest,
        )
    session = SessionKey(address.platform, address.account, address.chat, address.thread)
    return FromChat(
        account=f"{address.platform}/{address.account}", platform_key=key, session=session, input=said,
        surface=address.platform, memory_scope=session.text(), can_approve=True, digest=digest,
        chat=ChatOrigin(address, ChatKind.PRIVATE, ChatPerson("webhook", f"webhook {door.name}")),
    )  # fmt: skip


def _key(door: HookDoor, name: str) -> str:
    return f"hook:{door.name}:{name}"


def _name(door: HookDoor, request: web.Request, raw: bytes) -> str:
    """By what a call is known again."""
    if door.github:
        return f"sha256:{hashlib.sha256(raw).hexdigest()}"
    return request.headers.get("webhook-id", "")


def _unsigned(door: HookDoor, request: web.Request, raw: bytes, now: int) -> Unsigned | None:
    heads = request.headers
    if door.github:
        return signing.github_unsigned(door.keys, heads.get("X-Hub-Signature-256", ""), raw)
    return signing.unsigned(
        door.keys,
        heads.get("webhook-id", ""),
        heads.get("webhook-timestamp", ""),
        heads.get("webhook-signature", ""),
        raw,
        now,
    )


async def _read(request: web.Request, most: int) -> bytes | None:
    """The body; None if it is larger than that."""
    if (request.content_length or 0) > most:
        return None
    raw = b""
    while chunk := await request.content.read(most + 1 - len(raw)):
        raw += chunk
        if len(raw) > most:
            return None
    return raw
