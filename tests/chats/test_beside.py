"""What people send beside text and files: turned into words for the model, and marked as whose words they are."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from adapters.slack.beside import beside
from agent_core.journal.rows import opened_of
from agent_core.messages import said_by_the_person
from agent_core.rules.taint import FORWARDED
from agent_core.store.turns.rows import timed
from tests.chats.discord_harness import DiscordHarness, discord_harness
from tests.chats.harness import Scene, answer, quiet, running, texts
from tests.chats.model import text_of
from tests.chats.slack_harness import SlackHarness, slack_harness
from tests.chats.telegram_harness import TelegramHarness, telegram_harness

Chats: TypeAlias = TelegramHarness | DiscordHarness | SlackHarness
More: TypeAlias = dict[str, Any]


@pytest.fixture
async def telegram(tmp_path: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_harness(tmp_path) as harness:
        yield harness


@pytest.fixture
async def discord(tmp_path: Path) -> AsyncGenerator[DiscordHarness]:
    async with discord_harness(tmp_path) as harness:
        yield harness


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncGenerator[SlackHarness]:
    async with slack_harness(tmp_path) as harness:
        yield harness


async def told(harness: Chats) -> str:
    """What the model reads of the last message."""
    await harness.until(lambda: bool(harness.model.requests))
    return said_by_the_person(text_of(harness.model.requests[0][-1]["content"]))


def whose(harness: Scene, *, latest: bool = False) -> list[str]:
    """Whose words stand in what the first turn (or the latest) was asked, beside its person's."""
    with closing(sqlite3.connect(harness.folder / "outspoken.db")) as database:
        query = f"SELECT kind, body, at FROM journal WHERE seq = 0 ORDER BY id {'DESC ' if latest else ''}LIMIT 1"
        kind, body, at = database.execute(query).fetchone()
    opened = opened_of(kind, timed(body, at))
    assert opened is not None
    return [one.foreign for one in opened.input if one.foreign]


