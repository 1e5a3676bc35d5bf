"""Single calls to Discord, as `adapters.contract.chat.ChatPort`.

Messages are created with a nonce that follows from the part, and ``enforce_nonce``: within some minutes, the same call does
nothing twice (https://discord.com/developers/docs/resources/message#create-message). Later, the channel's history is read.
Nobody is ever pinged: ``allowed_mentions`` is empty.

What a failed call means (`failure`) is pure. Its sources: https://discord.com/developers/docs/topics/opcodes-and-status-codes#json (codes),
.../topics/rate-limits (429 with ``retry_after``), and the errors of discord.py 2.7: `RateLimited` where its own limit for waiting is passed,
`HTTPException` with the answer's status and code, `OSError` and aiohttp's errors for connections.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import re
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

import aiohttp
import orjson

from adapters import refusing
from adapters.contract.chat import (
    Ability,
    Button,
    ButtonStyle,
    CallFailed,
    Cause,
    ChatAddress,
    ChatPort,
    Content,
    ContentKind,
    Fate,
    Traits,
    id_of,
    not_by_edit,
)
from adapters.contract.files import UPLOAD_SECONDS, FileSource, bytes_of, size_of
from adapters.contract.pacing import Rate, meant
from adapters.discord.pieces import LIMIT_UNITS, pieces, shorter
from adapters.text.markup import DISCORD, escaped_within
from agent_core.patience import Limit
from agent_core.records import dataclass

if TYPE_CHECKING:
    import discord

T = TypeVar("T")

UPLOAD_BYTES = 10 * 1024 * 1024
CALL_SECONDS = 40.0
"""For a whole call; the library itself repeats some failures, with the same nonce."""
LOOK_MESSAGES = 50

ACCOUNT_RATE = Rate(burst=25, interval_ms=40)
"""At most 50 in any second."""
CHAT_RATE = Rate(burst=4, interval_ms=1_200)
"""About 5 in 5 s for a channel; the answers' headers say it exactly, and what they refuse closes the gate."""


NONCE = re.compile(r"[A-Z2-7]{25}")
"""What a nonce of ours looks like."""


def nonce_of(key: str) -> str:
    """At most 25 characters that follow from a part's key."""
    return base64.b32encode(hashlib.sha256(key.encode()).digest())[:25].decode()


