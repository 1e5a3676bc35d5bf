"""Single calls to Slack's Web API, as `adapters.contract.chat.ChatPort`. The SDK's own retries are off.

Slack has no documented idempotency key for posts. Each post carries its part's key in ``metadata``, by which it is found again in
the history when the outcome of a call is not known (https://docs.slack.dev/messaging/message-metadata). A stream gets its key when
it is finished; until then it is known by its text. A file has no key, and is known by its name. What this workspace does not know
(streams, agent sessions) is remembered for as long as the process lives, and not tried again.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp
import structlog

from adapters import refusing
from adapters.contract.chat import (
    GROWS,
    Ability,
    Attachment,
    CallFailed,
    Cause,
    ChatAddress,
    ChatPort,
    Content,
    ContentKind,
    Doing,
    Fate,
    Flow,
    Traits,
    id_of,
    not_by_edit,
)
from adapters.contract.files import NOT_GIVEN, UPLOAD_SECONDS, FileSource, bytes_of
from adapters.contract.pacing import Rate
from adapters.slack.beside import LOOK_UP, looked_up
from adapters.slack.blocks import blocks_of, chunks_of, feedback_of, flow_of, text_of
from adapters.slack.errors import UNABLE, failure
from adapters.slack.inbound import IN_THREAD, SLASH_COMMAND, table
from adapters.slack.pieces import pieces, shorter
from agent_core.patience import Limit

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

T = TypeVar("T")
log = structlog.get_logger("slack")

EVENT = "outspoken_part"
LOOK_MESSAGES = 100
UPLOAD_BYTES = 100 * 1024 * 1024
FILE_MARK = "file:"
CALL_SECONDS = 20.0
"""So long Slack has to answer a call."""
DOING_SECONDS = 5.0
"""For showing what the agent does, which nobody misses if it fails."""

ACCOUNT_RATE = Rate(burst=20, interval_ms=60)
CHAT_RATE = Rate(burst=3, interval_ms=1_100)
"""About one post a second in a channel, with short bursts."""

_STATUS = {Doing.WORKING: "processing", Doing.WAITING: "suspended", Doing.READY: "active"}


class SlackPort(ChatPort):
    """Implements `ChatPort` for one workspace."""

    def __init__(
        self,
        client: AsyncWebClient,
        files: FileSource,
        *,
        streams: bool = True,
        feedback: bool = True,
        sends: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`sends` is told the key of each message that goes out, and the id of what came to be."""
        self._client: Any = client  # its types are half unknown; what comes back is looked at below
        self._files = files
        self._sends = sends
        self.me = ""
        """The app's own user, once it is known."""
        self.team = ""
        """The workspace's id; until it is known, there are no streams in channels."""
        self._streams = streams
        self._feedback = feedback
        self._sessions = True
        self._no_stop = False

    @property
    def ability(self) -> Ability:
        return Ability.LOOK_UP

    def traits(self, address: ChatAddress) -> Traits:
        """Streams and sessions live in threads; a direct message's thread is the message that is answered."""
        private = address.chat.startswith("D")
        return Traits(
            drafts=False,
            preview_seconds=1.2,
            status_seconds=5.0,
            typing_seconds=0,
            streams=self._streams and (private or bool(address.thread and self.team)),
            sessions=self._sessions,
            cards=True,
            feedback=self._feedback,
            replies=private and not address.thread,
            commands=IN_THREAD if address.thread or private else SLASH_COMMAND,
        )

    parts = staticmethod(pieces)
    shorter = staticmethod(shorter)

    async def create(self, address: ChatAddress, content: Content, key: str) -> str:
        if content.kind is ContentKind.FILE:
            return await self._send_file(address, content)
        self._sends(key)
        posted = self._client.chat_postMessage(
            channel=address.chat,
            thread_ts=_thread(address, content),
            text=text_of(content),
            blocks=blocks_of(content),
            metadata=_metadata(key),
            unfurl_links=False,
            unfurl_media=False,
            link_names=False,
            client_msg_id=str(uuid.uuid5(uuid.NAMESPACE_URL, key)),
        )
        ts = id_of((await self.asked(posted)).get("ts"))
        self._sends(ts)
        return ts

    async def key_at(self, channel: str, thread: str, ts: str) -> str:
        """The key of a message of ours, as any gateway gives it; empty if it has none."""
        more: dict[str, Any] = {"channel": channel, "oldest": ts, "latest": ts, "inclusive": True, "limit": 1}
        more["include_all_metadata"] = True
        if thread and thread != ts:
            answer = await self.asked(self._client.conversations_replies(ts=thread, **more))
        else:
            answer = await self.asked(self._client.conversations_history(**more))
        messages: list[dict[str, Any]] = answer.data.get("messages") or []
        return next((_key_of(message) for message in messages if str(message.get("ts")) == ts), "")

    async def _send_file(self, address: ChatAddress, content: Content) -> str:
        data = await bytes_of(content, UPLOAD_BYTES, "Slack")
        sent = self._client.files_upload_v2(
            channel=address.chat, thread_ts=_thread(address, content), content=data, filename=content.file_name
        )
        answer: dict[str, Any] = (await self.asked(sent, UPLOAD_SECONDS)).data
        files: list[dict[str, Any]] = answer.get("files") or [{}]
        return FILE_MARK + id_of(files[0].get("id"))

    async def edit(self, address: ChatAddress, platform_id: str, content: Content) -> None:
        if content.kind is ContentKind.FILE or platform_id.startswith(FILE_MARK):
            raise not_by_edit(ContentKind.FILE)
        changed = self._client.chat_update(
            channel=address.chat,
            ts=platform_id,
            text=text_of(content),
            blocks=blocks_of(content) or [],  # without any, those that were there would stay
            link_names=False,
        )
        await self.asked(changed)

    async def delete(self, address: ChatAddress, platform_id: str) -> None:
        if platform_id.startswith(FILE_MARK):
            await self.asked(self._client.files_delete(file=platform_id.removeprefix(FILE_MARK)))
        else:
            await self.asked(self._client.chat_delete(channel=address.chat, ts=platform_id))

    # ------------------------------------------------------------------ streams

    def flow(self, content: Content, *, final: bool) -> Flow:
        return flow_of(content, final=final)

    async def start(self, address: ChatAddress, content: Content, first: Flow, person: str) -> str:
        thread = _thread(address, content)
        if thread is None:
            raise CallFailed(Fate.REFUSED, "there is no thread to stream in", cause=Cause.OTHER)
        more: dict[str, Any] = {"recipient_team_id": self.team, "recipient_user_id": person}
        started = self._client.chat_startStream(
            channel=address.chat, thread_ts=thread, chunks=chunks_of(first), **(more if self.team and person else {})
        )
        try:
            ts = id_of((await self.asked(started)).get("ts"))
            self._sends(ts)
            return GROWS + ts
        except CallFailed as error:
            if self._streams and error.fate is Fate.REFUSED and error.words in UNABLE:
                self._streams = False
                log.info("slack.no_streams", words=error.words)
            raise

    async def append(self, address: ChatAddress, platform_id: str, more: Flow) -> None:
        ts = platform_id.removeprefix(GROWS)
        await self.asked(self._client.chat_appendStream(channel=address.chat, ts=ts, chunks=chunks_of(more)))

    async def finish(
        self, address: ChatAddress, platform_id: str, content: Content, more: Flow | None, key: str
    ) -> str:
        self._sends(key)
        ts = platform_id.removeprefix(GROWS)
        end: dict[str, Any] = {}
        if more is not None:
            end = {"chunks": chunks_of(more) or None, "blocks": feedback_of(content) or None}
        await self.asked(self._client.chat_stopStream(channel=address.chat, ts=ts, metadata=_metadata(key), **end))
        return ts

    async def doing(self, address: ChatAddress, thread: str, doing: Doing, person: str) -> None:
        if not self._sessions:
            raise CallFailed(Fate.REFUSED, "there are no agent sessions here")
        told = self._client.agents_sessions_setStatus(
            channel_id=address.chat, thread_ts=thread, status=_STATUS[doing], initiator_user_id=person or None
        )
        try:
            async with Limit(DOING_SECONDS):
                answer: Any = await self.asked(told)
        except TimeoutError as error:
            raise CallFailed(Fate.UNKNOWN, refusing.SLOW.format(platform="Slack")) from error
        except CallFailed as error:
            # A thread that is gone, or a person who is not there, says nothing about the workspace.
            if self._sessions and error.fate is Fate.REFUSED and error.words in UNABLE:
                self._sessions = False
                log.info("slack.no_sessions", words=error.words)
            raise
        if "warning" in answer.data and not self._no_stop:
            self._no_stop = True
            log.info("slack.no_stop_button", words=str(answer.data["warning"]))

    # ------------------------------------------------------------------ looking

    async def find(self, address: ChatAddress, content: Content, key: str, since_ms: int) -> str | None:
        more: dict[str, Any] = {
            "channel": address.chat,
            "oldest": f"{since_ms / 1000:.6f}",
            "limit": LOOK_MESSAGES,
            "include_all_metadata": True,
        }
        thread = _thread(address, content)
        if thread is not None:
            answer = await self.asked(self._client.conversations_replies(ts=thread, **more))
        else:
            answer = await self.asked(self._client.conversations_history(**more))
        messages: list[dict[str, Any]] = answer.data.get("messages") or []
        if content.kind is ContentKind.FILE:
            return _shared(messages, content.file_name, self.me)
        return _found(messages, key) or (_streamed(messages, content) if thread is not None else None)

    async def private(self, person: str) -> str:
        answer = await self.asked(self._client.conversations_open(users=person))
        return id_of(answer.data["channel"].get("id"))

    async def fetch(self, ref: str, limit_bytes: int) -> bytes:
        if ref.startswith(LOOK_UP):
            found = await self.looked_up(ref, "")
            ref = found.ref
            if not ref:
                raise CallFailed(Fate.REFUSED, NOT_GIVEN.format(status=found.name), cause=Cause.FILE)
        return await self._files.fetched(ref, limit_bytes)

    async def looked_up(self, ref: str, person: str) -> Attachment:
        """What a file is that `person` sent and of which there is its id only. Raises `CallFailed`."""
        answer: Any = await self.asked(self._client.files_info(file=ref.removeprefix(LOOK_UP)))
        return looked_up(table(answer.get("file")), person)

    @staticmethod
    async def asked(call: Awaitable[T], seconds: float | None = None) -> T:
        """The answer to a call; raises `CallFailed`."""
        from slack_sdk.errors import SlackClientError

        try:
            async with Limit(seconds or CALL_SECONDS):
                return await call
        except (SlackClientError, aiohttp.ClientError, OSError, *refusing.MISREAD) as error:
            raise failure(error) from error

    async def told(self, call: Awaitable[Any], key: str) -> tuple[dict[str, Any], str]:
        """What is answered to a call, and a word that has to be in it; raises `CallFailed`."""
        answer = table((await self.asked(call)).data)
        word = answer.get(key)
        if not isinstance(word, str) or not word:
            raise failure(KeyError(key))
        return answer, word


