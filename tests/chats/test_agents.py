"""Several agents in a chat: each conversation has its own choice, which outlives a restart and a new beginning."""

from __future__ import annotations

import json
from pathlib import Path

from tests.chats.conftest import telegram_harness
from tests.chats.harness import Harness, answer, running, texts

AGENTS = {"coder": {"prompt": "CODER PROMPT"}, "writer": {"prompt": "WRITER PROMPT"}}


def prompt_of(harness: Harness) -> str:
    """What the model was told first in its latest request."""
    return str(harness.model.requests[-1][0]["content"])


async def test_a_chat_chooses_its_agent_and_keeps_it_over_a_restart_and_a_new_conversation(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as here:
        ada = here.person("Ada")
        chat = here.private(ada)
        env = {"OUTSPOKEN_AGENTS__EACH": json.dumps(AGENTS)}
        async with running(here, **env):
            await here.until(lambda: "agent" in here.menu())
            here.say(chat, ada, "say one")
            await answer(here, chat, "one")
            assert "PROMPT" not in prompt_of(here)
            here.command(chat, ada, "agent")
            assert "▸ outspoken" in (await answer(here, chat, "Choose one")).text
            here.command(chat, ada, "agent", "codre")
            await answer(here, chat, "There is no agent called codre here")
            here.command(chat, ada, "agent", "coder")
            await answer(here, chat, "From now on coder answers here")
            here.say(chat, ada, "say two")
            await answer(here, chat, "two")
            assert prompt_of(here).startswith("CODER PROMPT")
        async with running(here, **env):
            here.say(chat, ada, "say three")
            await answer(here, chat, "three")
            assert prompt_of(here).startswith("CODER PROMPT")
            here.command(chat, ada, "new")
            await answer(here, chat, "A new conversation")
            here.say(chat, ada, "say four")
            await answer(here, chat, "four")
            assert prompt_of(here).startswith("CODER PROMPT")
            here.command(chat, ada, "why")
            await answer(here, chat, "agent coder")


async def test_the_configuration_gives_a_chat_its_agent_and_people_can_choose_the_plain_one_again(
    tmp_path: Path,
) -> None:
    async with telegram_harness(tmp_path) as here:
        ada = here.person("Ada")
        chat = here.private(ada)
        own = {"writer": {"prompt": "WRITER PROMPT", "chats": [f"telegram/{here.chat_of(chat)}"]}}
        async with running(here, OUTSPOKEN_AGENTS__EACH=json.dumps(own)):
            here.say(chat, ada, "say one")
            await answer(here, chat, "one")
            assert prompt_of(here).startswith("WRITER PROMPT")
            here.command(chat, ada, "agent", "outspoken")
            await answer(here, chat, "From now on outspoken answers here")
            here.say(chat, ada, "say two")
            await answer(here, chat, "two")
            assert "PROMPT" not in prompt_of(here)


async def test_without_agents_nobody_is_offered_a_choice(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as here:
        ada = here.person("Ada")
        chat = here.private(ada)
        async with running(here):
            assert "agent" not in here.menu()
            here.command(chat, ada, "agent")
            await answer(here, chat, "There is one agent here")
            assert len(texts(here, chat)) == 1


async def test_an_agent_that_is_gone_is_told_of_and_the_next_in_line_answers(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as here:
        ada = here.person("Ada")
        chat = here.private(ada)
        async with running(here, OUTSPOKEN_AGENTS__EACH=json.dumps(AGENTS)):
            here.command(chat, ada, "agent", "coder")
            await answer(here, chat, "From now on coder answers here")
        for left, words in (({"writer": AGENTS["writer"]}, "coder, which was chosen here, is gone, so outspoken answers"),
                            ({}, "coder, which was chosen here, is gone")):  # fmt: skip
            async with running(here, OUTSPOKEN_AGENTS__EACH=json.dumps(left)):
                here.say(chat, ada, f"say {len(left)}")
                await answer(here, chat, str(len(left)))
                assert "PROMPT" not in prompt_of(here)
                here.command(chat, ada, "agent")
                await answer(here, chat, words)


async def test_each_platform_lists_and_chooses_agents(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_AGENTS__EACH=json.dumps(AGENTS)):
        platform.command(chat, ada, "agent")
        await answer(platform, chat, "▸ outspoken")
        platform.command(chat, ada, "agent", "writer")
        await answer(platform, chat, "From now on writer answers here")
        platform.say(chat, ada, "say three")
        await answer(platform, chat, "three")
        assert prompt_of(platform).startswith("WRITER PROMPT")