class DiscordPort(ChatPort):
    """Implements `ChatPort` for one bot. The client is set by the adapter when it is let in, anew for each connection; its way out
    outlives that connection."""

    def __init__(self, files: FileSource, sends: Callable[[str], None] = lambda _: None) -> None:
        """`sends` is told the nonce of each message that goes out."""
        self.client: discord.Client | None = None
        self._sends = sends
        self._files = files

    @property
    def ability(self) -> Ability:
        return Ability.KEYED

    def traits(self, address: ChatAddress) -> Traits:  # noqa: ARG002
        return Traits(drafts=False, preview_seconds=1.3, status_seconds=5.0, typing_seconds=8.0)

    parts = staticmethod(pieces)
    shorter = staticmethod(shorter)

    def _place(self, address: ChatAddress) -> discord.PartialMessageable:
        if self.client is None or self.client.http.token is None:
            raise CallFailed(Fate.NOT_SENT, refusing.NOT_CONNECTED.format(platform=NAME))
        return self.client.get_partial_messageable(int(address.thread or address.chat))

    async def create(self, address: ChatAddress, content: Content, key: str) -> str:
        from adapters.discord.library import discord

        place = self._place(address)
        data = await bytes_of(content, UPLOAD_BYTES, "Discord") if content.kind is ContentKind.FILE else b""
        more: dict[str, Any] = {}
        if content.reply_to:
            reference = discord.MessageReference(
                message_id=int(content.reply_to), channel_id=place.id, fail_if_not_exists=False
            )
            more["reference"] = reference
        if content.buttons:
            more["view"] = _view(content.buttons)
        nonce = nonce_of(key)
        self._sends(nonce)

        def send() -> Awaitable[discord.Message]:
            if content.kind is ContentKind.FILE:  # the library closes it with the call
                more["file"] = discord.File(io.BytesIO(data), filename=content.file_name)
            return place.send(
                _text(content) or None,
                nonce=nonce,
                allowed_mentions=discord.AllowedMentions.none(),
                suppress_embeds=True,
                silent=content.silent,
                **more,
            )

        sent = await self._there(address, send, UPLOAD_SECONDS if data else None)
        return id_of(sent.id)

    async def edit(self, address: ChatAddress, platform_id: str, content: Content) -> None:
        from adapters.discord.library import discord

        if content.kind is ContentKind.FILE:
            raise not_by_edit(content.kind)
        message = self._place(address).get_partial_message(int(platform_id))
        view = _view(content.buttons) if content.buttons else None
        none = discord.AllowedMentions.none()
        await self._there(address, lambda: message.edit(content=_text(content), view=view, allowed_mentions=none))

    async def delete(self, address: ChatAddress, platform_id: str) -> None:
        message = self._place(address).get_partial_message(int(platform_id))
        await self._there(address, message.delete)

    async def _there(self, address: ChatAddress, call: Callable[[], Awaitable[T]], seconds: float | None = None) -> T:
        """A call that writes. A thread that is archived is opened first, as any message opens it; what cannot be said in a private thread that
        is locked is said nowhere else."""
        try:
            return await self.asked(call(), seconds)
        except CallFailed as error:
            if error.cause is not Cause.NO_THREAD or not address.thread or self.client is None:
                raise
            http, thread, refused = self.client.http, int(address.thread), error
        archived = getattr(refused.__cause__, "code", 0) == ARCHIVED
        if archived and await self._seen(http.edit_channel(thread, archived=False)) is not None:
            try:
                return await self.asked(call(), seconds)
            except CallFailed as error:
                if error.fate is not Fate.REFUSED:
                    raise  # it is open, and where the words belong
        told = await self._seen(http.get_channel(thread))
        if isinstance(told, dict) and cast("dict[str, Any]", told).get("type") != PRIVATE_THREAD:
            raise refused
        raise CallFailed(Fate.REFUSED, refused.words, cause=Cause.NO_RIGHTS) from refused

    async def _seen(self, call: Awaitable[object]) -> object:
        """What is answered about a place that refuses words; None if that is refused, too. What fails otherwise says nothing of the place."""
        try:
            return await self.asked(call)
        except CallFailed as error:
            if error.fate is Fate.REFUSED:
                return None
            if error.fate is Fate.TOO_FAST:
                raise
            raise CallFailed(Fate.NOT_SENT, error.words, cause=error.cause) from error

    async def typing(self, address: ChatAddress) -> None:
        place = self._place(address)
        assert self.client is not None
        await self.asked(self.client.http.send_typing(place.id))

    async def find(self, address: ChatAddress, content: Content, key: str, since_ms: int) -> str | None:  # noqa: ARG002
        """By author, text and file, the last that is so: history does not tell nonces, and what says the same was sent before."""
        place = self._place(address)
        assert self.client is not None
        me = self.client.user
        wanted = _text(content).strip()
        is_file = content.kind is ContentKind.FILE
        size = await size_of(content) if is_file else 0

        async def look() -> str | None:
            since, found = datetime.fromtimestamp(since_ms / 1000, UTC), None
            async for message in place.history(limit=LOOK_MESSAGES, after=since, oldest_first=True):
                same = message.content.strip() == wanted
                if is_file:
                    same = same and any(_is_file(one, content.file_name, size) for one in message.attachments)
                if me is not None and message.author.id == me.id and same:
                    found = str(message.id)
            return found

        return await self.asked(look())

    async def private(self, person: str) -> str:
        return (await self.opened(person))[0]

    async def opened(self, person: str) -> tuple[str, int]:
        """The private chat with a person, and the id of the last message there (0 if there is none)."""
        if self.client is None:
            raise CallFailed(Fate.NOT_SENT, refusing.NOT_CONNECTED.format(platform=NAME))
        if not person.isdecimal():
            raise CallFailed(Fate.REFUSED, f"{person!r} is no id of a person there", cause=Cause.NO_CHAT)
        opened: Any = self.client.http.start_private_message(int(person))  # what the library says of it is a hope
        channel: object = await self.asked(opened)
        if not isinstance(channel, dict):
            raise _misread(channel)
        told = cast("dict[str, Any]", channel)
        return str(told["id"]), int(told.get("last_message_id") or 0)

    async def history(self, client: discord.Client, channel: int, count: int, after: int) -> list[Any]:
        """Messages of a channel behind one, as JSON."""
        asked: Any = client.http.logs_from(channel, count, after=after)
        page: object = await self.asked(asked)
        if not isinstance(page, list):
            raise _misread(page)
        return cast("list[Any]", page)

    async def fetch(self, ref: str, limit_bytes: int) -> bytes:
        return await self._files.fetched(ref, limit_bytes)

    @staticmethod
    async def asked(call: Awaitable[T], seconds: float | None = None) -> T:
        """The answer to a call; raises `CallFailed`."""
        from adapters.discord.library import discord

        LIMITED.set(NOT_LIMITED)
        try:
            async with Limit(seconds or CALL_SECONDS):
                return await call
        except (discord.DiscordException, aiohttp.ClientError, OSError, *refusing.MISREAD) as error:
            raise failure(error, LIMITED.get()) from error


