"""One person on several platforms: accounts joined by a code, and a conversation that goes on in another chat."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.chats.discord_harness import DiscordHarness
from tests.chats.harness import Harness, Seen, answer, answers, process, quiet, running, taken_in, texts
from tests.chats.model import ScriptedModel, scripted_model
from tests.chats.telegram_harness import TelegramHarness, Where
from tests.fakes.discord import DiscordFake
from tests.fakes.telegram import TelegramFake

LINK = {"OUTSPOKEN_PEOPLE__LINK": "true", "OUTSPOKEN_MODEL__STALL_SECONDS": "60"}


@dataclass
class Side:
    """A person's private chat on one platform."""

    harness: Harness
    chat: Any
    person: Any

    async def told(self, words: str, act: Callable[[], object], within: float = 10.0) -> Seen:
        """The new message of the bot with these words, after `act`."""
        before = {one.id for one in answers(self.harness, self.chat)}

        def found() -> Seen | None:
            new = [one for one in answers(self.harness, self.chat) if one.id not in before]
            return next((one for one in new if words in one.text), None)

        act()
        try:
            await self.harness.until(lambda: found() is not None, within)
        except AssertionError:
            raise AssertionError(f"{words!r} is not among {texts(self.harness, self.chat)}") from None
        seen = found()
        assert seen is not None
        return seen

    async def say(self, text: str, expected: str) -> Seen:
        return await self.told(expected, lambda: self.harness.say(self.chat, self.person, text))

    async def command(self, name: str, words: str, expected: str) -> Seen:
        return await self.told(expected, lambda: self.harness.command(self.chat, self.person, name, words))

    def texts(self) -> list[str]:
        return texts(self.harness, self.chat)


class Both:
    """Telegram and Discord at once, in one gateway."""

    def __init__(self, telegram: TelegramHarness, discord: DiscordHarness, model: ScriptedModel, folder: Path) -> None:
        self.telegram = telegram
        self.discord = discord
        self.model = model
        self.folder = folder

    def env(self) -> Mapping[str, str]:
        return {**self.telegram.env(), **self.discord.env(), **LINK}

    async def ready(self) -> None:
        await self.telegram.ready()
        await self.discord.ready()

    def side(self, harness: Harness, name: str) -> Side:
        person = harness.person(name)
        return Side(harness, harness.private(person), person)

    def ada(self) -> tuple[Side, Side]:
        """Ada on Telegram, and on Discord."""
        return self.side(self.telegram, "Ada"), self.side(self.discord, "ada_l")


@pytest.fixture
async def both(tmp_path: Path) -> AsyncGenerator[Both]:
    async with TelegramFake() as telegram, DiscordFake() as discord, scripted_model() as model:
        yield Both(
            TelegramHarness(telegram, model, tmp_path), DiscordHarness(discord, model, tmp_path), model, tmp_path
        )


async def code_of(side: Side) -> str:
    """A new code, as the account is shown it."""
    asked = await side.command("link", "", "To join another account")
    found = re.search(r"/link ([A-Z2-9]{5}-[A-Z2-9]{5})", asked.text)
    assert found is not None
    return found[1]


async def link(one: Side, other: Side) -> None:
    code = await code_of(one)
    told = asyncio.create_task(one.told("was joined with yours", lambda: None))
    await other.command("link", code.lower(), "Joined with")
    await told


async def resume(side: Side, words: str) -> Seen:
    """Continue the conversation that began with these words."""
    listed = await side.command("resume", "", "Continue one here")
    number = next(line for line in listed.text.splitlines() if words in line).partition(".")[0]
    return await side.command("resume", number, "goes on here now")


# ---------------------------------------------------------------------- continuing