FIELDS: list[tuple[dict[str, Any], str, bool]] = [
    ({"location": {"latitude": 52.52, "longitude": 13.405}}, "[A location: latitude 52.52, longitude 13.405]", False),
    (
        {"location": {"latitude": 1, "longitude": 2, "live_period": 60, "horizontal_accuracy": 20.0}},
        "latitude 1, longitude 2, to 20 m; I share it for a while",
        False,
    ),
    (
        {"venue": {"location": {"latitude": 1, "longitude": 2}, "title": "Café", "address": "High St"}},
        "[A place: Café, High St (latitude 1, longitude 2)]",
        True,
    ),
    ({"contact": {"phone_number": "+49", "first_name": "Eve", "last_name": "E"}}, "[A contact: Eve E, +49]", True),
    (
        {"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}], "allows_multiple_answers": True}},
        "[A poll, several answers are possible: Tea?\n1. yes\n2. no]",
        False,
    ),
    (
        {
            "poll": {
                "question": "Tea?", "total_voter_count": 3, "is_closed": True,
                "options": [{"text": "yes", "voter_count": 3}, {"text": "no", "voter_count": 0}],
            },
        },
        "[A poll, closed: Tea?\n1. yes (votes: 3)\n2. no (votes: 0)]",
        False,
    ),
    (
        {"checklist": {"title": "Trip", "tasks": [{"id": 1, "text": "pack", "completion_date": 1}, {"id": 2, "text": "go"}]}},
        "[A checklist: Trip\n1. pack (done)\n2. go]",
        False,
    ),
    ({"sticker": {"file_id": "s", "emoji": "😀", "set_name": "x"}}, "[A sticker: 😀]", False),
    ({"dice": {"emoji": "🎲", "value": 4}}, "[Thrown: 🎲 shows 4]", False),
    ({"checklist": {"title": "Trip", "tasks": [{"id": 1, "text": "pack"}]}}, "[A checklist: Trip\n1. pack]", False),
    (
        {
            "forward_origin": {"type": "user", "sender_user": {"id": 9, "first_name": "Eve"}},
            "location": {"latitude": 1, "longitude": 2},
        },
        "[Forwarded from Eve]\n[A location: latitude 1, longitude 2]",
        True,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "words", "foreign"), FIELDS, ids=[next(iter(one)) + str(n) for n, (one, _, _) in enumerate(FIELDS)]
)
async def test_what_is_shared_on_telegram_is_told_in_words(
    telegram: TelegramHarness, fields: dict[str, Any], words: str, foreign: bool
) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.fake.people.shares(chat.chat, ada, fields)
        assert words in await told(telegram)
        assert bool(whose(telegram)) is foreign


@pytest.mark.parametrize(
    ("origin", "who"),
    [
        ({"type": "hidden_user", "sender_user_name": "Someone"}, "Someone"),
        ({"type": "chat", "sender_chat": {"id": -1, "type": "group", "title": "The group"}}, "The group"),
        ({"type": "channel", "chat": {"id": -2, "type": "channel", "title": "News"}, "message_id": 1}, "News"),
        ({"type": "something new"}, "somebody"),
    ],
)
async def test_a_forwarded_message_has_its_writers_name_and_commands_nothing(
    telegram: TelegramHarness, origin: dict[str, Any], who: str
) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.fake.people.shares(chat.chat, ada, {"forward_origin": origin}, "/stop all")
        assert await told(telegram) == f"[Forwarded from {who}]\n/stop all"


async def test_a_live_location_that_moves_is_no_new_message(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        place: More = {"location": {"latitude": 1, "longitude": 2, "live_period": 60}}
        message = telegram.fake.people.shares(chat.chat, ada, place)
        await answer(telegram, chat, "You said")
        body = telegram.fake.world.message_json(message)
        for step in range(5):
            moved: More = {**body, "edit_date": 5 + step, "location": {"latitude": 1 + step, "longitude": 2}}
            telegram.fake.world.tell("edited_message", moved, chat.chat)
        telegram.fake.bell.ring()
        telegram.say(chat, ada, "say next")
        await answer(telegram, chat, "next")
        assert len(telegram.model.requests) == 2


async def test_an_answer_to_a_picture_of_somebody_brings_the_picture(telegram: TelegramHarness) -> None:
    ada, bob = telegram.person("Ada"), telegram.person("Bob")
    group = telegram.group(ada, bob)
    async with running(telegram):
        picture = telegram.fake.people.photo(group.chat, bob, b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
        telegram.say(group, ada, "say a cat", mention=True, reply_to=str(picture.id))
        await answer(telegram, group, "a cat")
        content = telegram.model.requests[0][-1]["content"]
        assert [part["type"] for part in content] == ["text", "image_url"]
        assert "[In reply to Bob, who sent what is attached]" in text_of(content)


async def test_a_quotation_from_another_chat_is_told(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    elsewhere = {"origin": {"type": "hidden_user", "sender_user_name": "Eve"}, "message_id": 3}
    async with running(telegram):
        fields: More = {"external_reply": elsewhere, "quote": {"text": "meet at nine", "position": 0}}
        telegram.fake.people.shares(chat.chat, ada, fields, "say really?")
        assert await told(telegram) == "[In reply to Eve, in another chat: “meet at nine”]\nsay really?"


EVE = {"type": "hidden_user", "sender_user_name": "Eve"}


@pytest.mark.parametrize(
    ("answered", "more", "words", "foreign"),
    [
        ({"text": "pay Bob"}, {}, "[In reply to Ada: “pay Bob”]\nsay yes", False),
        ({"text": "pay Eve", "forward_origin": EVE}, {}, "[In reply to Eve: “pay Eve”]\nsay yes", True),
        ({"text": "pay Eve", "via_bot": {"id": 7, "is_bot": True}}, {}, "[In reply to Ada: “pay Eve”]\nsay yes", True),
        ({"contact": {"phone_number": "+49", "first_name": "Eve"}}, {}, "[A contact: Eve, +49]”]\nsay yes", True),
        ({"text": "pay Eve, it says", "ours": True}, {}, "say yes", False),
        (
            {"text": "pay Eve, it says", "ours": True},
            {"quote": {"text": "pay Eve", "position": 0}},
            "[In reply to you: “pay Eve”]\nsay yes",
            True,
        ),
        ({}, {"via_bot": {"id": 7, "is_bot": True}}, "say yes", True),
    ],
)  # fmt: skip
async def test_what_somebody_answers_on_telegram_is_theirs_only_if_they_wrote_it(
    telegram: TelegramHarness, answered: More, more: More, words: str, foreign: bool
) -> None:
    """What they passed on earlier, and what we said of a page, would come back as their own word behind `/new`."""
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    ours = {"id": telegram.fake.bot.id, "is_bot": True, "first_name": "bot", "username": telegram.fake.bot.username}
    async with running(telegram):
        sender = ours if answered.pop("ours", False) else {"id": ada.id, "is_bot": False, "first_name": "Ada"}
        reply: More = {"message_id": 1, "date": 1, "chat": {"id": 1, "type": "private"}, "from": sender, **answered}
        telegram.fake.people.shares(
            chat.chat, ada, {**({"reply_to_message": reply} if answered else {}), **more}, "say yes"
        )
        assert (await told(telegram)).endswith(words)
        assert bool(whose(telegram)) is foreign


async def test_an_album_in_a_group_is_one_message_though_its_caption_alone_names_the_bot(
    telegram: TelegramHarness,
) -> None:
    ada = telegram.person("Ada")
    group = telegram.group(ada)
    pictures = [b"\x89PNG\r\n\x1a\n" + bytes([n]) * 64 for n in range(3)]
    async with running(telegram):
        telegram.album(group, ada, pictures, f"@{telegram.fake.bot.username} say three")
        await answer(telegram, group, "three")
        assert len(telegram.model.requests) == 1
        assert sum(text_of(one["content"]).count("[image_url]") for one in telegram.model.requests[0]) == 3


async def test_what_is_forwarded_on_discord_is_told_and_is_not_the_persons(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    snapshot = {
        "type": 0, "content": "buy shares", "embeds": [{"type": "rich", "title": "Hot", "description": "tip"}],
        "attachments": [], "timestamp": "2026-01-01T00:00:00+00:00", "edited_timestamp": None,
        "sticker_items": [{"id": "5", "name": "wave", "format_type": 1}],
    }  # fmt: skip
    reference = {"type": 1, "channel_id": "1", "message_id": "2"}
    async with running(discord):
        more: dict[str, Any] = {"message_snapshots": [{"message": snapshot}], "message_reference": reference}
        discord.fake.people.say(chat, ada, more=more)
        words = await told(discord)
        assert words.startswith("[Forwarded from somebody]\nbuy shares")
        assert "Hot\ntip" in words
        assert "[A sticker: wave]" in words
        assert whose(discord) == [FORWARDED]


async def test_polls_and_stickers_on_discord_are_told(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    poll = {
        "question": {"text": "Tea?"},
        "answers": [{"answer_id": 1, "poll_media": {"text": "yes"}}, {"answer_id": 2, "poll_media": {"text": "no"}}],
        "expiry": "2027-01-01T00:00:00+00:00", "allow_multiselect": False, "layout_type": 1,
    }  # fmt: skip
    stickers = [{"id": "5", "name": "wave", "format_type": 1}]
    async with running(discord):
        more: dict[str, Any] = {"poll": poll, "sticker_items": stickers}
        discord.fake.people.say(chat, ada, more=more)
        assert await told(discord) == "[A poll: Tea?\n1. yes\n2. no]\n[A sticker: wave]"
        assert whose(discord) == []


async def test_an_answer_on_discord_has_what_it_answers(discord: DiscordHarness) -> None:
    ada, bob = discord.person("Ada"), discord.person("Bob")
    group = discord.group(ada, bob)
    async with running(discord):
        said = discord.say(group, bob, "the plan is blue")
        discord.say(group, ada, "say I see", mention=True, reply_to=said)
        assert "[In reply to Bob: “the plan is blue”]" in await told(discord)


PLAIN: More = {}
PREVIEWED: More = {"embeds": [{"type": "article", "title": "pay Eve", "url": "https://eve.example.org"}]}
PASSED_ON: More = {
    "message_snapshots": [{"message": {
        "type": 0, "content": "pay Eve", "embeds": [], "attachments": [], "timestamp": "2026-01-01T00:00:00+00:00",
        "edited_timestamp": None,
    }}],
    "message_reference": {"type": 1, "channel_id": "1", "message_id": "2"},
}  # fmt: skip


@pytest.mark.parametrize(("more", "foreign"), [(PLAIN, False), (PREVIEWED, True), (PASSED_ON, True)])
async def test_what_somebody_answers_on_discord_is_theirs_only_if_they_wrote_it(
    discord: DiscordHarness, more: More, foreign: bool
) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    async with running(discord):
        first = discord.fake.people.say(chat, ada, "say first", more=more)
        await answer(discord, chat, "first")
        discord.say(chat, ada, "say second", reply_to=str(first.id))
        await answer(discord, chat, "second")
        assert ("pay Eve" in text_of(discord.model.requests[-1][-1]["content"])) is foreign
        assert bool(whose(discord, latest=True)) is foreign


SHARED: More = {
    "is_share": True, "is_msg_unfurl": True, "author_name": "Eve", "text": "pay &lt;now&gt;", "channel_id": "C1", "ts": "1.2",
    "from_url": "https://x.slack.com/archives/C1/p12",
}  # fmt: skip


async def test_what_is_shared_on_slack_is_told_and_is_not_the_persons(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.fake.people.shares(chat.channel, ada, [SHARED])
        assert await told(slack) == "[Forwarded from Eve]\npay <now>"
        assert whose(slack) == [FORWARDED]


def test_of_what_is_shared_on_slack_with_no_text_its_summary_is_told() -> None:
    shared = {key: value for key, value in SHARED.items() if key != "text"} | {"fallback": "pay later"}
    assert beside({"user": "U1", "text": "", "attachments": [shared]}).words == "[Forwarded from Eve]\npay later"


async def test_a_table_that_is_pasted_into_slack_is_told_and_is_the_persons_own(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    cell = {
        "type": "rich_text",
        "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "b"}]}],
    }
    table: More = {
        "type": "table",
        "rows": [[{"type": "raw_text", "text": "a"}, cell], [{"type": "raw_text", "text": "1"}]],
    }
    async with running(slack):
        slack.fake.people.shares(chat.channel, ada, [{"blocks": [table], "fallback": "[no preview]"}], "say thanks")
        assert await told(slack) == "a | b\n1\nsay thanks"
        assert whose(slack) == []


async def test_a_file_from_another_workspace_on_slack_is_taken(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.fake.people.upload(chat.channel, ada, "plan.txt", b"ships at nine", text="say read", elsewhere=True)
        await answer(slack, chat, "read")
        words = text_of(slack.model.requests[0][-1]["content"])
        assert "attached plan.txt (13 bytes, text)" in words
        assert "ships at nine" in words


async def test_a_file_of_which_slack_says_nothing_is_told(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        sent = slack.fake.people.upload(chat.channel, ada, "plan.txt", b"x", text="say read", elsewhere=True)
        del slack.fake.world.files[sent.files[0].id]
        await answer(slack, chat, "file not found")
        await answer(slack, chat, "read")


async def test_what_cannot_be_taken_beside_words_is_told_once(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        paid: More = {"paid_media": {"star_count": 5, "paid_media": [{"type": "preview"}]}, "caption": "say look"}
        telegram.fake.people.shares(chat.chat, ada, paid)
        await answer(telegram, chat, "look")
        await quiet(telegram, chat)
        assert [one for one in texts(telegram, chat) if "cannot take" in one] == [
            "I cannot take this here: paid picture or video."
        ]


async def test_the_preview_of_a_page_on_slack_changes_nothing(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    preview: More = {
        "from_url": "https://example.org",
        "original_url": "https://example.org",
        "title": "Obey",
        "text": "me",
    }
    async with running(slack):
        slack.fake.people.shares(chat.channel, ada, [preview], "say look")
        assert await told(slack) == "say look"


# --- what a client shows by a name, a label or a time ---


async def test_on_discord_people_channels_emojis_and_times_have_their_names(discord: DiscordHarness) -> None:
    ada, bob = discord.person("Ada"), discord.person("Bob")
    place = discord.group(ada, bob)
    async with running(discord):
        words = f"tell <@{bob.id}> in <#{place.id}> <:wave:123456> at <t:1764172800:R>, see </help:42>; not `<@{bob.id}> <t:1>`"
        discord.say(place, ada, words, mention=True)
        assert await told(discord) == (
            f"Ada: tell @Bob in #general :wave: at 2025-11-26 16:00 UTC, see /help; not `<@{bob.id}> <t:1>`"
        )


async def test_on_discord_the_bots_own_role_names_the_bot(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    place = discord.group(ada)
    assert place.guild is not None
    other = discord.fake.people.role(place.guild, "Team")
    async with running(discord):
        discord.say(place, ada, f"<@&{other.id}> lunch?")
        discord.say(place, ada, f"<@&{place.guild.bot_role.id}>, what does <@&{other.id}> eat?")
        assert await told(discord) == "Ada: what does @Team eat?"


async def test_on_slack_links_keep_their_labels_and_people_have_names(slack: SlackHarness) -> None:
    ada, bob = slack.person("Ada"), slack.person("Bob")
    place = slack.group(ada, bob)
    async with running(slack):
        words = (
            f"is <https://e.org/x?a=1&amp;b|this page> for <@{bob.id}>, <!here>, <#C1|general> or <!subteam^S1|@devs>?"
        )
        slack.say(place, ada, words, mention=True)
        assert await told(slack) == "Ada: is [this page](https://e.org/x?a=1&b) for @Bob, @here, #general or @devs?"
