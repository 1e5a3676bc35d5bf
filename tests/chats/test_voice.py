"""Voice messages: what people say is heard, is theirs, and is told where it cannot be heard."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent_core.messages import said_by_the_gateway, said_by_the_person
from agent_core.rules.taint import ATTACHED, FORWARDED
from tests.chats.harness import Harness, answer, process, quiet, running, texts
from tests.chats.model import text_of
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.chats.test_beside import whose
from tests.fakes.common import JsonObject

EARS = {"OUTSPOKEN_HEARING__MODEL": "whisper-1"}
SOUND = b"OggS" + bytes(range(200))


@pytest.fixture
async def telegram(tmp_path: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_harness(tmp_path) as harness:
        yield harness


def asked(platform: Harness, number: int = -1) -> str:
    return text_of(platform.model.requests[number][-1]["content"])


async def test_a_voice_message_is_heard_and_is_the_persons_own_word(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, **EARS):
        platform.voice(chat, ada, SOUND)
        await answer(platform, chat, "I heard you")
        assert said_by_the_person(asked(platform)) == "say I heard you"
        assert "They recorded it themselves" in said_by_the_gateway(asked(platform))
        name, _, data = platform.model.sounds[0]
        assert data == SOUND
        assert Path(name).suffix in (".ogg", ".m4a")
        assert whose(platform) == []


async def test_a_sound_that_is_a_file_is_heard_and_is_not_the_persons_word(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, **EARS):
        platform.attach(chat, ada, "talk.ogg", SOUND, "audio/ogg", "say I have listened")
        await answer(platform, chat, "I have listened")
        assert said_by_the_person(asked(platform)) == "say I have listened"
        assert "transcribed by a machine" in said_by_the_gateway(asked(platform))
        assert "say I heard you" in said_by_the_gateway(asked(platform))
        assert whose(platform) == [ATTACHED]
    assert [one.name for one in platform.folder.rglob("talk.ogg.txt")]


async def test_without_ears_it_is_said_by_name(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform):
        platform.voice(chat, ada, SOUND)
        found = await answer(platform, chat, "nobody has set up here what turns speech into text")
        assert "voice" in found.text or "audio_message" in found.text
        assert not platform.model.sounds


async def test_a_failing_endpoint_is_tried_again_and_then_told(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    telegram.model.deaf = ["503", "stall"]
    async with running(telegram, **EARS, OUTSPOKEN_HEARING__STALL_SECONDS="1"):
        telegram.voice(chat, ada, SOUND)
        await answer(telegram, chat, "I heard you", 20)
        assert len(telegram.model.sounds) == 3
        telegram.model.deaf = ["503"] * 3
        telegram.voice(chat, ada, SOUND + b"2")
        await answer(
            telegram, chat, "that failed: the provider answered with a server error (HTTP 503) (tried 3 times)", 30
        )
        telegram.model.deaf = ["401"]
        telegram.voice(chat, ada, SOUND + b"3")
        await answer(telegram, chat, "the provider did not accept the key (HTTP 401).", 20)
        assert len(telegram.model.sounds) == 7, "what does not pass is not tried again"


async def test_who_waits_for_long_reads_so_until_the_turn_begins(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    telegram.model.deaf = ["stall"]
    async with running(telegram, **EARS, OUTSPOKEN_HEARING__STALL_SECONDS="7"):
        telegram.voice(chat, ada, SOUND)
        await answer(telegram, chat, "listening to it", 15)
        await answer(telegram, chat, "I heard you", 20)
        await quiet(telegram, chat)
        assert texts(telegram, chat) == ["I heard you"]


async def test_what_was_heard_is_not_heard_again_after_a_kill(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    telegram.model.spoken = "hold the line"
    async with process(telegram, **EARS) as one:
        telegram.voice(chat, ada, SOUND)
        await telegram.until(telegram.model.holding.is_set, 30)
        await one.kill()
    telegram.model.release()
    async with process(telegram, **EARS):
        await answer(telegram, chat, "the line", 30)
    assert len(telegram.model.sounds) == 1


async def test_a_voice_message_that_was_forwarded_is_nobodys_own_word(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    origin: JsonObject = {"type": "hidden_user", "sender_user_name": "Eve", "date": 1}
    async with running(telegram, **EARS):
        telegram.fake.people.records(chat.chat, ada, SOUND, more={"forward_origin": origin})
        await answer(telegram, chat, "You said: [Forwarded from Eve]")
        assert "I heard you" not in said_by_the_person(asked(telegram, 0))
        assert "I heard you" in said_by_the_gateway(asked(telegram, 0))
        assert whose(telegram) == [FORWARDED]


async def test_a_program_can_listen_in_the_endpoints_place(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    script = telegram.folder / "ears.py"
    script.write_text("import sys; print('say', len(open(sys.argv[1], 'rb').read()), 'bytes')")
    command = f'["{sys.executable}", "{script}", "{{file}}"]'
    async with running(telegram, OUTSPOKEN_HEARING__COMMAND=command):
        telegram.voice(chat, ada, SOUND)
        await answer(telegram, chat, f"{len(SOUND)} bytes", 20)