async def test_a_conversation_goes_on_on_another_platform(both: Both) -> None:
    here, there = both.ada()
    async with running(both):
        await here.say("say alpha", "alpha")
        await there.say("say omega", "omega")
        await link(here, there)
        assert "“say alpha”" in (await resume(there, "say alpha")).text
        assert "say alpha" in (await there.say("recall this", "I remember")).text
        # Both chats go on with it, and each shows what was asked there.
        assert (await here.say("recall that", "I remember")).text == "I remember: say alpha | recall this"
        assert [text for text in here.texts() if "I remember" in text] == ["I remember: say alpha | recall this"]
        status = await there.command("status", "", "Nothing is running here")
        assert "The conversation from Telegram goes on here." in status.text
        # /new lets go of it, and it stays where it was.
        await there.command("new", "", "A new conversation")
        assert (await there.say("recall fresh", "I remember")).text == "I remember:"
        assert "say alpha" in (await here.say("recall still", "say alpha")).text
        # And it can be found again; so can the chat's own, which begins with what was said last.
        await resume(there, "say alpha")
        await resume(there, "recall fresh")
        assert (await there.say("recall own", "recall fresh")).text == "I remember: recall fresh"


async def test_new_with_words_begins_in_the_chats_own_conversation(both: Both) -> None:
    here, there = both.ada()
    async with running(both):
        await here.say("say alpha", "alpha")
        await link(here, there)
        await resume(there, "say alpha")
        await there.command("new", "recall nothing", "I remember:")
        assert there.texts()[-1] == "I remember:"
        assert (await there.say("recall two", "I remember:")).text == "I remember: recall nothing"
        assert (await here.say("recall", "I remember")).text == "I remember: say alpha"


async def test_what_is_said_right_behind_resume_belongs_to_what_it_names(both: Both) -> None:
    here, there = both.ada()
    async with running(both):
        await here.say("say alpha", "alpha")
        await there.say("say omega", "omega")
        await link(there, here)
        listed = await here.command("resume", "", "Continue one here")
        number = next(line for line in listed.text.splitlines() if "omega" in line).partition(".")[0]
        here.harness.command(here.chat, here.person, "resume", number)
        told = await here.say("recall", "I remember")
        assert told.text == "I remember: say omega"


async def test_topics_of_one_account_need_no_link(both: Both) -> None:
    telegram = both.telegram
    ada = telegram.person("Ada")
    chat = telegram.fake.people.private(ada, topics=True)
    one, two = (
        Side(telegram, Where(chat, telegram.fake.people.topic(chat, name, ada).id), ada) for name in ("one", "two")
    )
    async with running(both):
        await one.say("say first", "first")
        assert "Telegram, a thread" in (await resume(two, "say first")).text
        assert (await two.say("recall", "I remember")).text == "I remember: say first"


async def test_one_turn_at_a_time_and_each_chat_is_told_its_own(both: Both) -> None:
    here, there = both.ada()
    async with running(both):
        await here.say("say alpha", "alpha")
        await link(here, there)
        await resume(there, "say alpha")
        here.harness.say(here.chat, here.person, "hold on")
        await asyncio.wait_for(both.model.holding.wait(), 60)
        await there.say("say second", "Queued – one answer before this one")
        await here.say("say third", "Queued – 2 answers before this one")
        status = await there.command("status", "", "asked in another chat")
        assert "2 messages wait" in status.text
        await there.command("steer", "say fourth", "Queued – 3 answers")
        both.model.release()
        await answer(there.harness, there.chat, "fourth")
        await quiet(there.harness, there.chat)
        assert both.model.asked == ["say alpha", "hold on", "say second", "say third", "say fourth"]
        assert not any("second" in text or "fourth" in text for text in here.texts())
        assert not any(text in ("third", "on end") for text in there.texts())
        assert "third" in here.texts()
        await both.telegram.until(lambda: not any("Queued" in text for text in (*here.texts(), *there.texts())))


async def test_commands_act_on_the_conversation_that_goes_on(both: Both) -> None:
    here, there = both.ada()
    async with running(both):
        await here.say("say alpha", "alpha")
        await link(here, there)
        await resume(there, "say alpha")
        here.harness.say(here.chat, here.person, "hold on")
        await asyncio.wait_for(both.model.holding.wait(), 60)
        await there.say("say waits", "Queued")
        await here.say("say later", "Queued")
        await there.command("stop", "all", "2 waiting messages were taken out")
        await answer(here.harness, here.chat, "taken out of the queue by /stop all, given in another chat")
        await answer(here.harness, here.chat, "Stopped, as you asked")
        both.model.release()
        # What was asked there is tried again here, because it is wanted here.
        await there.command("undo", "", "Forgotten: “hold on”")
        await there.told("alpha", lambda: there.harness.command(there.chat, there.person, "retry"))
        assert here.texts().count("alpha") == 1
        assert (await here.say("recall", "I remember")).text == "I remember: say alpha"


