"""``outspoken doctor`` as a process, against the fakes and a real database: everything planted is found, with what to do."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from tests.chats.harness import process
from tests.chats.telegram_harness import telegram_harness
from tests.fakes.common import Delay, Reset
from tests.fakes.discord import DiscordFake
from tests.fakes.slack import SlackFake
from tests.fakes.slack.sockets import Farewell
from tests.fakes.telegram import TelegramFake
from tests.gateway.first_run import KEY, SmallModel, Told, doctor, outspoken, small_model
from tests.ports import free_port


@dataclass
class World:
    """Everything that a gateway can have, all of it sound."""

    home: Path
    model: SmallModel
    telegram: TelegramFake
    discord: DiscordFake
    slack: SlackFake
    port: int

    def env(self, **more: str) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": self.model.url,
            "OPENAI_API_KEY": KEY,
            "OUTSPOKEN_MODEL__NAME": "small",
            "OUTSPOKEN_SERVER__PORT": str(self.port),
            "TELEGRAM_BOT_TOKEN": self.telegram.token,
            "OUTSPOKEN_TELEGRAM__API_BASE": self.telegram.origin,
            "DISCORD_BOT_TOKEN": self.discord.token,
            "OUTSPOKEN_DISCORD__API_BASE": self.discord.api_url,
            "OUTSPOKEN_DISCORD__GATEWAY_URL": self.discord.gateway_url,
            "SLACK_BOT_TOKEN": self.slack.bot_token,
            "SLACK_APP_TOKEN": self.slack.app_token,
            "OUTSPOKEN_SLACK__API_BASE": self.slack.base_url,
            **more,
        }

    async def doctor(self, **more: str) -> Told:
        return await doctor(self.home, env=self.env(**more))

    async def doctor_alone(self, **more: str) -> Told:
        """In a process of its own."""
        return await doctor(self.home, env=self.env(**more), own_process=True)

    async def made(self) -> None:
        """Make the database, as a first start does."""
        assert (await outspoken(self.home, "access", "list", **self.env())).status == 0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    async with (
        small_model() as model,
        TelegramFake() as telegram,
        DiscordFake() as discord,
        SlackFake() as slack,
    ):
        slack.grant("assistant:write", "im:read", "im:write", "groups:history", "reactions:write", "users:read")
        ada = discord.people.user("Ada")
        discord.people.guild("Friends", ada)
        # What waits to be fetched ends a poll at once, so that the look for a second poller takes no time.
        eve = telegram.people.user("Eve")
        telegram.people.say(telegram.people.private(eve), eve, "hello")
        yield World(tmp_path / "home", model, telegram, discord, slack, free_port())


async def test_where_all_is_sound_nothing_is_found_and_nothing_is_changed(world: World) -> None:
    told = await world.doctor_alone()
    assert (told.status, told.problems) == (0, [])
    for check in (
        "configuration", "directory", "disk", "port", "clock", "model.answers", "model.stream", "model.tools",
        "telegram.token", "telegram.pollers", "discord.token", "discord.intent", "discord.gateway", "discord.servers",
        "slack.token", "slack.scopes", "slack.app_token", "slack.socket",
    ):  # fmt: skip
        assert told.of(check)["level"] == "ok", told.of(check)
    assert told.of("database")["level"] == "note"
    assert not world.home.exists()
    for secret in (KEY, world.telegram.token, world.discord.token, world.slack.bot_token, world.slack.app_token):
        assert secret not in told.text
    assert world.slack.sockets.open == []
    words = await outspoken(world.home, "doctor", **world.env())
    assert (words.status, words.out.splitlines()[-1]) == (0, "All is well.")


# --- what is planted, one by one ---


async def test_wrong_tokens(world: World) -> None:
    wrong = {
        "TELEGRAM_BOT_TOKEN": "7000000001:AAWrongTokenForTestsOnly_0123456789abcd",
        "DISCORD_BOT_TOKEN": "MTAwMDAwMDAwMDAwMDAwMDAwMA.Wrong.Token",
        "SLACK_BOT_TOKEN": "xoxb-1-2-wrong",
        "SLACK_APP_TOKEN": "xapp-1-A0FAKEAPP01-3-wrong",
        "OPENAI_API_KEY": "sk-wrong-key",
    }
    told = await world.doctor(**wrong)
    assert told.status == 1
    assert told.problems == ["discord.token", "model.key", "slack.app_token", "slack.token", "telegram.token"]
    assert "@BotFather" in told.of("telegram.token")["fix"]
    assert "Reset Token" in told.of("discord.token")["fix"]
    assert "OAuth & Permissions" in told.of("slack.token")["fix"]
    assert told.of("slack.app_token")["link"] == "https://api.slack.com/apps/A0FAKEAPP01/general"
    assert all(secret not in told.text for secret in wrong.values())


async def test_a_token_of_the_wrong_shape_hides_nothing_else(world: World) -> None:
    told = await world.doctor(TELEGRAM_BOT_TOKEN="nonsense", OPENAI_API_KEY="sk-wrong-key")
    assert told.status == 1, "it stops its own bot alone"
    assert "model.key" in told.problems
    assert "@BotFather" in told.of("configuration")["fix"]
    assert told.of("discord.token")["level"] == "ok"


async def test_a_missing_intent(world: World) -> None:
    world.discord.world.content_granted = False
    told = await world.doctor()
    assert (told.status, told.problems) == (1, ["discord.intent"])
    found = told.of("discord.intent")
    assert "Message Content Intent" in found["fix"]
    assert found["link"] == f"https://discord.com/developers/applications/{world.discord.bot.id}/bot"


async def test_a_missing_scope(world: World) -> None:
    world.slack.withdraw("files:write", "im:history")
    told = await world.doctor()
    assert (told.status, told.problems) == (1, ["slack.scopes"])
    found = told.of("slack.scopes")
    assert "files:write (" in found["what"]
    assert "im:history (" in found["what"]
    assert "Reinstall to Workspace" in found["fix"]
    assert found["link"].endswith("/A0FAKEAPP01/oauth")


async def test_an_unreachable_model(world: World) -> None:
    told = await world.doctor(OPENAI_BASE_URL=f"http://127.0.0.1:{free_port()}/v1")
    assert (told.status, told.problems) == (1, ["model.reach"])
    assert "[model] base_url" in told.of("model.reach")["fix"]


async def test_a_model_that_is_not_there_or_lacks_something(world: World) -> None:
    told = await world.doctor(OUTSPOKEN_MODEL__NAME="smal")
    assert (told.status, told.problems) == (1, ["model.name"])
    assert "small" in told.of("model.name")["fix"]
    world.model.calls_tools = world.model.streams = world.model.lists = False
    told = await world.doctor()
    assert (told.status, told.problems) == (0, [])
    assert told.of("model.tools")["level"] == told.of("model.stream")["level"] == "warning"


@pytest.mark.parametrize("who", ["telegram", "discord", "slack"])
async def test_a_clock_that_is_off_by_an_hour(world: World, who: str) -> None:
    fakes = {"telegram": world.telegram, "discord": world.discord, "slack": world.slack}
    fakes[who].advance(3600)
    told = await world.doctor()
    assert (told.status, told.problems) == (1, ["clock"])
    assert "60 min behind" in told.of("clock")["what"]
    assert "set-ntp" in told.of("clock")["fix"]


async def test_a_directory_that_cannot_be_written(world: World) -> None:
    world.home.write_text("a file where a directory should be")
    told = await world.doctor()
    assert told.status == 1
    assert "directory" in told.problems
    found = told.of("directory")
    assert "cannot be written" in found["what"]
    assert "OUTSPOKEN_HOME" in found["fix"]
    assert told.of("discord.token")["level"] == "ok"


async def test_a_database_that_this_user_may_only_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root's own, after a command of root's made it anew: whoever looks can open it, and no gateway starts."""
    await world.made()
    database = world.home / "outspoken.db"
    real = os.access

    def access(path: str | Path, mode: int) -> bool:
        return Path(path) != database and real(path, mode)

    monkeypatch.setattr(os, "access", access)
    told = await world.doctor()
    assert told.problems == ["database.rights"]
    assert told.of("database.rights")["what"] == f"This user may not write {database}."


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a directory that not even root may write")
async def test_a_read_only_directory_not_even_root_may_write(world: World) -> None:
    world.home = Path("/proc/self")
    told = await world.doctor()
    assert "directory" in told.problems


