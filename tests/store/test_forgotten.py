"""Who is forgotten: what is found of theirs, and what is left of it at the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_core.remembered import MemorySource
from agent_core.store.audit import AuditRow
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.keeping import forgetting as steps
from agent_core.store.keeping.forgetting import ForgettingJob, TheirSession
from agent_core.store.people.rows import PersonRow, PersonState
from agent_core.store.store import Store
from agent_core.store.turns.rows import IntendedCall
from agent_core.store.webhooks.rows import HookRow
from tests.store.support import IDS, message, opened, row

WISH = 500
ADA = ForgettingJob("f_1", (("bot", "ada"), ("api", "key/a")), WISH, None)


async def asked(store: Store, chat: str, *people: str, at: int = 100) -> tuple[str, int, str]:
    """A turn that these people have asked: (session, epoch, turn). It is closed."""
    known = [await store.inbox.accept(replace(message(IDS.new("m"), chat), person=person)) for person in people]
    session, turn = known[0].session, IDS.new("t")
    epoch = await store.sessions.claim(session)
    await store.turns.start(session, epoch, turn, [one.inbox_id for one in known], row(0), at, at + 100)
    await store.turns.close(session, epoch, turn, [row(1)], "answered", at + 1)
    return session, epoch, turn


async def test_turns_are_theirs_up_to_their_wish_and_whoever_else_asked_with_them(sqlite: str) -> None:
    async with opened(sqlite) as store:
        alone, together, last = [
            (await asked(store, "chat", *people, at=at))[2]
            for people, at in ((["ada"], 100), (["bob", "ada"], 200), (["ada"], WISH))
        ]
        await asked(store, "chat", "bob", at=300)
        await asked(store, "chat", "ada", at=WISH + 1)
        found, _ = await store.forgotten.turns(ADA, 99, "")
        assert [one.turn for one in found] == sorted([alone, together, last])


@pytest.mark.parametrize(
    ("people", "alone"), [([["ada"]], True), ([["ada"], ["bob"]], False), ([["ada", "bob"]], False), ([["ada"], [""]], False)]
)  # fmt: skip
async def test_a_conversation_is_theirs_alone_if_nobody_else_is_known_to_have_asked(
    people: list[list[str]], alone: bool, sqlite: str
) -> None:
    async with opened(sqlite) as store:
        (session, _, _), *_ = [await asked(store, "telegram/1/group//", *some) for some in people]
        await asked(store, "telegram/1/other//", "bob")
        (found,) = await store.forgotten.sessions(ADA.who, [])
        assert (found.session, found.alone) == (session, alone)


async def test_at_the_end_nothing_says_who_it_was_or_what_was_called_for_them(sqlite: str) -> None:
    async with opened(sqlite) as store:
        known = await store.inbox.accept(replace(message("m", "chat"), person="ada"))
        epoch, turn = await store.sessions.claim(known.session), IDS.new("t")
        await store.turns.start(known.session, epoch, turn, [known.inbox_id], row(0), 100, 200)
        call = IntendedCall("c1", "post", "effect", f"{turn}:c1")
        await store.turns.intend(known.session, epoch, turn, [row(1)], [call])
        await store.turns.close(known.session, epoch, turn, [row(2)], "answered", 101)
        await store.keeping.remove(steps.begin(ADA))
        await store.keeping.remove_some(steps.remove_turns([turn]))
        assert not await store.turns.calls(turn)
        await store.keeping.remove(steps.end(ADA, 600))
        (job,) = await store.forgotten.jobs()
        assert (job.who, job.done_at) == ((), 600)


def part(origin: str, number: int) -> DeliveryRow:
    return DeliveryRow("telegram/1/7/", origin, "b", number, number, b"{}", "h", f"{origin}/{number}", at=5)


async def test_with_a_turn_goes_what_was_shown_of_it_and_beside_it_and_nothing_of_others(sqlite: str) -> None:
    async with opened(sqlite) as store:
        session, epoch, gone = await asked(store, "chat", "ada")
        _, _, stays = await asked(store, "chat", "bob")
        other, other_epoch, _ = await asked(store, "other chat", "bob")
        named = (gone, f"{gone}!note", stays, f"{stays}!note", f"{gone}x", "inbox:9")
        await store.deliveries.put(session, epoch, [part(name, number) for number, name in enumerate(named, 1)])
        await store.deliveries.put(other, other_epoch, [part(f"{gone}!elsewhere", 9)])
        hooks = [HookRow(f"m{n}", "r", "turn.ended", session, turn, b"{}", 5) for n, turn in enumerate((gone, stays))]
        await store.hooks.put(hooks)
        assert (await store.keeping.remove_some(steps.remove_turns([gone]))).count == 1
        left = [one.row.origin for one in await store.deliveries.open()]
        assert sorted(left) == sorted([stays, f"{stays}!note", f"{gone}x", "inbox:9", f"{gone}!elsewhere"])
        assert [await store.hooks.one(f"m{n}") is None for n in range(2)] == [True, False]
        assert [len(await store.turns.journal(turn)) for turn in (gone, stays)] == [0, 2]


async def test_nothing_is_stored_again_of_a_turn_that_is_forgotten_nor_of_what_was_said_beside_it(where: str) -> None:
    async with opened(where) as store:
        session, epoch, gone = await asked(store, "chat", "ada")
        _, _, stays = await asked(store, "chat", "bob")
        await store.keeping.remove_some(steps.remove_turns([gone]))
        named = (
            gone,
            f"{gone}!failed.text0.0",
            stays,
            f"{stays}!failed.text0.0",
            f"{gone}x",
            "inbox:9",
            "inbox:9!note",
        )
        await store.deliveries.put(session, epoch, [part(name, number) for number, name in enumerate(named, 1)])
        assert [one.row.origin for one in await store.deliveries.open()] == [*named[2:]]


async def test_of_a_conversation_what_was_said_since_the_wish_keeps_what_it_is_answered(where: str) -> None:
    async with opened(where) as store:
        session, epoch, old = await asked(store, "telegram/1/7//", "ada")
        before = await store.inbox.accept(replace(message("before", "telegram/1/7//", at=WISH), person="ada"))
        since = await store.inbox.accept(replace(message("since", "telegram/1/7//", at=WISH + 1), person="ada"))
        _, _, later = await asked(store, "telegram/1/7//", "ada", at=WISH + 1)
        kinds = ("inbox", "queue", "reword")
        gone = (old, f"{old}!note", *(f"{kind}:{before.inbox_id}" for kind in kinds))
        kept = (later, f"{later}!note", *(f"{kind}:{since.inbox_id}" for kind in kinds), "forgot:9")
        parts = [part(name, number) for number, name in enumerate((*gone, *kept), 1)]
        await store.deliveries.put(session, epoch, parts)
        one = TheirSession(session, "telegram/1/7//", alone=True)
        while (await store.keeping.remove_some(steps.remove_session(one, WISH))).count:
            pass
        assert [one.row.origin for one in await store.deliveries.open()] == [*kept]


async def test_what_was_decided_about_a_person_stays_without_their_name_and_what_they_kept_goes(sqlite: str) -> None:
    states = (PersonState.PENDING, PersonState.REFUSED, PersonState.APPROVED, PersonState.ADMIN, PersonState.REVOKED)
    async with opened(sqlite) as store:
        for account, person in (("bot", "ada"), ("bot", "adam"), ("other", "ada")):
            for number, state in enumerate(states):
                row = PersonRow(f"{account}{number}", person, state, name="Ada", code="abcd", code_until=9)
                await store.people.put(row)
        for scope, author in (("group", "bot0/ada"), ("group2", "bot0/adam"), ("api/ada", "api/ada"), ("api/adam", "")):
            await store.memory.put(scope, "memory", "dog", "Rex", at_ms=1, source=MemorySource(author=author))
        await store.keeping.remove(steps.remove_the_rest([*((f"bot{n}", "ada") for n in range(5)), ("api", "ada")]))
        left = {(one.account, one.person): (one.state, one.name, one.code) for one in await store.people.all()}
        mine = {key: value for key, value in left.items() if key[0].startswith("bot") and key[1] == "ada"}
        assert mine == {(f"bot{n}", "ada"): (states[n], "", "") for n in (2, 3, 4)}
        assert {value[1:] for key, value in left.items() if key not in mine} == {("Ada", "abcd")}
        assert len(left) == 3 + 10
        kept = [
            scope for scope in ("group", "group2", "api/ada", "api/adam") if await store.memory.entries(scope, "memory")
        ]
        assert kept == ["group2", "api/adam"]


async def test_of_what_was_done_by_hand_to_a_forgotten_conversation_only_stays_that_it_was(sqlite: str) -> None:
    async with opened(sqlite) as store:
        session, _, _ = await asked(store, "telegram/1/7//", "ada")
        done = AuditRow("a_1", 50, "with the key", "drop", "telegram/1/7//t_1/answer/0", "Dear Ada", "was", "is")
        other = replace(done, audit="a_2", object="telegram/1/77//t_1/answer/0")
        for entry in (done, other):
            await store.deliveries.act(entry)
        await store.keeping.remove_some(steps.remove_turns([(await store.turns.latest(session, 1))[0].turn]))
        await store.keeping.remove_some(steps.remove_session(TheirSession(session, "telegram/1/7//", alone=True), WISH))
        emptied = replace(done, words="A part of somebody who is forgotten.", before="", after="")
        assert {one.audit: one for one in await store.overview.audit(10)} == {"a_1": emptied, "a_2": other}