async def test_a_button_finds_its_turn_when_another_conversation_goes_on(both: Both) -> None:
    here, there = both.ada()
    approval = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file"}
    async with running(both, **approval):
        await there.say("say omega", "omega")
        await link(here, there)
        asked = await here.say("write a.txt: hello", "write_file")
        await resume(here, "say omega")
        await here.told("Done:", lambda: here.harness.press(here.chat, here.person, asked.id, "✅ Approve"))
        # The other's buttons do nothing to a conversation that they do not belong to.
        assert (await here.say("recall", "I remember")).text == "I remember: say omega"


async def test_an_edit_stays_in_the_conversation_of_its_message(both: Both) -> None:
    here, there = both.ada()
    async with running(both):
        await here.say("say alpha", "alpha")
        await there.say("say omega", "omega")
        await link(here, there)
        here.harness.say(here.chat, here.person, "hold on")
        await asyncio.wait_for(both.model.holding.wait(), 60)
        waiting = ""

        def wait() -> None:
            nonlocal waiting
            waiting = here.harness.say(here.chat, here.person, "say wrogn")

        await here.told("Queued", wait)
        await resume(here, "say omega")
        here.harness.edit(here.chat, waiting, "recall right")
        await here.harness.until(lambda: taken_in(both.folder, "recall right"))
        both.model.release()
        told = await answer(here.harness, here.chat, "I remember")
        assert "say alpha" in told.text
        assert "say omega" not in told.text


# ---------------------------------------------------------------------- who reaches what


async def test_off_it_says_so_and_is_in_no_menu(both: Both) -> None:
    here, _ = both.ada()
    async with running(both, OUTSPOKEN_PEOPLE__LINK="false"):
        for name in ("link", "unlink", "resume"):
            await here.command(name, "", "switched off here")
        assert "/link" not in (await here.command("help", "", "/new")).text
        assert "link" not in both.telegram.menu()


async def test_on_it_is_in_the_menu(both: Both) -> None:
    here, _ = both.ada()
    async with running(both):
        assert "/link" in (await here.command("help", "", "/new")).text
        await here.harness.until(lambda: {"link", "unlink", "resume"} <= set(both.telegram.menu()))


async def test_conversations_of_groups_stay_there(both: Both) -> None:
    here, there = both.ada()
    bob = both.telegram.person("Bob")
    group = both.telegram.group(here.person, bob)
    async with running(both):
        both.telegram.say(group, here.person, "say grouped", mention=True)
        await answer(both.telegram, group, "grouped")
        await link(here, there)
        await there.command("resume", "", "no private conversation of yours yet")
        await there.command("resume", "1", "no conversation with this number")
        for name in ("link", "unlink", "resume"):
            both.telegram.command(group, here.person, name)
            await both.telegram.until(lambda: "private chat only" in texts(both.telegram, group)[-1])
            await quiet(both.telegram, group)
        assert "grouped" in texts(both.telegram, group)


async def test_nobody_else_reaches_a_conversation(both: Both) -> None:
    here, there = both.ada()
    eve = both.side(both.discord, "eve")
    async with running(both):
        await here.say("say alpha", "alpha")
        await eve.command("resume", "", "no private conversation of yours yet")
        await eve.command("resume", "1", "no conversation with this number")
        code = await code_of(here)
        await here.command("link", code, "this account's own code")
        await there.command("link", code, "Joined with Telegram")
        await eve.command("link", code, "no such code")  # it was used
        newest = await code_of(here)
        assert newest != code
        await there.command("link", newest, "joined already")
        for _ in range(4):
            await eve.command("link", "AAAAA-AAAAA", "no such code")
        await eve.command("link", newest, "Too many wrong codes")
        await eve.command("resume", "", "no private conversation of yours yet")