def _thread(address: ChatAddress, content: Content) -> str | None:
    return address.thread or content.reply_to or None


def _metadata(key: str) -> dict[str, Any]:
    return {"event_type": EVENT, "event_payload": {"key": key}}


def _key_of(message: dict[str, Any]) -> str:
    metadata: dict[str, Any] = message.get("metadata") or {}
    payload: dict[str, Any] = metadata.get("event_payload") or {}
    return str(payload.get("key") or "") if metadata.get("event_type") == EVENT else ""


def _found(messages: list[dict[str, Any]], key: str) -> str | None:
    return next((id_of(message.get("ts")) for message in messages if _key_of(message) == key), None)


def _shared(messages: list[dict[str, Any]], name: str, me: str) -> str | None:
    """The last file of this name that we have sent: files bear no key."""
    for message in sorted(messages, key=lambda one: str(one.get("ts")), reverse=True):
        files: list[dict[str, Any]] = message.get("files") or []
        for one in files:
            if me and message.get("user") == me and one.get("name") == name:
                return FILE_MARK + id_of(one.get("id"))
    return None


def _streamed(messages: list[dict[str, Any]], content: Content) -> str | None:
    """A stream that was begun with the beginning of this content and never finished: it bears no key yet."""
    whole = flow_of(content, final=False)
    for message in messages:
        begun = str(message.get("text") or "")
        ours = bool(message.get("bot_id")) and message.get("streaming_state") == "in_progress" and not _key_of(message)
        if ours and (whole.text.startswith(begun) if begun else not whole.text):
            return GROWS + id_of(message.get("ts"))
    return None
