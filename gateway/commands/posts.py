"""What whoever runs the gateway says in a chat, as a command of that chat."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract.base import FromChat
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core import storedjson
from agent_core.records import dataclass
from gateway.schedule.schedules import session_key

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Post:
    """What whoever runs the gateway says in a chat."""

    text: str = ""
    """Markdown."""
    files: tuple[tuple[Path, str], ...] = ()
    """(where it was put, its name)"""


@functools.cache
def _posts() -> TypeAdapter[Post]:
    from pydantic import TypeAdapter

    return TypeAdapter(Post)


def post_inbound(address: ChatAddress, platform_key: str, digest: str) -> FromChat:
    """What whoever runs the gateway says in a chat, as a message of that chat; the same `platform_key` is said once."""
    key = session_key(address)
    return FromChat(
        account=f"{address.platform}/{address.account}",
        platform_key=platform_key,
        session=key,
        input=(),
        surface=address.platform,
        memory_scope=key.text(),
        chat=ChatOrigin(address, ChatKind.PRIVATE, ChatPerson("operator", "operator")),
        digest=digest,
    )


def encode_post(post: Post) -> str:
    """A post as the words of its command."""
    kept = {"text": post.text, "files": [[str(path), name] for path, name in post.files]}
    return storedjson.dumps(kept).decode()


def decode_post(words: str) -> Post:
    """What `encode_post` has made."""
    return _posts().validate_json(words)
