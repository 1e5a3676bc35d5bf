"""``outspoken setup`` as a process, against the fakes: nothing is written that was not tried, and nothing that was written gets lost."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import stat
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from aiohttp import web

from adapters.discord.platform import Discord
from adapters.slack.manifest import manifest
from adapters.slack.platform import Slack
from adapters.telegram.platform import Telegram
from gateway.config.reading import load
from tests.fakes.discord import DiscordFake
from tests.fakes.slack import SlackFake
from tests.fakes.telegram import TelegramFake
from tests.gateway.first_run import KEY, ROOT, SmallModel, outspoken, section_of, small_model
from tests.listening import listening
from tests.ports import free_port

WRONG = "7000000001:AAWrongTokenForTestsOnly_0123456789abcd"


@pytest.fixture
async def telegram() -> AsyncGenerator[TelegramFake]:
    async with TelegramFake() as fake:
        yield fake


@pytest.fixture
async def discord() -> AsyncGenerator[DiscordFake]:
    async with DiscordFake() as fake:
        yield fake


@pytest.fixture
async def slack() -> AsyncGenerator[SlackFake]:
    async with SlackFake() as fake:
        fake.grant("assistant:write", "im:read", "im:write", "groups:history", "reactions:write", "users:read")
        yield fake


@pytest.fixture
async def model() -> AsyncGenerator[SmallModel]:
    async with small_model() as one:
        yield one


def written(home: Path) -> str:
    return (home / ".env").read_text("utf-8")


def is_private(path: Path) -> bool:
    return stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_wrong_token_is_asked_for_again_and_only_the_good_one_is_written(
    tmp_path: Path, telegram: TelegramFake
) -> None:
    toml = tmp_path / "outspoken.toml"
    toml.write_text(f'# mine\n[telegram]\napi_base = "{telegram.origin}"  # near\nopen = true\n')
    (tmp_path / ".env").write_text(
        "# what I keep here\nOPENAI_API_KEY='sk-mine'  # the key\nOUTSPOKEN_TELEGRAM__TOKEN=1:old\n"
    )
    before = toml.read_bytes()
    ran = await outspoken(tmp_path, "setup", "telegram", stdin=f"{WRONG}\nnot a token\n{telegram.token}\n")
    assert ran.status == 0, ran.out
    assert ran.out.count("Telegram does not know the bot's token") == 1
    assert "must be one word" in ran.out
    assert "https://t.me/outspoken_bot" in ran.out
    assert "outspoken access approve" in ran.out
    assert telegram.token not in ran.out
    assert toml.read_bytes() == before
    assert (
        written(tmp_path)
        == f"# what I keep here\nOPENAI_API_KEY='sk-mine'  # the key\nTELEGRAM_BOT_TOKEN={telegram.token}\n"
    )
    assert is_private(tmp_path / ".env")
    section = section_of(load(toml, {}).config, Telegram)
    assert section.token is not None
    assert (section.token.get_secret_value(), section.open) == (telegram.token, True)


async def test_a_script_sets_up_everything_from_the_environment(
    tmp_path: Path, telegram: TelegramFake, discord: DiscordFake, slack: SlackFake, model: SmallModel
) -> None:
    env = {
        "OPENAI_API_KEY": KEY,
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "OUTSPOKEN_TELEGRAM__API_BASE": telegram.origin,
        "DISCORD_BOT_TOKEN": discord.token,
        "OUTSPOKEN_DISCORD__API_BASE": discord.api_url,
        "OUTSPOKEN_DISCORD__GATEWAY_URL": discord.gateway_url,
        "SLACK_BOT_TOKEN": slack.bot_token,
        "SLACK_APP_TOKEN": slack.app_token,
        "OUTSPOKEN_SLACK__API_BASE": slack.base_url,
    }
    more = ("--base-url", model.url, "--model", "small", "--webhook-url", "https://chat.example.org")
    ran = await outspoken(tmp_path, "setup", "--yes", *more, **env)
    assert ran.status == 0, ran.out
    config = load(tmp_path / "outspoken.toml", {}).config
    on_telegram, on_slack = section_of(config, Telegram), section_of(config, Slack)
    assert (config.model.base_url, config.model.name) == (model.url, "small")
    kept = (
        config.model.api_key,
        on_telegram.token,
        section_of(config, Discord).token,
        on_slack.bot_token,
        on_slack.app_token,
    )
    assert [one and one.get_secret_value() for one in kept] == [
        KEY, telegram.token, discord.token, slack.bot_token, slack.app_token,
    ]  # fmt: skip
    assert on_telegram.webhook_url == "https://chat.example.org"
    assert on_telegram.webhook_secret is not None
    secret = on_telegram.webhook_secret.get_secret_value()
    assert len(secret) >= 32
    for one in (secret, *(value for name, value in env.items() if "TOKEN" in name or "KEY" in name)):
        assert one not in ran.out
    invite = next(word for word in ran.out.split() if word.startswith("https://discord.com/oauth2/authorize"))
    query = parse_qs(urlsplit(invite).query)
    assert (query["client_id"], query["permissions"]) == ([str(discord.bot.id)], ["309237763136"])
    assert is_private(tmp_path / ".env")


async def test_what_is_refused_or_cannot_be_tried_is_not_written(tmp_path: Path, telegram: TelegramFake) -> None:
    env = {"OUTSPOKEN_TELEGRAM__API_BASE": telegram.origin}
    ran = await outspoken(tmp_path, "setup", "telegram", "--yes", TELEGRAM_BOT_TOKEN=WRONG, **env)
    assert (ran.status, "nothing was written" in ran.out) == (1, True)
    await telegram.down()
    ran = await outspoken(tmp_path, "setup", "telegram", "--yes", TELEGRAM_BOT_TOKEN=telegram.token, **env)
    assert (ran.status, "cannot be reached" in ran.out) == (1, True)
    assert not (tmp_path / ".env").exists()


@pytest.mark.parametrize("between", [" ", "\n", "\u200b"])
async def test_a_token_with_something_in_it_that_no_token_has_is_told_in_words(
    tmp_path: Path, telegram: TelegramFake, between: str
) -> None:
    env = {"OUTSPOKEN_TELEGRAM__API_BASE": telegram.origin}
    around = f" {telegram.token}\n"
    broken = telegram.token.replace(":", f":{between}")
    ran = await outspoken(tmp_path, "setup", "telegram", "--yes", TELEGRAM_BOT_TOKEN=broken, **env)
    assert (ran.status, "TELEGRAM_BOT_TOKEN must be one word" in ran.out) == (1, True), ran.out
    assert "Traceback" not in ran.out
    assert not (tmp_path / ".env").exists()
    ran = await outspoken(tmp_path, "setup", "telegram", "--yes", TELEGRAM_BOT_TOKEN=around, **env)
    assert (ran.status, telegram.token in written(tmp_path)) == (0, True), ran.out


@pytest.mark.parametrize("words", [("setup",), ("setup", "discord"), ("setup", "discord", "--yes"), ("setup", "--yes")])
async def test_a_closed_standard_input_is_told_with_what_to_do(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = await outspoken(tmp_path, *words)
    assert ran.status == 2
    assert "--yes" in ran.out
    assert ("DISCORD_BOT_TOKEN=… outspoken setup discord --yes" in ran.out) == ("discord" in words)
    assert list(tmp_path.iterdir()) == []


async def test_a_missing_intent_is_mended_while_setup_waits(tmp_path: Path, discord: DiscordFake) -> None:
    discord.world.content_granted = False
    env = {"OUTSPOKEN_DISCORD__API_BASE": discord.api_url, "OUTSPOKEN_DISCORD__GATEWAY_URL": discord.gateway_url}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "setup", "discord",
        cwd=ROOT, env={"PATH": os.environ["PATH"], "OUTSPOKEN_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1", **env},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{discord.token}\n".encode())
    try:
        heard = await child.stdout.readuntil(b"Press Enter")
        assert b"Message Content Intent" in heard
        assert f"/{discord.bot.id}/bot".encode() in heard
        assert not (tmp_path / ".env").exists()
        discord.world.content_granted = True
        out, _ = await child.communicate(b"\n")
    finally:
        if child.returncode is None:  # else the run hangs behind it
            child.kill()
            await child.wait()
    assert child.returncode == 0, out
    assert b"The Message Content Intent is on" in out
    assert discord.token in written(tmp_path)
    discord.world.content_granted = False
    ran = await outspoken(tmp_path, "setup", "discord", stdin="\nskip\n", **env)
    assert ran.status == 1  # written, and the bot is deaf all the same


async def test_slack_is_given_a_form_filled_in_and_its_scopes_are_looked_at(tmp_path: Path, slack: SlackFake) -> None:
    slack.withdraw("files:read")
    env = {"OUTSPOKEN_SLACK__API_BASE": slack.base_url}
    answers = f"{slack.bot_token}\nxapp-1-A0-3-wrong\n{slack.bot_token}\n{slack.app_token}\nskip\n"
    ran = await outspoken(tmp_path, "setup", "slack", stdin=answers, **env)
    assert ran.status == 1, ran.out
    assert "files:read (" in ran.out
    link = next(word for word in ran.out.split() if "manifest_json=" in word)
    assert orjson.loads(parse_qs(urlsplit(link).query)["manifest_json"][0]) == manifest()
    config = load(tmp_path / "outspoken.toml", {}).config
    app_token = section_of(config, Slack).app_token
    assert app_token is not None
    assert app_token.get_secret_value() == slack.app_token


async def test_a_model_is_chosen_from_its_endpoints_list(tmp_path: Path, model: SmallModel) -> None:
    ran = await outspoken(tmp_path, "setup", "model", stdin=f"nonsense\n{model.url}/\n{KEY}\nother\n")
    assert ran.status == 0, ran.out
    assert "begins with http" in ran.out
    assert "It has: small, other" in ran.out
    assert "does not say which models" not in ran.out
    assert "other calls tools" in ran.out
    config = load(tmp_path / "outspoken.toml", {}).config
    assert (config.model.base_url, config.model.name) == (model.url, "other")
    # Enter keeps everything, the key too.
    ran = await outspoken(tmp_path, "setup", "model", stdin="\n\n\n")
    assert ran.status == 0, ran.out
    assert KEY in written(tmp_path)


async def test_nothing_is_asked_that_a_failure_has_answered_and_what_was_typed_stays(
    tmp_path: Path, model: SmallModel
) -> None:
    nobody = f"http://127.0.0.1:{free_port()}/v1"
    above = model.url.removesuffix("/v1")
    typed = [nobody, above, "sk-wrong", KEY, "nonsuch", "small"]
    ran = await outspoken(tmp_path, "setup", "model", stdin="".join(f"{line}\n" for line in typed))
    assert ran.status == 0, ran.out
    asked = ("Address of the API", "Key (empty", "Name of the model")
    # Nobody at the first address: neither key nor name are asked for. A key that is refused: only the key again; a name: only the name.
    assert [ran.out.count(question) for question in asked] == [2, 2, 2], ran.out
    assert f"Address of the API [{nobody}]" in ran.out
    assert f"The API is at {model.url}." in ran.out
    assert "Name of the model [nonsuch]" in ran.out
    config = load(tmp_path / "outspoken.toml", {}).config
    assert (config.model.base_url, config.model.name) == (model.url, "small")


@pytest.mark.parametrize(
    ("status", "why"),
    [(502, "has (HTTP 502)."), (200, "has: what answers is no API of models, so the address may be wrong")],
)
async def test_who_lists_no_models_is_said_to_list_none_before_a_name_is_asked_for(
    tmp_path: Path, status: int, why: str
) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html><h1>Sign in</h1></html>", status=status, content_type="text/html")

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", page)
    async with listening(app) as url:
        ran = await outspoken(tmp_path, "setup", "model", stdin=f"{url.removeprefix('http://')}\n{url}/v1\n\nm\n")
    assert "as in http://127.0.0.1:11434/v1." in ran.out
    assert f"It does not say which models it {why}" in ran.out
    assert "server_error" not in ran.out


async def test_what_was_given_and_is_no_good_is_not_tried_again_and_again(tmp_path: Path, model: SmallModel) -> None:
    for given in (
        ("--base-url", f"http://127.0.0.1:{free_port()}/v1"),
        ("--base-url", model.url, "--model", "nonsuch"),
    ):
        ran = await outspoken(tmp_path, "setup", "model", *given, stdin=f"{KEY}\n" * 9)
        assert (ran.status, ran.out.count("nothing was written")) == (1, 1), ran.out
        assert not (tmp_path / ".env").exists()


async def test_input_that_ends_in_the_middle_names_what_was_asked_for_then(tmp_path: Path) -> None:
    ran = await outspoken(tmp_path, "setup", stdin="n\n")
    assert ran.status == 2
    assert "nobody can be asked: Set up Telegram?\n" in ran.out
    assert "TELEGRAM_BOT_TOKEN=… outspoken setup telegram --yes" in ran.out


async def test_each_can_be_left_out(tmp_path: Path) -> None:
    ran = await outspoken(tmp_path, "setup", stdin="n\nno\n\nmaybe\nn\n")
    assert (ran.status, "Nothing was changed" in ran.out, "answer y or n" in ran.out) == (0, True, True), ran.out
    assert list(tmp_path.iterdir()) == []


async def test_what_would_make_the_configuration_invalid_is_not_written(tmp_path: Path, telegram: TelegramFake) -> None:
    env = {"OUTSPOKEN_TELEGRAM__API_BASE": telegram.origin, "TELEGRAM_BOT_TOKEN": telegram.token}
    ran = await outspoken(tmp_path, "setup", "telegram", "--yes", "--webhook-url", "no address", **env)
    assert (ran.status, "nothing was written" in ran.out) == (1, True), ran.out
    # What was wrong before is no reason.
    (tmp_path / "outspoken.toml").write_text("[nonsense]\n")
    assert (await outspoken(tmp_path, "setup", "telegram", "--yes", **env)).status == 0


async def test_a_file_that_cannot_be_written_is_told(tmp_path: Path, telegram: TelegramFake) -> None:
    (tmp_path / "home").write_text("in the way")
    env = {"OUTSPOKEN_TELEGRAM__API_BASE": telegram.origin, "TELEGRAM_BOT_TOKEN": telegram.token}
    ran = await outspoken(tmp_path / "home", "setup", "telegram", "--yes", **env)
    assert (ran.status, "cannot be written" in ran.out) == (1, True), ran.out


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
async def test_in_a_terminal_the_token_is_not_shown_and_ctrl_c_leaves_what_was_there(
    tmp_path: Path, telegram: TelegramFake
) -> None:
    (tmp_path / ".env").write_text("KEPT=1\n")
    ours, theirs = pty.openpty()
    env = {"PATH": os.environ["PATH"], "OUTSPOKEN_HOME": str(tmp_path), "OUTSPOKEN_TELEGRAM__API_BASE": telegram.origin}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "setup", "telegram",
        cwd=ROOT, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    heard = await asyncio.to_thread(_until, ours, b"Token: ")
    os.write(ours, f"{WRONG}\n".encode())
    heard += await asyncio.to_thread(_until, ours, b"Token: ")
    assert WRONG.encode() not in heard
    await _asleep(child.pid)  # a signal between the question and the wait for its answer is seen after the answer
    child.send_signal(signal.SIGINT)
    heard += await asyncio.to_thread(_until, ours, b"Stopped.")
    assert await asyncio.wait_for(child.wait(), 60) == 130
    os.close(ours)
    assert [path.name for path in tmp_path.iterdir()] == [".env"]
    assert written(tmp_path) == "KEPT=1\n"


async def _asleep(pid: int) -> None:
    """Until the process does nothing but wait."""
    looks = 0
    while looks < 6:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
        looks = looks + 1 if state == "S" else 0
        await asyncio.sleep(0.05)


def _until(handle: int, words: bytes) -> bytes:
    heard = b""
    while words not in heard:
        heard += os.read(handle, 4096)
    return heard


@pytest.mark.parametrize("kept", ['api_key_file = "first.key"', 'api_key_files = ["first.key"]'])
async def test_a_key_of_another_address_is_not_left_to_go_to_the_new_one(
    tmp_path: Path, model: SmallModel, kept: str
) -> None:
    """The file is not touched, and what it says would be sent to whom it was not given for."""
    model.keyless = True
    (tmp_path / "first.key").write_text("sk-of-somebody-else-123")
    (tmp_path / "first.key").chmod(0o600)
    toml = tmp_path / "outspoken.toml"
    toml.write_text(f'[model]\nbase_url = "https://models.example/v1"\n{kept}\n')
    ran = await outspoken(tmp_path, "setup", "model", "--yes", "--base-url", model.url, "--model", "small")
    assert ran.status == 1
    assert f"is still set by {toml}:3." in ran.out
    assert not (tmp_path / ".env").exists()
    toml.write_text('[model]\nbase_url = "https://models.example/v1"\n')
    ran = await outspoken(tmp_path, "setup", "model", "--yes", "--base-url", model.url, "--model", "small")
    assert ran.status == 0, ran.out


async def test_further_keys_go_with_the_address_that_they_were_given_for(tmp_path: Path, model: SmallModel) -> None:
    (tmp_path / ".env").write_text(
        "OPENAI_BASE_URL=https://models.example/v1\nOUTSPOKEN_MODEL__API_KEYS=sk-one-123456,sk-two-123456\n"
    )
    more = ("--base-url", model.url, "--model", "small")
    ran = await outspoken(tmp_path, "setup", "model", "--yes", *more, OPENAI_API_KEY=KEY)
    assert ran.status == 0, ran.out
    config = load(tmp_path / "outspoken.toml", {}).config
    assert [one.get_secret_value() for one in config.model.credentials] == [KEY]
