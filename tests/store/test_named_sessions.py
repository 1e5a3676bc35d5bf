"""Sessions as programs list them: each once, in the order in which they were made, of one realm only; and what is known of each by its turns."""

from __future__ import annotations

import random

from agent_core.store.keeping import forgetting as steps
from agent_core.store.keeping.forgetting import CONVERSATION, CONVERSATION_KEY, ForgettingJob
from agent_core.store.sessions.rows import SessionChange, SessionFigures
from agent_core.store.turns.rows import TurnState
from gateway.queues.prefs import Prefs, noted
from tests.store.support import IDS, FakeClock, opened, row, started, turn_of
from tests.store.support import message as message_of

MINE = ("api/key/", "api/response/")


async def test_a_realms_sessions_are_met_once_in_order_whatever_others_are_called(where: str) -> None:
    clock = FakeClock()
    keys = ["api/key/a//person:ann", "api/response/x1//person:ann", "api/key/b%2F//person:ann", "api/key/c//person:ann"]
    others = [
        "api/key/a//person:Ann", "api/key/a//person:bann", "api/key/a//", "api/once/x//person:ann", "web/page/a//person:ann",
        "api/key/a//person:ann~s_1",
    ]  # fmt: skip
    async with opened(where, clock) as store:
        for key in random.sample(others, len(others)):
            assert await store.sessions.make(IDS.new("s"), key, "")
        for key in keys:
            assert await store.sessions.make(IDS.new("s"), key, '{"metadata":{}}')
            clock.now += 1
        assert not await store.sessions.make(IDS.new("s"), keys[0], ""), "there is one"
        for newest_first in (False, True):
            met: list[str] = []
            after: tuple[int, str] | None = None
            while page := await store.sessions.named(MINE, "//person:ann", 2, after, newest_first=newest_first):
                met += [one.key for one in page]
                after = (page[-1].created_at, page[-1].session)
            assert met == (keys[::-1] if newest_first else keys)
        found = await store.sessions.by_key(keys[0])
        assert found is not None
        assert (found.epoch, await store.sessions.claim(found.session)) == (1, 1), "it is ours"


async def test_the_latest_are_those_that_are_marked_or_the_others_and_none_that_begin_otherwise(where: str) -> None:
    clock, mark = FakeClock(), noted("archived")
    marked = Prefs(metadata={"archived": "1 2"}).encode()
    other = Prefs(metadata={"title": 'He wrote "archived": and \\"archived\\":', "more": "%_"}).encode()
    made = {
        "web/page/c-one//person:ann": other, "web/page/c-two//person:ann": marked, "web/page/c-t-three//person:ann": "",
        "web/page/c-t-four//person:ann": marked, "web/page/c-five//person:bob": "", "web/page/c-six//person:ann": "",
    }  # fmt: skip
    async with opened(where, clock) as store:
        for key, policy in made.items():
            assert await store.sessions.make(IDS.new("s"), key, policy)
            clock.now += 120_000

        async def latest(limit: int, *, is_marked: bool) -> list[str]:
            rows = await store.sessions.latest(
                ["web/page/"], "//person:ann", limit, "web/page/c-t-", mark, marked=is_marked
            )
            return [one.key.split("/")[2] for one in rows]

        assert await latest(9, is_marked=False) == ["c-six", "c-one"]
        assert await latest(1, is_marked=False) == ["c-six"]
        assert await latest(9, is_marked=True) == ["c-two"]


async def test_figures_count_what_is_told_and_add_what_was_used(where: str) -> None:
    async with opened(where) as store:
        session, epoch, first = await turn_of(store, "chat")
        await store.turns.close(session, epoch, first, [row(1)], "answered", 300, used=(10, 4))
        turns = [first]
        for _ in range(2):
            accepted = await store.inbox.accept(message_of(IDS.new("m"), "chat"))
            turns.append((await started(store, accepted, epoch))[2])
            if len(turns) < 3:
                await store.turns.close(session, epoch, turns[-1], [row(1)], "answered", 300, used=(1, 1))
        assert await store.sessions.figures([session, "s_none"]) == {
            session: SessionFigures(3, 11, 5, turns[2], turns[0], turns[2])
        }
        await store.turns.close(session, epoch, turns[2], [row(1)], "answered", 300)
        await store.sessions.change(session, epoch, SessionChange(undo=turns[0]))
        assert (await store.sessions.figures([session]))[session] == SessionFigures(2, 11, 5, "", turns[1], turns[2])
        await store.sessions.change(session, epoch, SessionChange(forget=True))
        assert (await store.sessions.figures([session]))[session] == SessionFigures(0, 11, 5, "", "", "")
        assert [one.turn for one in await store.turns.behind(session, 1, 5)] == turns[1:]
        assert [one.turn for one in await store.turns.behind(session, 3, 1, newest_first=True)] == [turns[1]]
        assert await store.turns.openings([turns[0], "t_none"]) == {turns[0]: ("TextArrived", b"{}")}


async def test_a_conversation_that_is_to_be_forgotten_has_let_go_of_its_name_in_the_same_commit(where: str) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store, "api/key/a//")
        await store.turns.close(session, epoch, turn, [row(1)], "answered", 300)
        who = ((CONVERSATION, session), (CONVERSATION_KEY, "api/key/a//"))
        await store.keeping.remove(steps.begin_conversation(ForgettingJob("f_1", who, 400, None), "api/gone/x//"))
        assert await store.sessions.by_key("api/key/a//") is None
        (job,) = await store.forgotten.jobs()
        assert job.conversation == (session, "api/key/a//")
        await store.keeping.remove_some(steps.remove_turns([turn], "deleted by its client"))
        (left,) = await store.turns.behind(session, 0, 5)
        assert (left.state, left.removed, left.undone) == (TurnState.CLOSED, "deleted by its client", True)


async def test_what_a_program_attached_keeps_no_empty_conversation_and_what_a_chat_has_set_does(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        for key in ("api/key/a//", "telegram/1/2//"):
            assert await store.sessions.make(IDS.new("s"), key, '{"metadata":{"a":"b"}}')
        assert [one.key for one in await store.retaining.old_sessions(clock.now + 1, 10, "")] == ["api/key/a//"]
        assert await store.retaining.old_sessions(clock.now, 10, "") == []