def _text(content: Content) -> str:
    """Words of the gateway's own are no markup; those that come from `parts` are rendered already."""
    raw = content.kind in (ContentKind.STATUS, ContentKind.ASIDE, ContentKind.APPROVAL)
    return escaped_within(content.body.text, DISCORD, LIMIT_UNITS) if raw else content.body.text


def _is_file(one: Any, name: str, size: int) -> bool:
    """Whether an attachment is this file. Of a name with other signs than these Discord keeps only some."""
    return one.size == (size or one.size) and (one.filename == name or _PLAIN_NAME.fullmatch(name) is None)


_PLAIN_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_LOOKS = {ButtonStyle.PLAIN: "secondary", ButtonStyle.AGREES: "success", ButtonStyle.REFUSES: "danger"}


def _view(buttons: tuple[Button, ...]) -> discord.ui.View:
    from adapters.discord.library import discord

    view = discord.ui.View(timeout=None)
    for button in buttons:
        look = _LOOKS[button.style]
        view.add_item(discord.ui.Button(label=button.label, custom_id=button.data, style=discord.ButtonStyle[look]))
    view.stop()  # presses are read from the events, so that they work after a restart as well
    return view


PRIVATE_THREAD = 12
"""A kind of channel (https://discord.com/developers/docs/resources/channel#channel-object-channel-types)."""
INVALID_FORM = 50035
ARCHIVED = 50083
_CODES = {
    10003: Cause.NO_CHAT,  # unknown channel
    10008: Cause.NO_MESSAGE,  # unknown message
    50001: Cause.NO_RIGHTS,  # missing access
    30046: Cause.UNEDITABLE,  # an old message was edited too often: this comes as a 429, and the chat would wait for one message
    50005: Cause.UNEDITABLE,  # cannot edit a message of another user
    50021: Cause.UNEDITABLE,  # a system message
    50007: Cause.BLOCKED,  # cannot send messages to this user
    50008: Cause.NO_RIGHTS,  # no messages in a channel of this kind: of a post that was locked nothing can be said in its forum
    50013: Cause.NO_RIGHTS,  # missing permissions
    50278: Cause.BLOCKED,  # no server in common
    INVALID_FORM: Cause.FORM,
    160002: Cause.FORM,  # no reply without the right to read the history
    ARCHIVED: Cause.NO_THREAD,  # nothing there can be changed before it is opened again
    160005: Cause.NO_THREAD,  # thread is locked
    40005: Cause.FILE,  # request entity too large
    50046: Cause.FILE,  # invalid file
    400001: Cause.FILE,  # the guild takes no files for now
    20009: Cause.OTHER,  # explicit content: these words are not taken, others are
    200000: Cause.OTHER,  # blocked by a rule of AutoMod
    240000: Cause.OTHER,  # blocked by the filter of harmful links
}
_TOO_LONG = "or fewer in length"
CLOUDFLARE_SECONDS = 60.0
"""For a 429 that says no time: the shield before Discord, or another that stands between."""
TOO_MANY = 429
PAGE = "text/html"


@dataclass(frozen=True, slots=True)
class Limited:
    """What a 429 says of itself and the library does not hand on (https://discord.com/developers/docs/topics/rate-limits)."""

    scope: str = ""
    """Whose limit it is: the header `X-RateLimit-Scope`."""
    seconds: float = 0.0
    """How long to wait by its body; 0: that does not say. The library reads it only beside a header `Via`, which a proxy may take away."""
    code: int = 0
    """Which of Discord's errors it is, by its body; 0: that does not say."""
    page: int = 0
    """It is none: a page came with this status of a success, of which the library makes a text."""


NOT_LIMITED = Limited()
LIMITED: ContextVar[Limited] = ContextVar("discord limited", default=NOT_LIMITED)
"""Of the last refusal of this task's call."""


NAME = "Discord"


