"""Approvals as people meet them: once, for longer, taken back; and who may give them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.chats.harness import Harness, answer, process, quiet, running, texts
from tests.chats.telegram_harness import telegram_harness

ONCE, HERE, ALWAYS, DENY = "✅ Approve", "✅ For this conversation", "✅ Always for such calls", "🚫 Deny"
ASKS = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file"}


async def test_what_is_approved_for_longer_is_listed_counts_after_a_kill_and_is_taken_back(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        ada = telegram.person("Ada")
        chat = telegram.private(ada)
        async with process(telegram, **ASKS) as one:
            telegram.say(chat, ada, "write notes/a.txt: x")
            asked = await answer(telegram, chat, 'May I write "notes/a.txt" (1 line)? (write_file)')
            assert "A lasting approval covers: write_file, path notes/…." in asked.text
            assert "Decide within 10 min" in asked.text
            assert "left to decide" not in asked.text
            telegram.press(chat, ada, asked.id, ALWAYS)
            await answer(telegram, chat, "✅ Approved always for such calls")
            await answer(telegram, chat, "Done: Wrote")
            telegram.say(chat, ada, "write other.txt: x")
            asked = await answer(telegram, chat, 'May I write "other.txt"')
            telegram.press(chat, ada, asked.id, HERE)
            await answer(telegram, chat, "✅ Approved for this conversation")
            await answer(telegram, chat, "Done: Wrote other.txt")
            await one.kill()
        async with process(telegram, **ASKS):
            telegram.say(chat, ada, "write notes/b.txt: x")
            await answer(telegram, chat, "Done: Wrote notes/b.txt")
            telegram.command(chat, ada, "why", "")
            await answer(telegram, chat, "Approved before: write_file.")
            telegram.command(chat, ada, "approvals", "")
            listed = await answer(telegram, chat, "1. every call of write_file with path notes/…: always")
            assert 'path "other.txt": for this conversation' in listed.text
            telegram.command(chat, ada, "approvals", "revoke all")
            await answer(telegram, chat, "Taken back: every call of write_file with path notes/…")
            telegram.say(chat, ada, "write notes/c.txt: x")
            asked = await answer(telegram, chat, 'May I write "notes/c.txt"')
            telegram.press(chat, ada, asked.id, DENY)
            await answer(telegram, chat, '⛔ Not approved: write "notes/c.txt"')
            telegram.say(chat, ada, "write other.txt: y")
            await answer(telegram, chat, "May I write", 20)
            telegram.command(chat, ada, "approvals", "")
            await answer(telegram, chat, "Nothing is approved here for longer than once")
    assert not list(tmp_path.rglob("c.txt"))


async def test_somebody_else_in_a_group_does_not_decide_and_is_told_who_may(platform: Harness) -> None:
    ada, ben = platform.person("Ada"), platform.person("Ben")
    group = platform.group(ada, ben)
    async with running(platform, **ASKS):
        platform.say(group, ada, "write a.txt: x", mention=True)
        asked = await answer(platform, group, "May I write")
        platform.press(group, ben, asked.id, ONCE)
        await answer(platform, group, "Only Ada or an admin may decide that. It still waits.")
        await quiet(platform, group)
        assert not list(platform.folder.rglob("a.txt"))
        platform.press(group, ada, asked.id, ONCE)
        await answer(platform, group, "Done: Wrote")
    assert any("✅ Approved: write" in text for text in texts(platform, group))


def writes(path: str, content: str) -> str:
    return f"usetool write_file {json.dumps({'path': path, 'content': content})}"


async def test_what_would_become_of_a_file_stands_in_the_question_and_all_of_it_beside_it(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    old = "\n".join(f"line {number}" for number in range(1, 121))
    async with running(platform, OUTSPOKEN_TOOLS__APPROVAL="write_file,delete_file"):
        platform.say(chat, ada, writes("a.txt", "milk\nbread\neggs"))
        asked = await answer(platform, chat, "+milk")
        assert "+3 −0" in asked.text
        assert 'path: "a.txt"' in asked.text
        assert "content:" not in asked.text  # it stands in the diff
        platform.press(chat, ada, asked.id, ONCE)
        await answer(platform, chat, "Done: Wrote")
        platform.say(chat, ada, writes("a.txt", "milk\nbutter\neggs"))
        asked = await answer(platform, chat, "+butter")
        assert "-bread" in asked.text
        assert "+1 −1" in asked.text
        platform.press(chat, ada, asked.id, DENY)
        await answer(platform, chat, "⛔ Not approved")
        platform.say(chat, ada, writes("b.txt", old))
        asked = await answer(platform, chat, "+line 1")
        assert "more lines of the change" in asked.text
        platform.press(chat, ada, asked.id, DENY)
        await answer(platform, chat, "⛔ Not approved", 2)
    assert [path.read_text() for path in platform.folder.rglob("a.txt")] == ["milk\nbread\neggs"]
