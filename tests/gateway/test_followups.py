"""Word of what a turn began and what ended after it: once, in its conversation, whatever comes between."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, FromChat, SessionKey, once
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.messages import InputMessage
from agent_core.tools.followup import FOLLOW_UP_CHARS
from gateway.later.followups import BEGINS, ENDS, follow_up, follow_up_words
from tests.chats.harness import answer, quiet, running, texts
from tests.chats.telegram_harness import telegram_harness

ADA = ChatOrigin(ChatAddress("telegram", "1", "2"), ChatKind.PRIVATE, ChatPerson("5", "Ada"), message="77")
CHAT = FromChat(
    account="telegram/1",
    platform_key="77",
    session=SessionKey("telegram", "1", "2"),
    input=(InputMessage("run it"),),
    surface="telegram",
    memory_scope="telegram/1/2",
    can_approve=True,
    chat=ADA,
)
PAGE = FromApi(
    account="web",
    platform_key="k",
    session=SessionKey("web", "page", "s"),
    input=(InputMessage("run it"),),
    surface="web",
    memory_scope="web",
    request={"temperature": 1},
    digest="d",
)
TITLE = "Command 2 (make test) has ended: exit status 0"


async def test_what_ended_is_told_once_in_the_chat_that_began_it_also_after_a_restart(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        ada = telegram.person("Ada")
        chat = telegram.private(ada)
        async with running(telegram) as up:
            telegram.say(chat, ada, "say hello")
            await answer(telegram, chat, "hello")
            turn = await _turn(telegram.folder)
            assert await up.follow_ups.begin(turn, "command:2", TITLE, "say all tests passed")
            assert await up.follow_ups.begin(turn, "command:2", TITLE, "say all tests passed")
            await answer(telegram, chat, f"🔔 {TITLE}")
            await telegram.until(lambda: len(telegram.model.requests) == 2)
            assert not await up.follow_ups.begin("t_unknown", "command:3", TITLE, "")
        async with running(telegram, OUTSPOKEN_SESSION__QUEUE_LIMIT="1") as up:
            assert await up.follow_ups.begin(turn, "command:2", TITLE, "say all tests passed")
            telegram.say(chat, ada, "hold on")
            await telegram.model.holding.wait()
            assert await up.follow_ups.begin(turn, "command:4", "Command 4 has ended", "say four")
            assert await up.follow_ups.begin(turn, "command:5", "Command 5 has ended", "say five")
            full = await answer(telegram, chat, "Command 5 has ended")
            assert "Too many messages wait" in full.text
            telegram.model.release()
            await answer(telegram, chat, "🔔 Command 4 has ended")
            await telegram.until(lambda: len(telegram.model.requests) == 4)
            await quiet(telegram, chat)
        assert [text for text in texts(telegram, chat) if text.startswith(f"🔔 {TITLE}")] == [f"🔔 {TITLE}"]
        assert "say all tests passed" in str(telegram.model.requests[1])


async def _turn(folder: Path) -> str:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(folder / "outspoken.db")) as found:
        return str(found.execute("SELECT turn FROM turns").fetchone()[0])


def test_a_follow_up_is_of_the_conversation_and_of_no_message() -> None:
    told = follow_up(CHAT, "k", TITLE, "ok")
    assert isinstance(told, FromChat)
    assert (told.session, told.chat.address, told.chat.message) == (CHAT.session, ADA.address, "")
    page = follow_up(PAGE, "k", TITLE, "ok")
    assert isinstance(page, FromApi)
    assert (page.session, page.platform_key, page.request, page.digest) == (PAGE.session, "k", {}, "")
    assert follow_up(replace(PAGE, own_history=(), session=once("x")), "k", TITLE, "ok") is None


@given(st.text("abc\n ü", min_size=1, max_size=9), st.integers(0, 3 * FOLLOW_UP_CHARS))
@example("abc", FOLLOW_UP_CHARS)
@example("abc", FOLLOW_UP_CHARS + 1)
def test_what_came_of_it_is_data_between_two_lines_and_of_what_is_long_the_end(piece: str, chars: int) -> None:
    words = (piece * (chars // len(piece) + 1))[:chars]
    told = follow_up_words(TITLE, words)
    assert told.startswith(f"[{TITLE}.")
    head, _, data = told.partition(f"{BEGINS}")
    assert "no person wrote this" in head
    assert data.endswith(f"\n{words[-FOLLOW_UP_CHARS:]}\n{ENDS}")
    assert len(told) < FOLLOW_UP_CHARS + 1_000
    assert ("characters left out here" in told) is (chars > FOLLOW_UP_CHARS)
