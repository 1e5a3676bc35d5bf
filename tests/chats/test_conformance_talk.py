"""Conformance, part 1: what a person sees of an answer, whatever the platform."""

from __future__ import annotations

import asyncio
import re

import pytest

from agent_core.messages import said_by_the_gateway, said_by_the_person
from tests.agent_core.oddfiles import WORDS, encrypted_pdf, pdf
from tests.chats.harness import Harness, answer, answers, quiet, running, texts
from tests.chats.model import long_text, text_of


async def test_a_question_is_answered_once(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "say hello yourself")
        await answer(platform, chat, "hello yourself")
        await quiet(platform, chat)
        assert texts(platform, chat) == ["hello yourself"]


async def test_an_answer_of_marks_alone_is_not_silent(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "say &nbsp;")
        await answer(platform, chat, "nbsp;")


async def test_who_only_names_the_bot_is_answered(platform: Harness) -> None:
    ada = platform.person("Ada")
    place = platform.group(ada)
    async with running(platform):
        platform.say(place, ada, "", mention=True)
        await answer(platform, place, "You said")
        asked = said_by_the_person(text_of(platform.model.requests[0][-1]["content"]))
        assert asked == "Ada: (called you by your name, without words)"


async def test_a_long_answer_is_whole_and_in_order(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "long 1800")
        await answer(platform, chat, "word1799", 20)
        await quiet(platform, chat)
        shown = " ".join(texts(platform, chat))
        assert len(texts(platform, chat)) > 2
        assert shown.split() == long_text(1800).split()


async def test_text_on_its_way_is_seen_before_the_end(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold so far so good")
        await platform.until(lambda: "so far so good" in platform.preview(chat) + "".join(texts(platform, chat)), 8)
        platform.model.release()
        await answer(platform, chat, "so far so good end")


async def test_thoughts_that_were_taken_for_the_answer_go_when_their_end_is_seen_and_do_not_come_again(
    platform: Harness,
) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "aloud ships")
        await platform.until(lambda: "I should think" in platform.preview(chat) + "".join(texts(platform, chat)), 8)
        platform.model.release()
        await answer(platform, chat, "ships end")
        await platform.until(lambda: texts(platform, chat) == ["ships end"], 20)
        platform.say(chat, ada, "aloud trains")
        await answer(platform, chat, "trains end")
        await quiet(platform, chat)
        assert texts(platform, chat) == ["ships end", "trains end"]


async def test_a_preview_and_its_final_are_one(platform: Harness) -> None:
    ada = platform.person("Ada")
    for place in (platform.private(ada), platform.group(ada)):
        platform.model.released.clear()
        async with running(platform):
            platform.say(place, ada, "hold here it comes", mention=True)
            await platform.until(
                lambda p=place: "here it comes" in platform.preview(p) + "".join(texts(platform, p)), 12
            )
            platform.model.release()
            await answer(platform, place, "here it comes end")
            await quiet(platform, place)
            assert len([t for t in texts(platform, place) if "here it comes" in t]) == 1
            assert platform.preview(place) == ""