async def test_a_directory_in_which_nobody_may_write(world: World) -> None:
    world.home.mkdir(mode=0o555)
    found = (await world.doctor()).of("directory")
    assert found["level"] == ("warning" if os.geteuid() == 0 else "problem")  # permissions do not bind root


async def test_one_key_of_two_that_is_refused_is_named(world: World) -> None:
    told = await world.doctor(OPENAI_API_KEY="sk-wrong-key", OUTSPOKEN_MODEL__API_KEYS=KEY)
    assert told.problems == ["model.key"]
    assert "key number 1" in told.of("model.key")["what"]
    assert told.of("model.answers")["level"] == "ok"


async def test_a_port_in_use_by_another_program(world: World) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", world.port))
        taken.listen()
        told = await world.doctor()
    assert (told.status, told.problems) == (1, ["port"])
    found = told.of("port")
    assert "OUTSPOKEN_SERVER__PORT" in found["fix"]
    if sys.platform == "linux":
        assert f"(process {os.getpid()})" in found["what"]


async def test_two_pollers(world: World) -> None:
    async def other() -> None:
        """As other libraries poll: at once again after a conflict."""
        async with aiohttp.ClientSession() as http:
            while True:
                url = f"{world.telegram.base_url}{world.telegram.token}/getUpdates?timeout=20"
                async with http.get(url) as response:
                    await response.read()
                await asyncio.sleep(0.5)

    world.telegram.world.updates.drop(world.telegram.unconfirmed)
    polling = asyncio.create_task(other())
    try:
        await world.telegram.until(lambda: world.telegram.polled)
        told = await world.doctor()
    finally:
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
    assert (told.status, told.problems) == (1, ["telegram.pollers"])
    assert "/revoke" in told.of("telegram.pollers")["fix"]


