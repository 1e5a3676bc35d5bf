"""Whose words are in what a message brings beside its text, which of its files is taken, and to which conversation it belongs: pure, for each platform."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import (
    AttachmentKind,
    ChatKind,
    Content,
    ContentKind,
    Flow,
    Task,
    TaskState,
    spelled_content,
)
from adapters.discord.beside import beside as on_discord
from adapters.slack.beside import beside as on_slack
from adapters.slack.inbound import place_of
from adapters.slack.section import Direct
from adapters.telegram.beside import beside as on_telegram
from adapters.text.styled import Span, Style, Styled
from agent_core.jsonvalue import Json
from agent_core.rules.taint import FORWARDED, QUOTED, SHARED

# ---------------------------------------------------------------------- Telegram

PASSED_ON: dict[str, Json] = {"forward_date": 1}
FILE: dict[str, Json] = {"file_id": "f", "file_size": 5}
PLACE: dict[str, Json] = {"location": {"latitude": 1, "longitude": 2}}


def test_of_a_photo_the_largest_is_taken() -> None:
    sizes: list[Json] = [{"file_id": name, "file_size": size} for name, size in (("s", 5), ("m", 50), ("l", 500))]
    (found,) = on_telegram({"message_id": 9, "photo": sizes}).files
    assert (found.ref, found.size, found.kind) == ("l", 500, AttachmentKind.IMAGE)


@pytest.mark.parametrize("field", ["voice", "video_note"])
@pytest.mark.parametrize(
    ("more", "own", "foreign"), [({}, True, ""), (PASSED_ON, False, FORWARDED), ({"via_bot": {"id": 1}}, False, SHARED)]
)
def test_only_who_recorded_it_themselves_speaks_in_a_recording(
    field: str, more: dict[str, Json], foreign: str, *, own: bool
) -> None:
    found = on_telegram({"message_id": 9, field: FILE, **more})
    assert (found.files[0].kind is AttachmentKind.VOICE) is own
    assert found.foreign == foreign


@pytest.mark.parametrize(
    ("message", "foreign"),
    [
        (PLACE, ""),
        ({**PLACE, "venue": {"title": "Cafe", **PLACE}}, SHARED),
        ({"contact": {"first_name": "Bob", "phone_number": "1"}}, SHARED),
        ({"poll": {"question": "Tea?", "options": [{"text": "yes"}]}}, ""),
        ({**PLACE, **PASSED_ON}, FORWARDED),
    ],
)
def test_what_names_others_was_made_by_others(message: dict[str, Json], foreign: str) -> None:
    found = on_telegram({"message_id": 9, **message})
    assert found.words
    assert found.foreign == foreign


# ---------------------------------------------------------------------- Slack


@pytest.mark.parametrize(
    ("added", "said", "foreign"),
    [
        ({"is_share": True, "author_name": "Bob", "text": "buy milk"}, "buy milk", FORWARDED),
        ({"is_msg_unfurl": True, "author_name": "Bob", "text": "buy milk"}, "buy milk", FORWARDED),
        ({"title": "Build 7", "text": "buy milk"}, "buy milk", SHARED),
        ({"from_url": "https://e.org", "text": "buy milk"}, "", ""),
        ({"blocks": [{"type": "table", "rows": [[{"type": "raw_text", "text": "buy milk"}]]}]}, "buy milk", ""),
    ],
)
def test_on_slack_what_is_passed_on_or_put_in_by_apps_is_not_the_persons(
    added: dict[str, Any], said: str, foreign: str
) -> None:
    found = on_slack({"user": "U1", "text": "look", "attachments": [added]})
    assert (said in found.words, bool(found.words)) == (True, bool(said))
    assert found.foreign == foreign


OWN_TABLE = {"blocks": [{"type": "table", "rows": [[{"type": "raw_text", "text": "mine"}]]}]}
PASSED_ON_HERE = {"is_share": True, "author_name": "Bob", "text": "buy milk"}
PUT_IN = {"title": "Build 7", "text": "buy milk"}


@pytest.mark.parametrize("others", [PASSED_ON_HERE, PUT_IN])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_on_slack_what_others_wrote_marks_the_message_wherever_it_stands_among_what_is_own(
    others: dict[str, Any], place: int
) -> None:
    added = [OWN_TABLE, OWN_TABLE]
    added.insert(place, others)
    found = on_slack({"user": "U1", "text": "look", "attachments": added})
    assert found.foreign == (FORWARDED if others is PASSED_ON_HERE else SHARED)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ({}, AttachmentKind.FILE),
        ({"subtype": "slack_audio"}, AttachmentKind.VOICE),
        ({"subtype": "slack_audio", "user": "U2"}, AttachmentKind.FILE),
        ({"mode": "external"}, AttachmentKind.OTHER),
        ({"is_external": True}, AttachmentKind.OTHER),
        ({"mode": "tombstone"}, AttachmentKind.OTHER),
    ],
)
def test_on_slack_a_file_is_what_it_is_and_one_of_another_site_is_not_fetched(
    file: dict[str, Any], kind: AttachmentKind
) -> None:
    whole = {"id": "F1", "name": "a.bin", "url_private": "https://files.slack.com/a", "user": "U1", **file}
    (found,) = on_slack({"user": "U1", "text": "", "files": [whole]}).files
    assert found.kind is kind
    assert bool(found.ref) is (kind is not AttachmentKind.OTHER)
    (passed_on,) = on_slack({"user": "U1", "text": "", "attachments": [{"is_share": True, "files": [whole]}]}).files
    assert passed_on.kind is not AttachmentKind.VOICE


@pytest.mark.parametrize("direct", Direct)
@pytest.mark.parametrize("thread", ["", "4.0"])
@pytest.mark.parametrize("channel", ["C1", "D1"])
def test_on_slack_answers_stand_in_the_thread_of_what_they_answer(channel: str, thread: str, direct: Direct) -> None:
    event = {"channel": channel, "ts": "5.0", **({"thread_ts": thread} if thread else {})}
    address, kind, root = place_of(event, "T1", direct)
    root_of = thread or "5.0"
    assert kind is (ChatKind.PRIVATE if channel == "D1" else ChatKind.GROUP)
    if channel == "C1" or direct is Direct.THREADS:
        assert (address.thread, root) == (root_of, ""), "each thread is a conversation"
    elif direct is Direct.ONE:
        assert (address.thread, root) == ("", root_of), "one conversation in many threads"
    else:
        assert (address.thread, root) == (thread, ""), "beside each other"


# ---------------------------------------------------------------------- Discord


def discord_file(*, voice: bool = False) -> Any:
    return SimpleNamespace(
        content_type="audio/ogg", url="u", filename="a.ogg", title=None, size=5, is_voice_message=lambda: voice
    )


def discord_message(**more: Any) -> Any:
    base: dict[str, Any] = {
        "attachments": [],
        "message_snapshots": [],
        "poll": None,
        "stickers": [],
        "author": SimpleNamespace(id=1),
        "embeds": [],
    }
    return SimpleNamespace(**{**base, **more})


def test_on_discord_what_is_passed_on_or_answered_is_not_the_persons() -> None:
    voice = discord_file(voice=True)
    own = on_discord(discord_message(attachments=[voice]), None)
    assert (own.files[0].kind, own.foreign) == (AttachmentKind.VOICE, "")
    snapshot = SimpleNamespace(attachments=[voice], content="buy milk", stickers=[], embeds=[])
    passed_on = on_discord(discord_message(message_snapshots=[snapshot]), None)
    assert (passed_on.files[0].kind, passed_on.foreign) == (AttachmentKind.FILE, FORWARDED)
    assert "buy milk" in passed_on.words
    for author, more, foreign in ((1, {}, ""), (2, {}, QUOTED), (1, {"embeds": ["a page"]}, QUOTED)):
        answered = discord_message(author=SimpleNamespace(id=author), attachments=[voice], **more)
        found = on_discord(discord_message(), answered)
        assert (found.files[0].kind, found.foreign) == (AttachmentKind.FILE, foreign)


# ---------------------------------------------------------------------- what grows

TASKS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(TaskState)), max_size=2, unique_by=lambda one: one[0])
FLOWS = st.builds(
    lambda text, tasks: Flow(text, tuple(Task(name, name, state) for name, state in tasks)),  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType, reportUnknownArgumentType]
    st.text("xy", max_size=3),
    TASKS,
)


@given(FLOWS, FLOWS)
def test_what_stands_there_and_what_is_added_are_all_of_it_or_it_cannot_be_added(there: Flow, whole: Flow) -> None:
    more = there.to(whole)
    names = {task.id for task in whole.tasks}
    grows = whole.text.startswith(there.text) and {task.id for task in there.tasks} <= names
    assert (more is not None) is grows
    if more is not None:
        both = there + more
        assert both.text == whole.text
        assert {*both.tasks} == {*whole.tasks}
        assert not there.to(there), "nothing has to be added to what stands there"


@pytest.mark.parametrize("kind", ContentKind)
@pytest.mark.parametrize("spans", [(), (Span(0, 3, Style.BOLD),)])
def test_only_in_the_gateways_own_words_commands_are_spelled_as_they_are_written_there(
    kind: ContentKind, spans: tuple[Span, ...]
) -> None:
    said = Content(kind, Styled("Type {/why} now", spans))
    own = kind is ContentKind.ASIDE and not spans
    assert spelled_content(said, "!").body.text == ("Type !why now" if own else "Type {/why} now")