def failure(error: Exception, limited: Limited = NOT_LIMITED) -> CallFailed:
    """What is known of a call that raised `error`."""
    from adapters.discord.library import discord

    match error:
        case discord.RateLimited() if limited.code in _CODES:
            what = refusing.ANSWERED_WITH.format(platform=NAME, what=limited.code)
            return CallFailed(Fate.REFUSED, what, cause=_CODES[limited.code])
        case discord.RateLimited():
            return _too_fast(error.retry_after, whole_bot=limited.scope == "global")
        case discord.LoginFailure(__cause__=discord.HTTPException() as cause) if _is_page(cause.response):
            return _not_itself(cause.status)
        case discord.LoginFailure():
            return CallFailed(Fate.REFUSED, refusing.TOKEN.format(platform=NAME), cause=Cause.NOT_LET_IN)
        case discord.HTTPException():
            if error.status == TOO_MANY and error.code not in _CODES:
                seconds = limited.seconds or _told_seconds(error.response)
                return _too_fast(seconds, whole_bot=limited.scope == "global" if limited.scope else None)
            return _answered(error.status, error.code, error.text, page=_is_page(error.response))
        case aiohttp.ClientConnectorError():
            return CallFailed(Fate.NOT_SENT, refusing.FAILED.format(platform=NAME, why=refusing.broken(error)))
        case aiohttp.ClientError() | OSError() | asyncio.TimeoutError():
            return CallFailed(Fate.UNKNOWN, refusing.FAILED.format(platform=NAME, why=refusing.broken(error)))
        case _ if limited.page:
            return _portal(limited.page)
        case _:
            words = refusing.NOT_UNDERSTOOD.format(platform=NAME, what=type(error).__name__)
            return CallFailed(Fate.UNKNOWN, words, cause=Cause.UNREADABLE)


def _portal(status: int) -> CallFailed:
    """A page with a success: Discord may have been asked all the same."""
    return CallFailed(Fate.UNKNOWN, refusing.NOT_ITSELF.format(platform=NAME, what=status), cause=Cause.SHIELDED)


def _misread(answer: object) -> CallFailed:
    """Something else came than was asked for."""
    if page := LIMITED.get().page:
        return _portal(page)
    what = type(answer).__name__
    return CallFailed(Fate.UNKNOWN, refusing.NOT_UNDERSTOOD.format(platform=NAME, what=what), cause=Cause.UNREADABLE)


def _too_fast(seconds: float, *, whole_bot: bool | None) -> CallFailed:
    words = refusing.ASKS_TO_WAIT.format(platform=NAME, seconds=f"{seconds:g}")
    return CallFailed(Fate.TOO_FAST, words, retry_after=seconds, whole_bot=whole_bot)


def body_seconds(body: bytes) -> float:
    """How long to wait by the body of a 429; 0 if it does not say."""
    seconds = _number_in(body, "retry_after")
    return float(seconds) if meant(seconds) else 0.0


def body_code(body: bytes) -> int:
    """Which error the body of a 429 names; 0 if it names none."""
    code = _number_in(body, "code")
    return code if isinstance(code, int) else 0


def _number_in(body: bytes, key: str) -> float:
    try:
        said: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return 0
    number = cast("dict[str, object]", said).get(key) if isinstance(said, dict) else None
    return number if isinstance(number, int | float) and not isinstance(number, bool) else 0


def _told_seconds(answer: Any) -> float:
    """How long to wait by `Retry-After`."""
    said = str(answer.headers.get("Retry-After") or "")
    return float(said) if re.fullmatch(r"\d{1,6}(?:\.\d{1,6})?", said) else CLOUDFLARE_SECONDS


def _is_page(answer: Any) -> bool:
    """Whether an answer is not in Discord's form: all of its own is JSON."""
    return not str(answer.headers.get("Content-Type") or "").startswith("application/json")


def _not_itself(status: int) -> CallFailed:
    return CallFailed(Fate.NOT_SENT, refusing.NOT_ITSELF.format(platform=NAME, what=status), cause=Cause.SHIELDED)


def _answered(status: int, code: int, text: str, *, page: bool) -> CallFailed:
    words = " ".join(text.split())[:200] or f"status {status}"
    if status >= 500:
        return CallFailed(Fate.UNKNOWN, refusing.ANSWERED_WITH.format(platform=NAME, what=status))
    if status == 413:
        return CallFailed(Fate.REFUSED, refusing.TOO_LARGE.format(platform=NAME), cause=Cause.FILE)
    if page:
        return _not_itself(status)
    if status == 401:
        return CallFailed(Fate.REFUSED, refusing.TOKEN.format(platform=NAME), cause=Cause.NOT_LET_IN)
    if code == INVALID_FORM and _TOO_LONG in words and "content" in words.lower():
        return CallFailed(Fate.REFUSED, words, cause=Cause.TOO_LONG)
    default = Cause.NO_RIGHTS if status == 403 else Cause.OTHER
    return CallFailed(Fate.REFUSED, words, cause=_CODES.get(code, default))