async def test_an_old_schema_and_a_newer_one(world: World) -> None:
    await world.made()
    assert (await world.doctor()).of("database")["level"] == "ok"
    database = world.home / "outspoken.db"

    def say(revision: str) -> None:
        with closing(sqlite3.connect(database)) as conn, conn:
            conn.execute("UPDATE alembic_version SET version_num = ?", (revision,))
            conn.execute("UPDATE min_version SET revision = ?", (revision,))

    say("0001")
    before = database.read_bytes()
    told = await world.doctor()
    assert (told.status, told.problems) == (1, ["database.schema"])
    assert "0001" in told.of("database.schema")["what"]
    assert "outspoken run upgrades it" in told.of("database.schema")["fix"]
    assert database.read_bytes() == before
    say("9999")
    told = await world.doctor()
    assert (told.status, told.problems) == (1, ["database"])
    assert "newer version" in told.of("database")["fix"]
    database.write_bytes(b"no database at all" * 100)
    assert (await world.doctor()).problems == ["database"]


async def test_an_unknown_key(world: World, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('[telegram]\nopen = true\ndraft = false\n[nonsense]\nx = 1\n[server]\nport = "many"\n')
    told = await doctor(world.home, config=file, env=world.env())
    assert told.status == 78
    assert told.problems == ["configuration"]
    words = [f"{one['what']} {one['fix']}" for one in told.findings if one["check"] == "configuration"]
    assert any(f"{file}:3" in one and "draft" in one and "drafts" in one for one in words)
    assert any(f"{file}:4" in one and "[nonsense]" in one for one in words)
    assert told.of("telegram.token")["level"] == "ok"
    file.write_text("this is no TOML")
    told = await doctor(world.home, config=file, env=world.env())
    assert told.status == 78
    assert told.of("slack.token")["level"] == "ok"
    assert told.of("model.answers")["level"] == "ok"


async def test_a_key_is_told_to_nobody_whose_address_may_stand_in_a_file_that_cannot_be_read(
    world: World, tmp_path: Path
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        f'[model]\nbase_url = "{world.model.url}"\nname = small\n[storage]\nurl = "postgresql://db/outspoken"\n'
    )
    told = await doctor(world.home, config=file, env=world.env(OPENAI_BASE_URL="", OUTSPOKEN_SERVER__PORT=""))
    assert told.status == 78
    assert told.problems == ["configuration"]
    assert {one["check"].partition(".")[0] for one in told.findings}.isdisjoint({"model", "database", "port"})
    assert "Not looked at: the database, the port, the model." in told.text


async def test_all_of_it_at_once(world: World, tmp_path: Path) -> None:
    world.home.write_text("in the way")
    world.slack.withdraw("commands")
    world.discord.world.content_granted = False
    world.slack.advance(3600)
    world.telegram.script("getMe", Reset())
    file = tmp_path / "own.toml"
    file.write_text("[log]\nlevle = 'info'\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", world.port))
        taken.listen()
        told = await doctor(world.home, config=file, env=world.env(OUTSPOKEN_MODEL__NAME="gone"), own_process=True)
    assert told.status == 78
    assert set(told.problems) >= {
        "configuration", "directory", "slack.scopes", "discord.intent", "clock", "telegram.reach", "model.name", "port",
    }  # fmt: skip


