"""Conformance, part 2: messages in, queueing, commands, who may talk, groups."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from agent_core.store import tables as t
from gateway.commands.registry import menu
from tests.chats.audited import lies
from tests.chats.harness import Harness, Leaves, answer, answers, process, quiet, running, taken_in, texts

# ---------------------------------------------------------------------- in


async def test_a_redelivered_message_is_answered_once(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "say once")
        await answer(platform, chat, "once")
        platform.redeliver()
        await quiet(platform, chat)
        assert texts(platform, chat) == ["once"]


async def test_what_came_while_the_gateway_was_away_is_answered(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "say first")
        await answer(platform, chat, "first")
    platform.say(chat, ada, "say second")
    async with running(platform):
        await answer(platform, chat, "second")
        await quiet(platform, chat)
        assert texts(platform, chat) == ["first", "second"]


async def test_an_edit_of_a_waiting_message_counts(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        waiting = platform.say(chat, ada, "say wrogn")
        await answer(platform, chat, "Queued")
        platform.edit(chat, waiting, "say right")
        await platform.until(lambda: taken_in(platform.folder, "say right"))
        platform.model.release()
        await answer(platform, chat, "right")
        assert "wrogn" not in "".join(texts(platform, chat))


async def test_an_edit_of_an_answered_message_starts_nothing(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        said = platform.say(chat, ada, "say one")
        await answer(platform, chat, "one")
        platform.edit(chat, said, "say two")
        await quiet(platform, chat)
        assert texts(platform, chat) == ["one"]


async def test_the_pieces_of_a_long_paste_are_one_message(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "x" * 4000)
        await asyncio.sleep(0.05)
        platform.say(chat, ada, "y" * 4000)
        await asyncio.sleep(0.05)
        platform.say(chat, ada, "say got it")
        await answer(platform, chat, "got it")
        assert len(platform.model.requests) == 1


async def test_an_album_is_one_message(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 64
    async with running(platform):
        platform.album(chat, ada, [png, png + b"1", png + b"2"], "say nice")
        await platform.until(lambda: len(platform.model.requests) == 1)
        await quiet(platform, chat)
        assert len(platform.model.requests) == 1
        content = [m["content"] for m in platform.model.requests[0] if m["role"] == "user"]
        assert str(content).count("image_url'}") + str(content).count("'type': 'image_url'") == 3


async def test_an_odd_event_hides_no_other(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "say one")
        await answer(platform, chat, "one")
        platform.odd_event(chat)
        platform.say(chat, ada, "say still here")
        await answer(platform, chat, "still here")


# ---------------------------------------------------------------------- while busy


async def test_who_has_to_wait_is_told_so_and_the_word_goes(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.say(chat, ada, "say later")
        told = await answer(platform, chat, "Queued")
        assert told.silent
        platform.model.release()
        await answer(platform, chat, "later")
        await platform.until(lambda: not [t for t in texts(platform, chat) if "Queued" in t])


async def test_who_comes_when_everything_is_full_is_told_so_once_and_answered_when_there_is_room(
    platform: Harness,
) -> None:
    ada, ben, cleo = (platform.person(name) for name in ("Ada", "Ben", "Cleo"))
    one, two, three = (platform.private(person) for person in (ada, ben, cleo))
    more = {"OUTSPOKEN_SESSION__OPEN_TURNS": "1", "OUTSPOKEN_SESSION__WAITING_LIMIT": "1"}
    async with running(platform, **more):
        platform.say(one, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        await asyncio.sleep(0.5)  # how many wait is not counted at every moment
        platform.say(two, ben, "say later")
        await answer(platform, two, "Many people")
        platform.say(three, cleo, "say last")
        await answer(platform, three, "Your message is kept")
        platform.redeliver()
        await quiet(platform, three)
        assert "last" not in texts(platform, three)
        platform.model.release()
        await answer(platform, two, "later")
        await platform.until(lambda: "last" in texts(platform, three), 15)
        await quiet(platform, three)
        said = texts(platform, three)
        assert len([t for t in said if "is kept" in t]) == 1
        assert said.count("last") == 1


async def test_what_was_queued_is_run_after_a_kill(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with process(platform) as one:
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.say(chat, ada, "say later")
        await answer(platform, chat, "Queued")
        await one.kill()
    platform.model.release()
    async with process(platform):
        await answer(platform, chat, "later", 20)
        await quiet(platform, chat)
        assert [t for t in texts(platform, chat) if t == "later"] == ["later"]
        assert await lies(platform.folder) == []


async def test_the_word_of_a_killed_process_about_the_queue_goes_when_its_message_begins(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)

    def waiting() -> list[str]:
        return [t for t in texts(platform, chat) if "Queued" in t]

    async with process(platform) as one:
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.say(chat, ada, "say later")
        await answer(platform, chat, "Queued")
        await asyncio.sleep(1)  # until it is known which message the word is
        await one.kill()
    async with process(platform):
        await quiet(platform, chat)
        assert len(waiting()) == 1, "it is still true"
        platform.model.release()
        await answer(platform, chat, "later", 20)
        await platform.until(lambda: not waiting())


async def test_a_message_can_be_put_into_the_running_answer(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.command(chat, ada, "steer", "say in French")
        await answer(platform, chat, "I take that into account")
        platform.model.release()
        await answer(platform, chat, "in French")
        await quiet(platform, chat)
        assert len([t for t in texts(platform, chat) if t == "in French"]) == 1


async def test_a_message_interrupts_where_that_is_the_rule(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_SESSION__POLICY="interrupt"):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.say(chat, ada, "say instead")
        await answer(platform, chat, "instead")


async def test_what_a_full_queue_has_no_room_for_is_kept_and_answered_in_its_order(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_SESSION__QUEUE_LIMIT="2"):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        for number in range(4):
            platform.say(chat, ada, f"say m{number}")
        await platform.until(lambda: sum("This one is kept" in t for t in texts(platform, chat)) == 2, 15)
        platform.model.release()
        await platform.until(lambda: "m3" in texts(platform, chat), 30)
        answers = [t for t in texts(platform, chat) if t.startswith("m")]
        assert answers == ["m0", "m1", "m2", "m3"]


# ---------------------------------------------------------------------- commands


async def test_the_menu_has_the_commands(platform: Harness) -> None:
    async with running(platform):
        wanted = [command.name for command in menu()]
        assert {"new", "stop", "why", "remind", "memory", "help"} <= set(wanted)
        # What stands after them are a platform's own entries (of messages, on Discord).
        await platform.until(lambda: platform.menu()[: len(wanted)] == wanted)


async def test_help_names_the_commands(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.command(chat, ada, "help")
        typed = "!" if platform.name == "slack" else "/"  # Slack has no slash commands in threads
        seen = await answer(platform, chat, f"{typed}stop all")
        assert f"{typed}new" in seen.text


async def test_status_answers_at_once_whatever_the_model_does(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.command(chat, ada, "status")
        seen = await answer(platform, chat, "Working for")  # while the model says nothing
        assert "m1" in seen.text


async def test_stop_ends_the_turn_and_says_what_it_did(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.command(chat, ada, "stop")
        await answer(platform, chat, "Stopped, as you asked")
        platform.say(chat, ada, "say next")
        await answer(platform, chat, "next")


async def test_stop_says_one_thing(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.command(chat, ada, "stop")
        await answer(platform, chat, "topped")
        await quiet(platform, chat)
        assert len([text for text in texts(platform, chat) if "topped" in text]) == 1, texts(platform, chat)


async def test_stop_does_not_eat_the_next_message(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.command(chat, ada, "stop")
        platform.say(chat, ada, "say not eaten")
        await answer(platform, chat, "not eaten")


async def test_stop_keeps_what_waits(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.say(chat, ada, "say kept")
        await answer(platform, chat, "Queued")
        platform.command(chat, ada, "stop")
        await answer(platform, chat, "kept")


async def test_stop_all_empties_the_queue(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "hold on")
        await asyncio.wait_for(platform.model.holding.wait(), 60)
        platform.say(chat, ada, "say dropped")
        await answer(platform, chat, "Queued")
        platform.command(chat, ada, "stop", "all")
        await answer(platform, chat, "taken out of the queue")
        await quiet(platform, chat)
        assert "dropped" not in texts(platform, chat)


async def test_stop_without_anything_running_says_so(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.command(chat, ada, "stop")
        await answer(platform, chat, "Nothing is running")


async def test_new_begins_a_new_conversation(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "say my dog is Rex")
        await answer(platform, chat, "my dog is Rex")
        platform.command(chat, ada, "new")
        await answer(platform, chat, "A new conversation")
        platform.say(chat, ada, "recall")
        seen = await answer(platform, chat, "I remember")
        assert "Rex" not in seen.text


async def test_undo_forgets_the_last_exchange(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "say one")
        await answer(platform, chat, "one")
        platform.say(chat, ada, "say two")
        await answer(platform, chat, "two")
        platform.command(chat, ada, "undo")
        await answer(platform, chat, "Forgotten: “say two”")
        platform.say(chat, ada, "recall")
        seen = await answer(platform, chat, "I remember")
        assert seen.text == "I remember: say one"


async def test_undo_and_retry_say_what_they_can_of_a_message_that_is_not_kept_as_it_came(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)

    def gone(conn: Any) -> None:
        conn.execute(t.turns.update().values(last_message=0))

    def older(conn: Any) -> None:
        conn.execute(t.turns.update().values(removed="no longer kept: [retention] journals_days = 90"))

    async with running(platform, Leaves.DAMAGED) as up:
        for word in ("one", "two"):
            platform.say(chat, ada, f"say {word}")
            await answer(platform, chat, word)
        await up.hub._store.keeping.remove(gone)
        platform.command(chat, ada, "retry")  # of its journal
        await platform.until(lambda: texts(platform, chat).count("two") == 2, 30)
        platform.command(chat, ada, "undo")
        await answer(platform, chat, "Forgotten: “say two”")
        await up.hub._store.keeping.remove(older)
        platform.command(chat, ada, "undo")
        await answer(platform, chat, "There is nothing to take back: what was said here last is no longer kept")


async def test_retry_answers_the_last_message_again(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "say again")
        await answer(platform, chat, "again")
        platform.command(chat, ada, "retry")
        await platform.until(lambda: texts(platform, chat).count("again") == 2)


async def test_why_tells_what_happened(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "say fine")
        await answer(platform, chat, "fine")
        platform.command(chat, ada, "why")
        await platform.until(lambda: len(texts(platform, chat)) == 2)
        assert "answered" in texts(platform, chat)[1].lower()


async def test_the_model_can_be_chosen(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_MODEL__FALLBACKS="m2"):
        platform.command(chat, ada, "model")
        await answer(platform, chat, "m2")
        platform.command(chat, ada, "model", "m2")
        await answer(platform, chat, "From now on: m2")
        platform.say(chat, ada, "say hi")
        await answer(platform, chat, "hi")
        assert platform.model.models[-1] == "m2"
    async with running(platform, OUTSPOKEN_MODEL__FALLBACKS="m2"):
        platform.say(chat, ada, "say again")
        await answer(platform, chat, "again")
        assert platform.model.models[-1] == "m2"
        platform.command(chat, ada, "model", "m9")
        await answer(platform, chat, "There is no model called m9")


async def test_usage_says_what_was_used(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.say(chat, ada, "say hi")
        await answer(platform, chat, "hi")
        platform.command(chat, ada, "usage")
        seen = await answer(platform, chat, "tokens in")
        assert "10 tokens in" in seen.text


async def test_an_unknown_command_is_for_the_model(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.command(chat, ada, "poem", "say roses")
        await answer(platform, chat, "roses")


# ---------------------------------------------------------------------- who may talk


async def test_a_stranger_is_told_once_and_let_in_by_the_code(platform: Harness) -> None:
    eve, boss = platform.person("Eve"), platform.person("Boss")
    chat, office = platform.private(eve), platform.private(boss)
    closed = {f"OUTSPOKEN_{platform.name.upper()}__OPEN": "false"}
    closed[f"OUTSPOKEN_{platform.name.upper()}__ADMINS"] = platform.id_of(boss)
    async with running(platform, **closed):
        platform.say(chat, eve, "say hello")
        told = await answer(platform, chat, "outspoken access approve")
        platform.say(chat, eve, "say please")
        await quiet(platform, chat)
        assert len(texts(platform, chat)) == 1
        assert platform.model.requests == []
        code = re.search(r"approve ([A-Z0-9]{8})", told.text)
        assert code is not None
        platform.command(chat, eve, "access", f"approve {code.group(1)}")
        await quiet(platform, chat)
        assert len(texts(platform, chat)) == 1
        platform.command(office, boss, "access", f"approve {code.group(1)}")
        await answer(platform, office, "Eve may talk to me now")
        platform.say(chat, eve, "say thanks")
        await answer(platform, chat, "thanks")
        platform.command(office, boss, "access", f"revoke {platform.id_of(eve)}")
        await answer(platform, office, "not talk to me any more")
        platform.say(chat, eve, "say bye")
        await quiet(platform, chat)
        assert "bye" not in texts(platform, chat)


async def test_an_approval_survives_a_restart(platform: Harness) -> None:
    eve = platform.person("Eve")
    chat = platform.private(eve)
    closed = {f"OUTSPOKEN_{platform.name.upper()}__OPEN": "false"}
    async with running(platform, **closed) as up:
        platform.say(chat, eve, "say hello")
        told = await answer(platform, chat, "outspoken access approve")
        code = re.search(r"approve ([A-Z0-9]{8})", told.text)
        assert code is not None
        from adapters.terminal.operator import Remote

        people = await Remote(up.url, None).decide("approve", code.group(1))
        assert people[0]["name"] == "Eve"
    async with running(platform, **closed):
        platform.say(chat, eve, "say hello")
        await answer(platform, chat, "hello")


async def test_a_person_who_is_too_fast_is_told(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, **{f"OUTSPOKEN_{platform.name.upper()}__PER_MINUTE": "2"}):
        for number in range(3):
            platform.say(chat, ada, f"say m{number}")
        await answer(platform, chat, "too fast")
        assert "m2" not in texts(platform, chat)  # it is answered when its time comes


async def test_only_admins_have_admins_commands(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.command(chat, ada, "access", "list")
        await answer(platform, chat, "Only admins")


# ---------------------------------------------------------------------- groups


async def test_in_a_group_only_what_is_meant_for_the_bot_is_answered(platform: Harness) -> None:
    ada, ben = platform.person("Ada"), platform.person("Ben")
    group = platform.group(ada, ben)
    async with running(platform):
        platform.say(group, ada, "say nothing to me")
        said = platform.say(group, ben, "say hello all", mention=True)
        seen = await answer(platform, group, "hello all")
        assert seen.reply_to == said
        platform.say(group, ada, "say and me", reply_to=seen.id)
        await answer(platform, group, "and me", 20)
        await quiet(platform, group)
        assert len(answers(platform, group)) == 2


async def test_in_a_group_the_model_knows_who_speaks(platform: Harness) -> None:
    ada, ben = platform.person("Ada"), platform.person("Ben")
    group = platform.group(ada, ben)
    async with running(platform):
        platform.say(group, ada, "say one", mention=True)
        seen = await answer(platform, group, "one")
        platform.say(group, ben, "say two", mention=True, reply_to=seen.id)
        await answer(platform, group, "two")
        assert [m["content"] for m in platform.model.requests[-1] if m["role"] == "user"] == [
            "Ada: say one",
            "Ben: say two",
        ]


async def test_a_command_for_another_bot_is_none_of_ours(platform: Harness) -> None:
    ada = platform.person("Ada")
    group = platform.group(ada)
    async with running(platform):
        platform.command(group, ada, "help", other=True)
        await quiet(platform, group)
        assert answers(platform, group) == []


async def test_topics_are_conversations_of_their_own(platform: Harness) -> None:
    ada = platform.person("Ada")
    _, one, two = platform.topics(ada)
    async with running(platform):
        platform.say(one, ada, "say red", mention=True)
        await answer(platform, one, "red")
        platform.say(two, ada, "recall", mention=True)
        seen = await answer(platform, two, "I remember")
        assert "red" not in seen.text
        platform.say(one, ada, "recall")  # the bot takes part here already
        seen = await answer(platform, one, "I remember", 20)
        assert "red" in seen.text


async def test_silence_in_groups_can_be_configured(platform: Harness) -> None:
    ada = platform.person("Ada")
    group = platform.group(ada)
    async with running(platform, **{f"OUTSPOKEN_{platform.name.upper()}__GROUPS": "never"}):
        platform.say(group, ada, "say hello", mention=True)
        await quiet(platform, group)
        assert answers(platform, group) == []
