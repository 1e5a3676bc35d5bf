"""Single calls to Slack's Web API, as `adapters.chat.ChatPort`. The SDK's own retries are off.

Slack has no documented idempotency key for posts. Each post carries its part's key in ``metadata``, by which it is found again in
the history when the outcome of a call is not known (https://docs.slack.dev/messaging/message-metadata).
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp

from adapters.carried import bytes_of, fetched
from adapters.chat import Ability, Button, CallFailed, ChatAddress, Content, ContentKind, Fate, Piece, Traits
from adapters.pacing import Rate
from adapters.slack.errors import failure
from adapters.text.files import lift_long_code
from adapters.text.flatten import flatten
from adapters.text.markup import SLACK, rendered_parts
from adapters.text.parse import parse
from adapters.text.styled import Styled
from adapters.text.telegram import is_visible

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

T = TypeVar("T")

LIMIT_UNITS = 3_900
"""Slack shortens texts over 4 000 characters (https://docs.slack.dev/reference/methods/chat.postMessage)."""
SECTION_CHARS = 2_900
"""Of the text in a block beside buttons; 3 000 are allowed."""
EVENT = "outspoken_part"
LOOK_MESSAGES = 100
UPLOAD_BYTES = 100 * 1024 * 1024
FILE_MARK = "file:"

ACCOUNT_RATE = Rate(burst=20, interval_ms=60)
CHAT_RATE = Rate(burst=3, interval_ms=1_100)
"""About one post a second in a channel, with short bursts."""


def pieces(markdown: str, *, growing: bool) -> tuple[Piece, ...]:
    """See `ChatPort.parts`. Pure."""
    blocks = parse(markdown, growing=growing)
    blocks, files = (blocks, ()) if growing else lift_long_code(blocks)
    texts = rendered_parts(flatten(blocks), LIMIT_UNITS - 200, SLACK)
    return (*(Styled(text) for text in texts if is_visible(text)), *files)


class SlackPort:
    """Implements `ChatPort` for one workspace."""

    def __init__(self, client: AsyncWebClient, token: str) -> None:
        self._client: Any = client  # its types are half unknown; what comes back is looked at below
        self._token = token

    @property
    def ability(self) -> Ability:
        return Ability.LOOK_UP

    def traits(self, address: ChatAddress) -> Traits:  # noqa: ARG002
        return Traits(drafts=False, preview_seconds=1.2, status_seconds=5.0, typing_seconds=0)

    def parts(self, markdown: str, *, growing: bool) -> tuple[Piece, ...]:
        return pieces(markdown, growing=growing)

    async def create(self, address: ChatAddress, content: Content, key: str) -> str:
        if content.kind is ContentKind.FILE:
            return await self._send_file(address, content)
        text = _text(content)
        posted = self._client.chat_postMessage(
            channel=address.chat,
            thread_ts=address.thread or None,
            text=text,
            blocks=_blocks(text, content.buttons),
            metadata={"event_type": EVENT, "event_payload": {"key": key}},
            unfurl_links=False,
            unfurl_media=False,
            link_names=False,
            client_msg_id=str(uuid.uuid5(uuid.NAMESPACE_URL, key)),
        )
        return str((await self.asked(posted))["ts"])

    async def _send_file(self, address: ChatAddress, content: Content) -> str:
        data = await bytes_of(content, UPLOAD_BYTES, "Slack")
        sent = self._client.files_upload_v2(
            channel=address.chat, thread_ts=address.thread or None, content=data, filename=content.file_name
        )
        answer: dict[str, Any] = (await self.asked(sent)).data
        files: list[dict[str, Any]] = answer.get("files") or [{"id": ""}]
        return FILE_MARK + str(files[0]["id"])

    async def edit(self, address: ChatAddress, platform_id: str, content: Content) -> None:
        if content.kind is ContentKind.FILE or platform_id.startswith(FILE_MARK):
            return  # a file that was sent stays as it is
        text = _text(content)
        blocks = _blocks(text, content.buttons) or []  # without any, those that were there would stay
        await self.asked(
            self._client.chat_update(channel=address.chat, ts=platform_id, text=text, blocks=blocks, link_names=False)
        )

    async def delete(self, address: ChatAddress, platform_id: str) -> None:
        if platform_id.startswith(FILE_MARK):
            await self.asked(self._client.files_delete(file=platform_id.removeprefix(FILE_MARK)))
        else:
            await self.asked(self._client.chat_delete(channel=address.chat, ts=platform_id))

    async def draft(self, address: ChatAddress, number: int, body: Styled) -> None:  # noqa: ARG002
        raise CallFailed(Fate.REFUSED, "Slack has no drafts")

    async def typing(self, address: ChatAddress) -> None:  # noqa: ARG002
        raise CallFailed(Fate.REFUSED, "Slack does not show bots typing")

    async def find(self, address: ChatAddress, content: Content, key: str, since_ms: int) -> str | None:  # noqa: ARG002
        since = f"{since_ms / 1000:.6f}"
        more: dict[str, Any] = {
            "channel": address.chat,
            "oldest": since,
            "limit": LOOK_MESSAGES,
            "include_all_metadata": True,
        }
        if address.thread:
            answer = await self.asked(self._client.conversations_replies(ts=address.thread, **more))
        else:
            answer = await self.asked(self._client.conversations_history(**more))
        messages: list[dict[str, Any]] = answer.data.get("messages") or []
        for message in messages:
            metadata: dict[str, Any] = message.get("metadata") or {}
            payload: dict[str, Any] = metadata.get("event_payload") or {}
            if metadata.get("event_type") == EVENT and payload.get("key") == key:
                return str(message["ts"])
        return None

    async def private(self, person: str) -> str:
        answer = await self.asked(self._client.conversations_open(users=person))
        return str(answer.data["channel"]["id"])

    async def fetch(self, ref: str, limit_bytes: int) -> bytes:
        return await fetched(ref, limit_bytes, {"Authorization": f"Bearer {self._token}"})

    @staticmethod
    async def asked(call: Awaitable[T]) -> T:
        """The answer to a call; raises `CallFailed`."""
        from slack_sdk.errors import SlackClientError

        try:
            return await call
        except (SlackClientError, aiohttp.ClientError, OSError) as error:
            raise failure(error) from error


def _text(content: Content) -> str:
    """Words of the gateway's own are no markup; those that come from `parts` are rendered already."""
    raw = content.kind in (ContentKind.STATUS, ContentKind.ASIDE, ContentKind.APPROVAL)
    return SLACK.escape(content.body.text)[:LIMIT_UNITS] if raw else content.body.text


def _blocks(text: str, buttons: tuple[Button, ...]) -> list[dict[str, Any]] | None:
    """Blocks are only needed for buttons; the text is repeated in them, because Slack shows nothing else then."""
    if not buttons:
        return None
    section = {"type": "section", "text": {"type": "mrkdwn", "text": text[:SECTION_CHARS]}}
    elements = [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": b.label},
            "value": b.data,
            "action_id": b.data.partition(":")[0],
        }
        for b in buttons
    ]
    return [section, {"type": "actions", "elements": elements}]
