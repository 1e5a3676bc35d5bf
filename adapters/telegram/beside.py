"""What a message of the Bot API brings beside its text: files, and what is told in words. Pure.

Law (tests/adapters/test_brought.py): whatever a message holds, there are words, a file or a reason for it.

Whose words they are: what the person says of themselves (where they are, what they ask in a poll, a voice message that they recorded here) is theirs;
what names others or was made by others (a contact, a place of a directory, anything forwarded) is not.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.contract.chat import Attachment, BroughtBeside, attachment, recorded, unfetched
from agent_core.jsonvalue import Json
from agent_core.rules.taint import FORWARDED, SHARED

Table = dict[str, Json]

_UNKNOWN: Mapping[str, str] = {
    "story": "story",
    "game": "game",
    "invoice": "invoice",
    "giveaway": "giveaway",
    "giveaway_winners": "giveaway",
    "paid_media": "paid picture or video",
    "passport_data": "passport",
    "gift": "gift",
    "unique_gift": "gift",
}
"""What bots are not given, by the key of it; and what it is called."""


def table(value: Json) -> Table:
    return value if isinstance(value, dict) else {}


def string(value: Json) -> str:
    return value if isinstance(value, str) else ""


def whole(value: Json) -> int:
    """A number, or 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def is_forwarded(message: Table) -> bool:
    return "forward_origin" in message or "forward_date" in message


def name_of(sender: Table) -> str:
    """A user's or a chat's name."""
    name = " ".join(part for part in (string(sender.get("first_name")), string(sender.get("last_name"))) if part)
    return name or string(sender.get("title")) or "somebody"


def origin_of(origin: Table) -> str:
    """Who wrote what is forwarded, or answered elsewhere (https://core.telegram.org/bots/api#messageorigin)."""
    match string(origin.get("type")):
        case "user":
            return name_of(table(origin.get("sender_user")))
        case "hidden_user":
            return string(origin.get("sender_user_name")) or "somebody"
        case "chat":
            return name_of(table(origin.get("sender_chat")))
        case "channel":
            return name_of(table(origin.get("chat")))
        case _:
            return "somebody"


def beside(message: Table) -> BroughtBeside:
    """What a message brings beside its text."""
    forwarded = is_forwarded(message)
    number = whole(message.get("message_id"))
    words, foreign = _told(message)
    if "via_bot" in message:
        foreign = SHARED  # another program wrote it, and its person chose it
    files = _files(message, number, own=not forwarded and not foreign)
    if not words and not files:
        unknown = next((words for key, words in _UNKNOWN.items() if key in message), "")
        files = (unfetched(unknown),) if unknown else ()
    return BroughtBeside(words, files, FORWARDED if forwarded else foreign)


def _files(message: Table, number: int, *, own: bool) -> tuple[Attachment, ...]:
    if isinstance(photos := message.get("photo"), list) and photos:
        return (_file(table(photos[-1]), f"photo-{number}.jpg", "image/jpeg"),)
    if animation := table(message.get("animation")):
        still = table(animation.get("thumbnail")) or table(animation.get("thumb"))
        if still:
            return (_file(still, f"animation-{number}.jpg", "image/jpeg"),)
        return (_file(animation, f"animation-{number}.mp4", "video/mp4"),)
    for field, name, mime in (("voice", "voice-{}.ogg", "audio/ogg"), ("video_note", "video-note-{}.mp4", "video/mp4")):
        if file := table(message.get(field)):
            made = _file(file, name.format(number), mime)
            return (recorded(made) if own else made,)
    for field, name, mime in (
        ("document", "file", ""),
        ("audio", f"audio-{number}.mp3", "audio/mpeg"),
        ("video", f"video-{number}.mp4", "video/mp4"),
    ):
        if file := table(message.get(field)):
            return (_file(file, name, mime),)
    return ()


def _file(file: Table, name: str, mime: str) -> Attachment:
    """Raises `TypeError` if it has no id."""
    ref = file.get("file_id")
    if not isinstance(ref, str):
        raise TypeError("a file has an id")
    given = string(file.get("mime_type")) or mime
    return attachment(ref, string(file.get("file_name")) or name, given, whole(file.get("file_size")))


def _told(message: Table) -> tuple[str, str]:
    """What is said in words, and whose it is."""
    if "animation" in message:
        return "[An animation (GIF); the picture is its first frame]", ""
    if sticker := table(message.get("sticker")):
        return f"[A sticker: {string(sticker.get('emoji')) or 'without an emoji'}]", ""
    if venue := table(message.get("venue")):
        where = _where(table(venue.get("location")) or table(message.get("location")))
        return f"[A place: {string(venue.get('title'))}, {string(venue.get('address'))} ({where})]", SHARED
    if location := table(message.get("location")):
        if "live_period" in location:
            return f"[Where I am now: {_where(location)}; I share it for a while, but you hear of it this once]", ""
        return f"[A location: {_where(location)}]", ""
    if contact := table(message.get("contact")):
        found = f"{name_of(contact)}, {string(contact.get('phone_number'))}"
        return f"[A contact: {found}]", SHARED
    if poll := table(message.get("poll")):
        return _poll(poll), ""
    if dice := table(message.get("dice")):
        return f"[Thrown: {string(dice.get('emoji'))} shows {whole(dice.get('value'))}]", ""
    if checklist := table(message.get("checklist")):
        tasks = [_task(table(one)) for one in _list(checklist.get("tasks"))]
        return f"[A checklist: {string(checklist.get('title'))}\n{_numbered(tasks)}]", ""
    return "", ""


def _where(location: Table) -> str:
    at = f"latitude {location.get('latitude')}, longitude {location.get('longitude')}"
    near = location.get("horizontal_accuracy")
    return f"{at}, to {near:g} m" if isinstance(near, int | float) and near else at


def _task(task: Table) -> str:
    return f"{string(task.get('text'))}{' (done)' if whole(task.get('completion_date')) else ''}"


def _poll(poll: Table) -> str:
    voted = bool(whole(poll.get("total_voter_count")))
    options = [_option(table(one), voted=voted) for one in _list(poll.get("options"))]
    kind = "quiz" if poll.get("type") == "quiz" else "poll"
    several = ", several answers are possible" if poll.get("allows_multiple_answers") is True else ""
    closed = ", closed" if poll.get("is_closed") is True else ""
    return f"[A {kind}{several}{closed}: {string(poll.get('question'))}\n{_numbered(options)}]"


def _option(option: Table, *, voted: bool) -> str:
    """Nobody is told of votes before there are any."""
    votes = f" (votes: {whole(option.get('voter_count'))})" if voted else ""
    return f"{string(option.get('text'))}{votes}"


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _numbered(lines: list[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
