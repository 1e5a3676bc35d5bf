"""Voice messages: what people say is heard, is theirs, and is told where it cannot be heard."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent_core.messages import said_by_the_gateway, said_by_the_person
from agent_core.rules.taint import ATTACHED, FORWARDED
from tests.agent_core.oddfiles import WORDS, pdf
from tests.chats.harness import Harness, answer, answers, process, quiet, running, texts
from tests.chats.model import text_of
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.chats.test_beside import whose
from tests.chats.test_schedule import database
from tests.fakes.common import JsonObject
from tests.fakes.telegram import refusal

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


def spent(platform: Harness) -> dict[str, tuple[int, int, int]]:
    """(tokens, billionths of money, tokens that are held), by the kind of budget."""
    query = "SELECT scope, spent_tokens, spent_nanos, held_tokens FROM budgets"
    return {scope.partition(":")[0]: tuple(rest) for scope, *rest in database(platform, (query, ()))}


async def test_what_is_heard_and_said_aloud_is_paid_for_by_whoever_asked(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    prices = json.dumps({
        "whisper-1": {"input": 0, "output": 0, "minute": 0.6}, "tts-1": {"input": 15, "output": 0}, "*": {"input": 0, "output": 0},
    })  # fmt: skip
    async with running(telegram, **EARS, **SPEAKS, OUTSPOKEN_BUDGETS__PRICES=prices):
        telegram.model.sound_usage = {"type": "duration", "seconds": 30}
        telegram.voice(chat, ada, SOUND)
        await answer(telegram, chat, "I heard you")
        await telegram.until(lambda: spent(telegram).get("person", (0, 0, 0))[1] == 300_000_000)
        assert spent(telegram)["chat"][1] == spent(telegram)["day"][1] == 300_000_000
        telegram.model.sound_usage = {}  # then it is estimated from the size of the sound
        telegram.voice(chat, ada, SOUND * 300)
        await telegram.until(lambda: sum("I heard you" in text for text in texts(telegram, chat)) == 2)
        await telegram.until(lambda: spent(telegram)["person"][1] > 300_000_000)
        before = spent(telegram)["person"][1]
        telegram.say(chat, ada, 'usetool speak {"text": "good morning"}')
        await answer(telegram, chat, "Done: It is on its way")
        await telegram.until(lambda: spent(telegram)["person"][1] > before)
        assert spent(telegram)["person"][2] == 0


async def test_without_room_in_a_budget_nothing_is_listened_to(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram, **EARS, OUTSPOKEN_BUDGETS__PERSON_TOKENS="1"):
        telegram.say(chat, ada, "say hello")
        await answer(telegram, chat, "hello")
        telegram.voice(chat, ada, SOUND)
        await answer(telegram, chat, "that failed: Your budget for today is used up")
        assert telegram.model.sounds == []


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


async def test_an_answer_that_drips_is_said_to_have_come_too_slowly(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    telegram.model.deaf = ["drip"]
    limits = {"OUTSPOKEN_HEARING__STALL_SECONDS": "2", "OUTSPOKEN_HEARING__SECONDS": "4"}
    async with running(telegram, **EARS, **limits):
        telegram.voice(chat, ada, SOUND)
        found = await answer(
            telegram, chat, "that failed: the answer came too slowly: it was not whole after 4 s (", 15
        )
        assert re.search(r"\(\d+ bytes\)", found.text), found.text


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


SPEAKS = {"OUTSPOKEN_SPEAKING__MODEL": "tts-1", "OUTSPOKEN_SPEAKING__VOICE": "echo"}


async def test_what_the_agent_says_aloud_arrives(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, **SPEAKS):
        platform.say(chat, ada, 'usetool speak {"text": "good morning"}')
        await answer(platform, chat, "Done: It is on its way")
        await platform.until(lambda: any(one.data.startswith(b"OggS") for one in answers(platform, chat)))
        assert platform.model.said == [
            {"model": "tts-1", "input": "good morning", "voice": "echo", "response_format": "opus"}
        ]
        platform.model.mute = ["401"]
        platform.say(chat, ada, 'usetool speak {"text": "good night"}')
        await answer(platform, chat, "It could not be said aloud: the provider did not accept the key (HTTP 401)")


async def test_on_telegram_it_is_a_voice_message_or_a_file_for_who_wants_none(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram, **SPEAKS):
        telegram.say(chat, ada, 'usetool speak {"text": "good morning"}')
        await telegram.until(lambda: bool(telegram.fake.log.of("sendVoice")))
        await answer(telegram, chat, "Done: It is on its way")
        telegram.fake.script("sendVoice", refusal(400, "Bad Request: VOICE_MESSAGES_FORBIDDEN"))
        telegram.say(chat, ada, 'usetool speak {"text": "good night"}')
        await telegram.until(lambda: bool(telegram.fake.log.of("sendDocument")))


async def test_a_program_can_speak_in_the_endpoints_place(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    script = telegram.folder / "mouth.py"
    script.write_text(
        "import sys, wave\nwith wave.open(sys.argv[1], 'wb') as file:\n    file.setparams((1, 2, 8000, 0, 'NONE', ''))\n"
        "    file.writeframes(b'\\0\\1' * 100 * len(sys.stdin.read()))"
    )
    command = f'["{sys.executable}", "{script}", "{{out}}"]'
    async with running(telegram, OUTSPOKEN_SPEAKING__COMMAND=command):
        telegram.say(chat, ada, 'usetool speak {"text": "good morning"}')
        await telegram.until(lambda: any(one.data for one in answers(telegram, chat)), 20)


async def test_the_rehearsal_model_hears_speaks_and_tells_what_is_in_a_file(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    rehearsal = {
        "OPENAI_BASE_URL": "",
        "OPENAI_API_KEY": "",
        "OUTSPOKEN_MODEL__NAME": "",
        "OUTSPOKEN_SPEAKING__MODEL": "hum",
    }
    async with running(platform, **rehearsal):
        platform.voice(chat, ada, SOUND)
        await answer(
            platform, chat, f"You wrote “This is what the rehearsal model hears: a sound of {len(SOUND)} bytes.”"
        )
        platform.attach(chat, ada, "talk.ogg", SOUND + b"2", "audio/ogg", "transcribe this")
        await answer(platform, chat, f"a sound of {len(SOUND) + 1} bytes", 20)
        platform.attach(chat, ada, "plan.pdf", pdf([WORDS]), "application/pdf", "what is in this PDF?")
        await answer(platform, chat, WORDS, 20)
        platform.say(chat, ada, "say aloud: good morning")
        await platform.until(
            lambda: any(one.data.startswith((b"RIFF", b"OggS")) for one in answers(platform, chat)), 20
        )
