"""What a message on Slack brings beside its text: files, messages that are passed on, tables, what other apps put in. Pure.

Law (tests/chats/test_beside.py): whatever a message holds, there are words, a file or a reason for it.

Whose words they are: a clip that its uploader recorded here and sends themselves is theirs, and so is a table that they paste. A message that is
shared or linked, and what an app adds, was written by others. Previews of pages come after the message or never: they are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from adapters.contract.chat import Attachment, BroughtBeside, attachment, recorded, unfetched
from adapters.slack.written import unescaped
from adapters.text.links import labelled
from agent_core.rules.taint import FORWARDED, SHARED

Table = dict[str, Any]

PASSED_ON_CHARS = 6_000
DEEPEST = 8
_CLIPS = ("slack_audio", "slack_video")
NOT_SHOWN = "file that this app may not see"
LOOK_UP = "file:"
"""How the reference of a file begins of which a message brings no more than its id (https://docs.slack.dev/reference/objects/file-object)."""
_GONE = {
    "tombstone": "file that was deleted",
    "hidden_by_limit": "file that Slack does not show any more",
}


def beside(message: Table) -> BroughtBeside:
    """What a message brings beside its text. Raises whatever it wants if it is odd."""
    person = str(message.get("user") or "")
    files = [_file(one, person) for one in message.get("files") or ()]
    words, foreign = list[str](), ""
    for one in message.get("attachments") or ():
        said, whose = _added(one)
        if said:
            words.append(said)
            foreign = foreign or whose
        files += [_file(file, "") for file in one.get("files") or ()]
    if not str(message.get("text") or "").strip() and (shown := in_blocks(message.get("blocks"))):
        words.append(shown)
    return BroughtBeside("\n".join(words), tuple(files), foreign)


def _added(one: Table) -> tuple[str, str]:
    """What one of a message's attachments says, and whose words these are; empty for the preview of a page."""
    if one.get("is_share") or one.get("is_msg_unfurl") or one.get("is_reply_unfurl"):
        who = str(one.get("author_name") or one.get("author_subname") or "somebody")
        text = str(one.get("text") or "") or in_blocks(one.get("blocks")) or str(one.get("fallback") or "")
        return f"[Forwarded from {who}]\n{_short(unescaped(text))}", FORWARDED
    blocks = one.get("blocks") or ()
    if blocks and all(block.get("type") == "table" for block in blocks):
        return in_blocks(blocks), ""
    if one.get("from_url") or one.get("original_url"):
        return "", ""
    pieces = [one.get(key) for key in ("pretext", "author_name", "title", "text")]
    fields = [f"{field.get('title', '')}: {field.get('value', '')}" for field in one.get("fields") or ()]
    said = "\n".join(str(piece) for piece in (*pieces, *fields, in_blocks(blocks)) if piece)
    said = said or str(one.get("fallback") or "")
    return (f"[Added by an app: “{_short(unescaped(said))}”]", SHARED) if said else ("", "")


def looked_up(file: Table, person: str) -> Attachment:
    """A file of which Slack was asked what it is."""
    return _file({**file, "file_access": "visible"}, person)


def _file(file: Table, person: str) -> Attachment:
    """A file. It is the person's own voice if they recorded it here, and nobody else uploaded it."""
    if file.get("file_access") == "check_file_info" and (number := str(file.get("id") or "")):
        return attachment(LOOK_UP + number, str(file.get("name") or number), "", 0)
    mode = str(file.get("mode") or "")
    if mode == "external" or file.get("is_external"):
        return unfetched("file that lies on another site")
    ref = str(file.get("url_private") or file.get("url_private_download") or "")
    if mode in _GONE or not ref:
        return unfetched(_GONE.get(mode, NOT_SHOWN))
    mime = str(file.get("mimetype") or "").partition(";")[0]
    name, size = str(file.get("name") or "file"), int(file.get("size") or 0)
    clip = file.get("subtype")
    if clip == "slack_audio":  # Slack calls a clip a video now and then, or nothing at all
        mime = f"audio/{mime.partition('/')[2] or 'mp4'}"
    found = attachment(ref, name, mime, size)
    return recorded(found) if clip in _CLIPS and person and str(file.get("user") or person) == person else found


def in_blocks(blocks: object) -> str:
    """The words in blocks (https://docs.slack.dev/reference/block-kit/blocks); rows of tables with bars between their cells."""
    return "\n".join(line for line in _lines(blocks, 0) if line.strip())


def _tables(value: object, depth: int) -> Iterator[tuple[Table, int]]:
    """The blocks in a block or in lists of them, and how deep each lies; none deeper than `DEEPEST`."""
    if depth > DEEPEST:
        return
    if isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _tables(one, depth + 1)
    elif isinstance(value, dict):
        yield cast("Table", value), depth


def _lines(value: object, depth: int) -> Iterator[str]:
    for block, deep in _tables(value, depth):
        match block.get("type"):
            case "table":
                for row in block.get("rows") or ():
                    yield " | ".join("".join(_inline(cell, deep + 2)) for cell in row)
            case "rich_text_section" | "rich_text_preformatted" | "rich_text_quote":
                yield "".join(_inline(block, deep + 1))
            case _:
                yield from _lines_of(block, deep)


def _lines_of(block: Table, depth: int) -> Iterator[str]:
    text = block.get("text")
    if isinstance(text, str):
        yield unescaped(text)
    elif text is not None:
        yield from _lines(text, depth + 1)
    for key in ("title", "elements", "fields", "alt_text"):
        inner = block.get(key)
        if isinstance(inner, str):
            yield inner
        elif inner is not None:
            yield from _lines(inner, depth + 1)


def _inline(value: object, depth: int) -> Iterator[str]:
    """The pieces of one line."""
    for piece, deep in _tables(value, depth):
        match piece.get("type"):
            case "link":
                yield labelled(str(piece.get("text") or ""), str(piece.get("url") or ""))
            case "emoji":
                yield f":{piece.get('name')}:"
            case "user":
                yield f"<@{piece.get('user_id')}>"
            case "broadcast":
                yield f"@{piece.get('range')}"
            case "channel":
                yield f"#{piece.get('channel_id')}"
            case _:
                text = piece.get("text")
                yield text if isinstance(text, str) else ""
                yield from _inline(piece.get("elements"), deep + 1)


def _short(said: str) -> str:
    return said if len(said) <= PASSED_ON_CHARS else said[:PASSED_ON_CHARS] + " …"
