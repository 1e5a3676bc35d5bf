"""What a message on Discord brings beside its text: files, forwarded messages, stickers, polls, embeds. Pure.

Law (tests/chats/test_beside.py): whatever a message holds, there are words or a file for it.

Whose words they are: a poll is its author's, and so is a voice message, which Discord marks when a client has recorded it. A forwarded message and what
an embed shows were written by others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from adapters.contract.chat import Attachment, BroughtBeside, attachment, not_own, recorded
from adapters.discord.written import written
from agent_core.rules.taint import FORWARDED, QUOTED

if TYPE_CHECKING:
    import discord

EMBED_CHARS = 1_500
QUOTE_CHARS = 500


def beside(message: discord.Message, answered: discord.Message | None) -> BroughtBeside:
    """What a message brings beside its text, and what came with the one that it answers, if that is not ours.

    Previews of its links are left out: they come early or late or never, and the address is in the text.
    """
    files = [_file(one) for one in message.attachments]
    words, foreign = list[str](), ""
    for snapshot in message.message_snapshots:
        files += [not_own(_file(one)) for one in snapshot.attachments]
        words.append(_forwarded(snapshot))
        foreign = FORWARDED
    if answered is not None:
        files += [not_own(_file(one)) for one in answered.attachments]
        shown = bool(answered.message_snapshots or answered.embeds)
        foreign = foreign or (QUOTED if shown or answered.author.id != message.author.id else "")
    if (poll := message.poll) is not None:
        words.append(_poll(poll))
    words += [f"[A sticker: {one.name}]" for one in message.stickers]
    return BroughtBeside("\n".join(words), tuple(files), foreign)


def quoted(answered: discord.Message) -> str:
    """The message that is answered, for the model; empty if nothing is known of it."""
    inside = [
        written(answered.content, answered),
        *filter(None, map(_embed, answered.embeds)),
        *(f"[A sticker: {one.name}]" for one in answered.stickers),
        *([_poll(answered.poll)] if answered.poll is not None else []),
        *map(_forwarded, answered.message_snapshots),
    ]
    said = "\n".join(piece for piece in inside if piece)
    who = answered.author.display_name
    if said:
        return f"[In reply to {who}: “{_short(said, QUOTE_CHARS)}”]"
    return f"[In reply to {who}, who sent what is attached]" if answered.attachments else ""


def _file(file: discord.Attachment) -> Attachment:
    mime = (file.content_type or "").partition(";")[0]
    found = attachment(file.url, _name(file), mime, file.size)
    return recorded(found) if file.is_voice_message() else found


def _name(file: discord.Attachment) -> str:
    """As its person called it: of a name with other signs than ASCII's Discord keeps little, and tells the whole beside it, mostly without its ending."""
    name, title = file.filename, file.title or ""
    ending = name[name.rfind(".") :] if "." in name else ""
    return name if not title else title if title.lower().endswith(ending.lower()) else title + ending


def _forwarded(snapshot: discord.MessageSnapshot) -> str:
    """Discord does not say who wrote it."""
    inside = [
        snapshot.content,
        *(f"[A sticker: {one.name}]" for one in snapshot.stickers),
        *filter(None, map(_embed, snapshot.embeds)),
    ]
    return "[Forwarded from somebody]\n" + "\n".join(piece for piece in inside if piece)


def _poll(poll: discord.Poll) -> str:
    several = ", several answers are possible" if poll.multiple else ""
    counts = [f" (votes: {one.vote_count})" if poll.total_votes else "" for one in poll.answers]
    lines = [
        f"{number}. {one.text}{votes}" for number, (one, votes) in enumerate(zip(poll.answers, counts, strict=True), 1)
    ]
    return f"[A poll{several}: {poll.question}\n" + "\n".join(lines) + "]"


def _embed(embed: discord.Embed) -> str:
    """What people see in it; empty if there are no words."""
    pieces = [embed.author.name, embed.title, embed.description, *_fields(embed.fields), embed.footer.text]
    said = "\n".join(str(one) for one in pieces if one)
    if not said:
        return ""
    return f"[A preview of {embed.url or 'something'}: “{_short(said, EMBED_CHARS)}”]"


def _fields(fields: Sequence[object]) -> Iterable[str]:
    return (f"{getattr(one, 'name', '')}: {getattr(one, 'value', '')}" for one in fields)


def _short(said: str, most: int) -> str:
    return said if len(said) <= most else said[:most] + " …"