async def test_who_is_taken_out_lets_go_at_once(both: Both) -> None:
    here, there = both.ada()
    async with running(both):
        await here.say("say alpha", "alpha")
        await there.say("say omega", "omega")
        await link(here, there)
        await resume(there, "say alpha")
        here.harness.say(here.chat, here.person, "hold on")
        await asyncio.wait_for(both.model.holding.wait(), 60)
        await there.say("recall too late", "Queued")
        shown = await here.command("link", "", "Joined accounts:")
        number = next(line for line in shown.text.splitlines() if "Discord" in line).partition(".")[0]
        cut = asyncio.create_task(there.told("not joined with this account any more", lambda: None))
        await here.command("unlink", number, "joined with no other")
        await cut
        both.model.release()
        assert (await there.say("recall mine", "I remember")).text == "I remember: say omega"
        await there.command("unlink", "", "joined with no other")
        listed = await there.command("resume", "", "Continue one here")
        assert "alpha" not in listed.text


async def test_a_revoked_account_loses_the_link_for_good(both: Both) -> None:
    here, there = both.ada()
    closed = {"OUTSPOKEN_DISCORD__OPEN": "false", "OUTSPOKEN_TELEGRAM__ADMINS": both.telegram.id_of(here.person)}
    async with running(both, **closed):
        told = await there.say("say hello", "give this code"[5:])
        found = re.search(r"let you in: ([A-Z0-9]{8})", told.text)
        assert found is not None
        await here.command("access", f"approve {found[1]}", "may talk to me now")
        await here.say("say alpha", "alpha")
        await link(here, there)
        await there.say("say omega", "omega")
        await resume(there, "say alpha")
        person = both.discord.id_of(there.person)
        await here.command("access", f"revoke {person}", "may not talk to me any more")
        listed = await here.command("resume", "", "Continue one here")
        assert "omega" not in listed.text
        await here.command("access", f"approve {person}", "may talk to me now")
        await here.command("link", "", "joined with no other")
        assert (await there.say("recall", "I remember")).text == "I remember: say omega"


# ---------------------------------------------------------------------- restarts


async def test_after_a_kill_both_chats_get_what_was_asked_there(both: Both) -> None:
    here, there = both.ada()
    async with process(both) as one:
        await here.say("say alpha", "alpha")
        await link(here, there)
        await resume(there, "say alpha")
        here.harness.say(here.chat, here.person, "hold on")
        await asyncio.wait_for(both.model.holding.wait(), 60)
        await there.say("say second", "Queued")
        await one.kill()
    both.model.release()
    async with process(both):
        await answer(here.harness, here.chat, "on end", 30)
        await answer(there.harness, there.chat, "second", 30)
        assert "say alpha" in (await there.say("recall", "I remember")).text
        assert "second" not in here.texts()
        assert there.texts().count("second") == 1


async def test_what_two_chats_are_still_owed_is_restored_in_both(both: Both) -> None:
    here, there = both.ada()
    async with process(both) as one:
        await here.say("say alpha", "alpha")
        await link(here, there)
        await resume(there, "say alpha")
        here.harness.fail_sends(*["503"] * 40)
        there.harness.fail_sends(*["503"] * 40)
        here.harness.say(here.chat, here.person, "say tango")
        there.harness.say(there.chat, there.person, "say delta")
        await both.telegram.until(
            lambda: both.model.asked[-2:] in (["say tango", "say delta"], ["say delta", "say tango"])
        )
        await asyncio.sleep(1.0)
        await one.kill()
    both.telegram.fake.faults.clear()
    both.discord.fake.faults.clear()
    async with process(both):
        await answer(here.harness, here.chat, "tango", 30)
        await answer(there.harness, there.chat, "delta", 30)
        await quiet(here.harness, here.chat)
        assert not any("delta" in text for text in here.texts())
        assert not any("tango" in text for text in there.texts())
        assert sum("tango" in text for text in here.texts()) == 1
        assert sum("delta" in text for text in there.texts()) == 1
