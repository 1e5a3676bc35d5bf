"""A part's content for another chat than the one that it was made for. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from adapters.contract.chat import ChatAddress, Content, ContentKind, Piece
from adapters.delivery.parts import content_of
from adapters.platforms import platform_of
from adapters.text.markup import DISCORD, render
from adapters.text.styled import Styled

_PLAIN = (ContentKind.ASIDE, ContentKind.STATUS, ContentKind.APPROVAL, ContentKind.TOOLS)


def markdown_of(content: Content, platform: str) -> str:
    """The words of a content that was made for `platform`, as Markdown."""
    if content.kind in _PLAIN:
        return DISCORD.escape(content.body.text)
    known = platform_of(platform)
    return content.body.text if known is not None and known.takes_markdown else render(content.body, DISCORD)


def for_elsewhere(
    content: Content, made_for: ChatAddress, other: ChatAddress, parts: Callable[[str], tuple[Piece, ...]]
) -> tuple[Content, ...]:
    """The content as messages of the chat `other`, the first of which says where it comes from. `parts` formats Markdown there.

    What means something in its own chat only (buttons, the message that it answers) is left out.
    """
    head = Content(ContentKind.ASIDE, Styled(f"↪ This was meant for {made_for.text().rstrip('/')}:"))
    bare = replace(content, buttons=(), reply_to="", feedback="", tasks=())
    if content.kind is ContentKind.FILE or made_for.platform == other.platform:
        return (head, bare)
    return (
        head,
        *(replace(content_of(piece), silent=content.silent) for piece in parts(markdown_of(bare, made_for.platform))),
    )
