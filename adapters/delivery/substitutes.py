"""A content in other forms: in more parts or as text where a platform refuses it, and for another chat than the one it was made for. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from adapters.contract.chat import Cause, ChatAddress, Content, ContentKind, Piece
from adapters.delivery.parts import content_of
from adapters.platforms import platform_of
from adapters.text.styled import Styled, units
from agent_core.text.tongue import speak, speaking

SMALLEST_UNITS = 200
"""What is too long although it is as short as this is too long in another sense."""

Shorter = Callable[[Styled, int], Sequence[Styled]]
"""See `adapters.contract.chat.ChatPort.shorter`."""
_TICKS = re.compile(r"`{3,}")
_EXTENSION = re.compile(r"[A-Za-z0-9]{1,10}")


def instead_of(
    content: Content, cause: Cause, *, spelled: Sequence[Piece], shorter: Shorter, replies: bool
) -> tuple[Content, ...]:
    """What may be shown in its place; nothing if there is no such thing.

    `spelled` is the formatted `text_of_file`; `replies`: every part names what it replies to.
    """
    match cause:
        case Cause.TOO_LONG:
            return in_more_parts(content, shorter, replies=replies)
        case Cause.FILE if content.kind is ContentKind.FILE:
            pieces = [piece for piece in spelled if isinstance(piece, Styled) and piece.text]
            text = replace(content, kind=ContentKind.TEXT, file="", file_text="", file_name="")
            return _shared(text, pieces, replies=replies)
        case _:
            return ()


def in_more_parts(content: Content, shorter: Shorter, *, replies: bool) -> tuple[Content, ...]:
    """The same words in parts of half the size; nothing if it is short already."""
    size = units(content.body.text)
    if size < SMALLEST_UNITS:
        return ()
    # What the platform counts is not always what we count: then half of it is too long as well, and is cut again.
    pieces = [piece for piece in shorter(content.body, size // 2 + 1) if piece.text]
    return _shared(content, pieces, replies=replies) if len(pieces) > 1 else ()


def text_of_file(content: Content) -> str:
    """What is in a file, as a text to be formatted as one that grows: so its code stays in it. Empty if it is none with a text."""
    if content.kind is not ContentKind.FILE or not content.file_text:
        return ""
    fence = "`" * max(3, *(len(run) + 1 for run in _TICKS.findall(content.file_text)), 3)
    end = content.file_name.rpartition(".")[2]
    language = end if _EXTENSION.fullmatch(end) else ""
    name = content.file_name.replace("`", "'")
    with speaking(content.language):
        words = speak("{file} could not be sent as a file. This is what is in it:", file=f"`{name}`")
    return f"{words}\n\n{fence}{language}\n{content.file_text.rstrip()}\n{fence}"


def _shared(content: Content, pieces: Sequence[Styled], *, replies: bool) -> tuple[Content, ...]:
    """The pieces: the first replies, the last has the buttons."""
    last = len(pieces) - 1
    return tuple(
        replace(
            content,
            body=piece,
            reply_to=content.reply_to if replies or number == 0 else "",
            buttons=content.buttons if number == last else (),
            feedback=content.feedback if number == last else "",
            tasks=content.tasks if number == last else (),
        )
        for number, piece in enumerate(pieces)
    )


_PLAIN = (ContentKind.ASIDE, ContentKind.STATUS, ContentKind.APPROVAL, ContentKind.TOOLS)


def markdown_of(content: Content, platform: str) -> str:
    """The words of a content that was made for `platform`, as Markdown."""
    from adapters.text.markup import DISCORD, render  # few texts become a file

    if content.kind in _PLAIN:
        return DISCORD.escape(content.body.text)
    known = platform_of(platform)
    return content.body.text if known is not None and known.takes_markdown else render(content.body, DISCORD)


def for_other_chat(
    content: Content, made_for: ChatAddress, other: ChatAddress, parts: Callable[[str], tuple[Piece, ...]]
) -> tuple[Content, ...]:
    """The content as messages of the chat `other`, the first of which says where it comes from. `parts` formats Markdown there.

    What means something in its own chat only (buttons, the message that it answers) is left out.
    """
    with speaking(content.language):
        words = speak("↪ This was meant for {place}:", place=made_for.text().rstrip("/"))
    head = Content(ContentKind.ASIDE, Styled(words), language=content.language)
    bare = replace(content, buttons=(), reply_to="", feedback="", tasks=())
    if content.kind is ContentKind.FILE or made_for.platform == other.platform:
        return (head, bare)
    return (
        head,
        *(replace(content_of(piece), silent=content.silent) for piece in parts(markdown_of(bare, made_for.platform))),
    )