async def test_answers_come_in_the_order_of_the_questions(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        for number in range(5):
            platform.say(chat, ada, f"say answer number {number}")
        await answer(platform, chat, "number 4", 20)
        await quiet(platform, chat)
        found = [t for t in texts(platform, chat) if t.startswith("answer number")]
        assert found == [f"answer number {number}" for number in range(5)]


async def test_what_is_said_behind_a_command_is_said_after_it(platform: Harness) -> None:
    """However quickly one follows the other: they come together after an outage."""
    ada = platform.person("Ada")
    chat = platform.private(ada)

    def command(name: str, words: str = "") -> None:
        if platform.name == "slack":  # whose slash commands come by a way of their own
            platform.say(chat, ada, f"!{name} {words}".strip())
        else:
            platform.command(chat, ada, name, words)

    async with running(platform):
        platform.say(chat, ada, "say one")
        await answer(platform, chat, "one")
        command("new")
        platform.say(chat, ada, "say two")
        await answer(platform, chat, "two")
        platform.say(chat, ada, "say three")
        await answer(platform, chat, "three")
        command("undo")
        platform.say(chat, ada, "say four")
        await answer(platform, chat, "four")
        command("queue", "say five")
        platform.say(chat, ada, "say six")
        await answer(platform, chat, "six")
        past = [
            said_by_the_person(text_of(one["content"])) for one in platform.model.requests[-1] if one["role"] == "user"
        ]
        assert past == ["say two", "say four", "say five", "say six"]


async def test_markdown_is_shown_as_it_is_meant(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "markdown")
        seen = await answer(platform, chat, "print(1)")
        assert seen.bold == ("bold",)
        assert seen.code == ("print(1)",)
        assert "**" not in seen.text
        assert "```" not in seen.text


SCRIPTS = ["👩‍👩‍👧‍👦 🏳️‍🌈 é", "שלום עולם", "مرحبا", "日本語のテキスト", "a_b*c`d[e](f"]


async def test_every_script_survives(platform: Harness) -> None:
    chats = [(platform.person(f"Ada{number}"), text) for number, text in enumerate(SCRIPTS)]
    async with running(platform):
        for ada, text in chats:
            chat = platform.private(ada)
            platform.say(chat, ada, f"say {text}")
            await platform.until(lambda chat=chat, text=text: texts(platform, chat) == [text])


async def test_what_is_said_beside_a_tool_is_a_message_of_its_own(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "write notes.txt: milk")
        await answer(platform, chat, "Done: ")
        await quiet(platform, chat)
        assert [t.split(":")[0] for t in texts(platform, chat)] == ["I write it down.", "Done"]


async def test_typing_while_it_works_and_none_after_the_end(platform: Harness) -> None:
    if not platform.shows_typing:
        pytest.skip("bots are not shown typing here")
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold")
        await platform.until(lambda: platform.typing(chat) or platform.preview(chat) != "", 8)
        platform.model.release()
        await answer(platform, chat, "end")
        await asyncio.sleep(0.3)
        assert not platform.typing(chat)
        before = platform.writes_since(1000)
        await asyncio.sleep(6)
        assert platform.writes_since(1000) == before


async def test_a_status_is_shown_while_the_model_is_silent_and_goes(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    more = {"OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS": "60", "OUTSPOKEN_MODEL__STALL_SECONDS": "60"}
    async with running(platform, **more):
        platform.model.released.clear()
        platform.say(chat, ada, "hold")
        await answer(platform, chat, "⏳", 40)
        platform.model.release()
        await answer(platform, chat, "end")
        await platform.until(lambda: not [t for t in texts(platform, chat) if "⏳" in t])


async def test_a_silence_after_words_is_seen_as_long_as_it_lasts(platform: Harness) -> None:
    ada = platform.person("Ada")
    places = (platform.private(ada), platform.group(ada))
    more = {"OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS": "60", "OUTSPOKEN_MODEL__STALL_SECONDS": "30"}
    async with running(platform, **more):
        platform.model.released.clear()
        for place in places:
            platform.say(place, ada, "hold I will write it.", mention=place is not places[0])
        shown = [await answer(platform, place, "⏳", 40) for place in places]
        seen: list[bool] = []
        for _ in range(20):  # its status comes after fourteen seconds; it is a stall after thirty
            await asyncio.sleep(0.15)
            seen += [any("⏳" in one for one in texts(platform, place)) for place in places]
        assert all(seen), "it is not taken away while the silence lasts"
        for place, one in zip(places, shown, strict=True):
            statuses = [each.id for each in answers(platform, place) if "⏳" in each.text]
            assert statuses == [one.id], "and it is one message"
        platform.model.release()
        for place in places:
            await answer(platform, place, "end")
        await platform.until(lambda: not [t for place in places for t in texts(platform, place) if "⏳" in t])


async def test_a_broken_answer_ends_in_a_notice_with_buttons(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "stall Now dispatching task 5")
        notice = await answer(platform, chat, "⚠️", 30)
        assert "Now dispatching task 5" in texts(platform, chat)[0]
        assert set(notice.buttons) >= {"Continue", "Why?"}
        assert answers(platform, chat)[-1] == notice


async def test_nothing_from_the_model_ends_in_a_notice(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "empty")
        notice = await answer(platform, chat, "⚠️", 30)
        assert re.search(r"nothing|empty", notice.text)


async def test_a_model_that_is_down_ends_in_a_notice(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    platform.model.failing = True
    async with running(platform):
        platform.say(chat, ada, "say hi")
        await answer(platform, chat, "⚠️", 30)


async def test_the_continue_button_goes_on(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "stall Well")
        notice = await answer(platform, chat, "⚠️", 30)
        platform.press(chat, ada, notice.id, "Continue")
        await answer(platform, chat, "You said: continue")


async def test_a_button_that_is_pressed_twice_is_one_wish(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "stall Well")
        notice = await answer(platform, chat, "⚠️", 30)
        before = len(platform.model.requests)
        platform.press(chat, ada, notice.id, "Continue")
        platform.press(chat, ada, notice.id, "Continue")
        await answer(platform, chat, "already")
        await quiet(platform, chat)
        assert len(platform.model.requests) - before == 1


async def test_the_retry_button_answers_again_without_what_failed(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    platform.model.failing = True
    async with running(platform):
        platform.say(chat, ada, "say it again")
        notice = await answer(platform, chat, "⚠️", 30)
        platform.model.failing = False
        platform.press(chat, ada, notice.id, "Retry")
        await answer(platform, chat, "it again")
        assert [m["content"] for m in platform.model.requests[-1] if m["role"] == "user"] == ["say it again"]


async def test_the_why_button_tells_the_story(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "empty")
        notice = await answer(platform, chat, "⚠️", 30)
        platform.press(chat, ada, notice.id, "Why?")
        await platform.until(lambda: len(texts(platform, chat)) == 2)
        assert "empty reply" in texts(platform, chat)[1]


async def test_long_code_comes_as_a_file(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "code 300")
        await platform.until(lambda: any(one.file for one in answers(platform, chat)), 15)
        file = next(one for one in answers(platform, chat) if one.file)
        assert file.file.endswith(".py")
        assert file.data.decode().split() == [f"print({n})" for n in range(300)]
        await answer(platform, chat, "That was it.")


async def test_a_file_that_the_model_sends_arrives(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "write notes.txt: milk and bread")
        await answer(platform, chat, "Done")
        platform.say(chat, ada, "send notes.txt")
        await platform.until(lambda: any(one.file == "notes.txt" for one in answers(platform, chat)))
        assert next(one for one in answers(platform, chat) if one.file).data == b"milk and bread"


async def test_a_file_from_a_person_is_in_the_workspace(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.attach(chat, ada, "plan.md", b"# Plan\n", "text/markdown", "say thanks")
        await platform.until(lambda: bool(platform.model.requests))
        assert "it is in your workspace as plan.md" in str(platform.model.requests[0][-1]["content"])
        assert list(platform.folder.rglob("plan.md"))


async def test_a_picture_is_put_before_the_model(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 64
    async with running(platform):
        platform.attach(chat, ada, "cat.png", png, "image/png", "say a cat")
        await answer(platform, chat, "a cat")
        parts = platform.model.requests[0][-1]["content"]
        assert [part["type"] for part in parts] == ["text", "image_url"]


async def test_what_cannot_be_taken_is_said(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.attach(chat, ada, "tool.exe", b"MZ\0\0", "application/octet-stream", "say hm")
        await answer(platform, chat, "I cannot tell what is in it: it is a program.")
        await answer(platform, chat, "hm")
        assert list(platform.folder.rglob("tool.exe"))  # where other tools may use it


async def test_what_is_in_a_document_is_before_the_model_and_in_the_workspace(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.attach(chat, ada, "plan.pdf", pdf([WORDS, "second"]), "application/pdf", "say I have read it")
        await answer(platform, chat, "I have read it")
        asked = str(platform.model.requests[0][-1]["content"])
        assert WORDS in said_by_the_gateway(asked)
        assert WORDS not in said_by_the_person(asked)
        assert "PDF, 2 pages" in asked
        platform.attach(chat, ada, "locked.pdf", encrypted_pdf("secret"), "application/pdf", "say and this")
        await answer(
            platform, chat, "I have put locked.pdf into the workspace, but I cannot tell what is in it: it is encrypted"
        )
    kept = {one.name: one for one in platform.folder.rglob("*.pdf*")}
    assert sorted(kept) == ["locked.pdf", "plan.pdf", "plan.pdf.txt"]
    assert WORDS in kept["plan.pdf.txt"].read_text()


async def test_an_approval_is_asked_with_buttons_and_given(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_TOOLS__APPROVAL="write_file"):
        platform.say(chat, ada, "write secret.txt: x")
        asked = await answer(platform, chat, "May I write")
        assert asked.buttons == ("✅ Approve", "✅ For this conversation", "✅ Always for such calls", "🚫 Deny")
        platform.press(chat, ada, asked.id, "✅ Approve")
        await answer(platform, chat, "Done: Wrote")
        assert list(platform.folder.rglob("secret.txt"))


async def test_an_approval_that_is_denied_runs_nothing(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_TOOLS__APPROVAL="write_file"):
        platform.say(chat, ada, "write secret.txt: x")
        asked = await answer(platform, chat, "May I write")
        platform.press(chat, ada, asked.id, "🚫 Deny")
        await platform.until(lambda: len(texts(platform, chat)) >= 2 and "May" not in texts(platform, chat)[-1], 15)
        assert not list(platform.folder.rglob("secret.txt"))