# --- beyond the ten ---


async def test_a_secret_that_everybody_can_read(world: World) -> None:
    world.home.mkdir()
    (world.home / ".env").write_text(f"OPENAI_API_KEY={KEY}\n")
    (world.home / ".env").chmod(0o644)
    env = world.env()
    del env["OPENAI_API_KEY"]
    told = await doctor(world.home, env=env)
    assert told.of("permissions")["level"] == "warning"
    assert "chmod 600" in told.of("permissions")["fix"]


async def test_sockets_of_others_and_socket_mode_switched_off(world: World) -> None:
    world.slack.sockets.ghost()
    told = await world.doctor()
    assert told.of("slack.socket")["level"] == "warning"
    assert "1 other open socket" in told.of("slack.socket")["what"]
    world.slack.sockets.enabled = False
    await world.slack.sockets.disconnect(Farewell.LINK_DISABLED)
    told = await world.doctor()
    assert told.problems == ["slack.socket"]
    assert "Socket Mode" in told.of("slack.socket")["fix"]


async def test_a_webhook_that_is_set_while_the_bot_polls_and_privacy_mode(world: World) -> None:
    world.telegram.world.privacy = True
    async with aiohttp.ClientSession() as http:
        url = f"{world.telegram.base_url}{world.telegram.token}/setWebhook"
        async with http.post(url, json={"url": "http://127.0.0.1:9/hook"}) as response:
            assert response.status == 200
    told = await world.doctor()
    assert told.of("telegram.webhook")["level"] == "warning"
    assert told.of("telegram.privacy")["level"] == "note"
    told = await world.doctor(OUTSPOKEN_TELEGRAM__GROUPS="always")
    assert told.problems == ["telegram.privacy"]


async def test_certificates_that_are_not_there(world: World, tmp_path: Path) -> None:
    told = await world.doctor_alone(SSL_CERT_FILE=str(tmp_path / "none.pem"))
    assert "tls" in told.problems
    assert "SSL_CERT_FILE" in told.of("tls")["fix"]


async def test_a_platform_that_hangs_holds_nobody_up(world: World) -> None:
    world.discord.script("get_application", Delay(30))
    told = await world.doctor()
    assert told.problems == ["discord.reach"]
    assert "in time" in told.of("discord.reach")["what"]


async def test_a_running_gateway_is_asked_and_not_disturbed(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as harness:
        port = free_port()
        async with process(harness, OUTSPOKEN_SERVER__PORT=str(port)):
            await harness.fake.until(lambda: harness.fake.polled)
            calls = len(harness.fake.log.of("getUpdates"))
            env = {**harness.env(), "OUTSPOKEN_SERVER__PORT": str(port)}
            told = await doctor(harness.folder, env=env, own_process=True)
            assert told.problems == []
            assert told.of("telegram.running")["level"] == "ok"
            assert "An outspoken gateway answers" in told.of("port")["what"]
            polls = harness.fake.log.of("getUpdates")[calls:]
            assert all(call.params.get("limit") == "100" for call in polls), polls
            assert all(call.status != 409 for call in harness.fake.log.of("getUpdates"))
            # What the gateway was given by its environment is not known here.
            blind = await doctor(harness.folder, env={"OUTSPOKEN_SERVER__PORT": str(port)}, own_process=True)
            assert "start this command with the same variables" in blind.of("platforms")["fix"]
            assert blind.of("telegram.running")["level"] == "ok"
            # Another state directory at the same port is another gateway.
            other = await doctor(tmp_path / "other", env={"OUTSPOKEN_SERVER__PORT": str(port)})
            assert other.problems == ["port"]
            assert "another outspoken" in other.of("port")["what"]


# ------------------------------------------------------------------ programs


async def test_a_server_that_others_can_reach_without_any_key_is_told_and_one_with_a_key_is_not(world: World) -> None:
    await world.made()
    told = await world.doctor(OUTSPOKEN_SERVER__HOST="0.0.0.0")
    assert told.of("server.keys")["level"] == "warning"
    assert "outspoken keys add" in told.of("server.keys")["fix"]
    for verb in (("add", "old", "--expires-days", "0.0000001"), ("add", "laptop")):
        assert (await outspoken(world.home, "keys", *verb, **world.env())).status == 0
    told = await world.doctor(OUTSPOKEN_SERVER__HOST="0.0.0.0")
    assert told.of("server.keys")["what"].startswith("1 key of outspoken keys")
    assert (await outspoken(world.home, "keys", "revoke", "laptop", **world.env())).status == 0
    assert (await world.doctor(OUTSPOKEN_SERVER__HOST="0.0.0.0")).of("server.keys")["level"] == "warning"


SECRET = "whsec_" + "QUJD" * 10
WEBHOOK = {"name": "deploy", "secrets": [SECRET]}


async def test_receivers_that_can_be_reached_are_said_to_be_and_others_with_the_reason(world: World) -> None:
    def hooks(*receivers: Mapping[str, object]) -> str:
        return json.dumps([{**WEBHOOK, **one} for one in receivers])

    here = {"url": world.model.url, "private": True}
    away = {"name": "away", "url": f"http://127.0.0.1:{free_port()}/hook", "private": True}
    inside = {"name": "inside", "url": f"https://127.0.0.1:{free_port()}/hook"}
    told = await world.doctor(OUTSPOKEN_WEBHOOKS__RECEIVERS=hooks(here, away, inside))
    said = {one["what"].split()[2]: one for one in told.all_of("webhooks")}
    assert (said["deploy"]["level"], said["away"]["level"], said["inside"]["level"]) == ("ok", "problem", "problem")
    assert "no connection could be made" in said["away"]["what"]
    assert "Set private = true" in said["inside"]["what"]
    assert SECRET not in json.dumps(told.findings)


async def test_an_agent_that_names_a_model_is_compared_with_the_one_that_the_endpoint_lists_first(
    world: World, tmp_path: Path
) -> None:
    config = tmp_path / "agents.toml"
    config.write_text('[agents.coder]\nmodels = ["other"]\n[agents.writer]\nmodels = ["small"]\n')
    told = await doctor(world.home, config=config, env=world.env(OUTSPOKEN_MODEL__NAME=""))
    assert (told.status, told.problems) == (1, ["agents"])
    assert told.of("agents")["what"] == "The agent coder asks for other, and the model here is small: it cannot answer."
    world.model.lists = False
    told = await doctor(world.home, config=config, env=world.env(OUTSPOKEN_MODEL__NAME=""))
    assert "agents" not in told.problems


async def test_agents_and_hooks_are_said_to_have_everything_that_they_name_or_not(world: World) -> None:
    agents = {"coder": {"models": ["small"], "chats": ["telegram/7"]}}
    hook = {"prompt": "Say it.", "secrets": ["whsec_" + "QUJD" * 10]}
    hooks = [{**hook, "name": "builds", "chat": "telegram/7"}]
    both = {"OUTSPOKEN_AGENTS__EACH": json.dumps(agents), "OUTSPOKEN_HOOKS__ENTRIES": json.dumps(hooks)}
    told = await world.doctor(**both)
    assert [one["level"] for one in told.all_of("agents")] == ["ok"]
    assert "asks small" in told.of("agents")["what"]
    assert told.of("hooks")["level"] == "ok"
    told = await world.doctor(**both, TELEGRAM_BOT_TOKEN="")
    assert [one["level"] for one in told.all_of("agents")] == ["ok", "warning"]
    assert ("[hooks.builds] is for a chat on telegram" in told.of("configuration")["what"], told.status) == (True, 78)
