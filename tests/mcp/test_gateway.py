"""Servers of tools in a whole gateway: from the lines of its configuration to the answer, and what is told when they misbehave."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import psutil
import pytest
from click.testing import CliRunner

from adapters.contract.base import Ended, FromApi, SessionKey
from agent_core.messages import InputMessage
from agent_core.tools.base import EffectClass
from agent_core.tools.mcp.servers import McpServers
from agent_core.tools.registry import ToolChanged, changed_words
from agent_core.turn.view import View
from gateway.cli.command import cli
from gateway.config.paths import find_paths
from gateway.config.reading import load, redacted, secret_values, survey
from gateway.sessions.hub import Hub
from tests.gateway.test_console import calling, until
from tests.gateway.test_page_commands import BROWSER, Tab
from tests.mcp.rig import FAULTY, brought, faulty
from tests.serving import served


def config_file(folder: Path) -> Path:
    file = find_paths({"OUTSPOKEN_HOME": str(folder)}, folder).config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def configured(folder: Path, fault: str, more: str = "") -> Path:
    record = folder / "record"
    args = ", ".join(f'"{one}"' for one in ("-S", str(FAULTY), fault, str(record)))
    config_file(folder).write_text(
        f'[mcp.faulty]\ncommand = "{sys.executable}"\nargs = [{args}]\ntimeout_seconds = 2\ntrusted = ["*"]\n{more}',
        "utf-8",
    )
    return record


def effects(record: Path) -> list[str]:
    return record.read_text().splitlines() if record.exists() else []


async def said(hub: Hub, words: str, key: str = "k1") -> View:
    """What is to be seen at the end of a turn."""
    inbound = FromApi(
        account="test", platform_key=key, session=SessionKey("test", "a", "s"), input=(InputMessage(words),), surface="test",
        memory_scope="test", can_approve=True,
    )  # fmt: skip
    ticket = await hub.accept(inbound)
    async with asyncio.timeout(60), hub.follow(ticket) as follower:
        while True:
            sight = await follower.next(20)
            if isinstance(sight, Ended):
                return sight.view


async def learnt(hub: Hub) -> None:
    """Wait until a server has said what it can do; a turn would wait as well, but not for ever."""
    async with asyncio.timeout(60):
        while not hub.opener.world.tools.brought:
            await asyncio.sleep(0.05)


async def test_a_table_with_a_command_is_a_tool(tmp_path: Path):
    record = configured(tmp_path, "none")
    async with served(tmp_path, patient=True) as up:
        await learnt(up.hub)
        view = await said(up.hub, "call faulty__look {}")
    assert "done" in view.text
    assert effects(record) == ["look"]


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("dies", "ended, or was lost, while it ran"),
        ("is_killed", "ended, or was lost, while it ran"),
        ("endless_line", "ended, or was lost, while it ran"),
        ("hangs", "did not finish in time"),
        ("answers_late", "did not finish in time"),
        ("empty_result", "is no result"),
    ],
)
async def test_an_effect_whose_server_went_away_is_told_with_its_reason_at_the_end_of_the_turn_and_done_once(
    fault: str, why: str, tmp_path: Path
):
    record = configured(tmp_path, fault)
    async with served(tmp_path, patient=True) as up:
        await learnt(up.hub)
        view = await said(up.hub, "call faulty__act {}")
    notes = [bubble.text for bubble in view.bubbles if bubble.key.endswith(".unsure")]
    assert len(notes) == 1, view
    assert "faulty__act" in notes[0]
    assert why in notes[0]
    assert "restarted" not in notes[0], "the gateway was not"
    assert effects(record).count("act") == 1


@pytest.mark.parametrize(
    ("fault", "words"), [("becomes_an_effect", "needs more care now"), ("withdraws", "was withdrawn")]
)
async def test_a_tool_that_changes_in_mid_turn_is_not_run_in_it(fault: str, words: str, tmp_path: Path):
    record = tmp_path / "record"
    async with brought(tmp_path, faulty(fault, record)) as rig:
        assert (await rig.call("faulty__look")).text == "done"
        async with asyncio.timeout(30):
            while rig.servers.servers["faulty"].listing.tools[1].read_only:
                await asyncio.sleep(0.05)
        checked = rig.registry.check("faulty__look", "{}", ["faulty__look"], EffectClass.PURE)
        assert isinstance(checked, ToolChanged)
        assert words in changed_words(checked)
    assert effects(record) == ["look"]


async def test_the_operator_decides_which_tools_there_are_and_which_need_approval(tmp_path: Path):
    configured(tmp_path, "none", 'deny = ["put"]\napproval = ["act"]\nprefix = "f_"\n')
    async with served(tmp_path, patient=True) as up:
        await learnt(up.hub)
        tools = up.hub.opener.world.tools
        assert [one.name for one in tools.brought] == ["f_act", "f_look", "f_slow"]
        assert [one.name for one in tools.brought if one.approval] == ["f_act"]


def test_a_secret_is_neither_taken_in_the_file_nor_shown(tmp_path: Path):
    configured(tmp_path, "none", 'token = "geheim"\n')
    env = {"OUTSPOKEN_HOME": str(tmp_path)}
    paths = find_paths(env, tmp_path)
    assert "is a secret" in str(survey(paths.config_file, env, required=True).problems[0])
    configured(tmp_path, "none", 'token_env = "CELLAR_KEY"\n')
    found = load(paths.config_file, {**env, "CELLAR_KEY": "s3cret-of-the-cellar"}).config
    assert found.mcp.servers[0].terms(tmp_path).environment["CELLAR_KEY"] == "s3cret-of-the-cellar"
    assert "s3cret-of-the-cellar" not in str(redacted(found)) + repr(found) + repr(found.mcp.servers[0].terms(tmp_path))


def test_a_server_gets_several_secrets_from_variables_and_files_and_the_redactor_knows_them(tmp_path: Path):
    (tmp_path / "tenant.key").write_text("s3cret-of-the-tenant\n")
    (tmp_path / "tenant.key").chmod(0o600)
    tenant = tmp_path / "tenant.key"
    lines = f'API_TOKEN = {{env = "CELLAR_KEY"}}\nTENANT_KEY = {{file = "{tenant}"}}\n'
    configured(tmp_path, "none", f"[mcp.faulty.secrets]\n{lines}")
    env = {"OUTSPOKEN_HOME": str(tmp_path), "CELLAR_KEY": "s3cret-of-the-cellar"}
    found = load(find_paths(env, tmp_path).config_file, env).config
    terms = found.mcp.servers[0].terms(tmp_path)
    assert terms.environment["API_TOKEN"] == "s3cret-of-the-cellar"
    assert terms.environment["TENANT_KEY"] == "s3cret-of-the-tenant"
    assert {"s3cret-of-the-cellar", "s3cret-of-the-tenant"} <= {*secret_values(found)}
    assert "s3cret" not in str(redacted(found)) + repr(found) + repr(terms)
    config_file(tmp_path).write_text(
        '[mcp.one]\nurl = "https://example.org/mcp"\n[mcp.one.secrets]\nX-Key = {env = "CELLAR_KEY"}\n', "utf-8"
    )
    entry = load(find_paths(env, tmp_path).config_file, env).config.mcp.servers[0]
    assert entry.terms(tmp_path).headers == {"X-Key": "s3cret-of-the-cellar"}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('command = "x"\nurl = "https://example.org/mcp"', "either a command or a url"),
        ('args = ["x"]', "either a command or a url"),
        ('command = "x"\nenv = {API_KEY = "x"}', "looks like a secret"),
        ('command = "x"\npure = ["a"]\neffect = ["a"]', "a tool stands in pure and in effect"),
        ('command = "x"\ntimeout_seconds = 0', "timeout_seconds"),
        ('command = "x"\nsecrets = [{name = "A"}]', "where one of its secrets stands"),
        ('command = "x"\nsecrets = [{name = "A", value = "x"}]', "is a secret"),
        ('command = "x"\nsecrets = [{name = "A", env = "NOT_THERE"}]', "NOT_THERE is not set"),
        ('command = "x"\nprefix = "a b"', "prefix"),
    ],
)
def test_what_is_wrong_with_a_server_is_said(lines: str, words: str, tmp_path: Path):
    config_file(tmp_path).write_text(f"[mcp.one]\n{lines}\n", "utf-8")
    env = {"OUTSPOKEN_HOME": str(tmp_path)}
    problems = survey(find_paths(env, tmp_path).config_file, env, required=True).problems
    assert any(words in str(one) for one in problems), problems


def test_what_a_server_wrote_is_shown_without_its_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = "import os, sys; sys.exit('no login with ' + os.environ['CELLAR_KEY'])"
    config_file(tmp_path).write_text(
        f"[mcp.cellar]\ncommand = '{sys.executable}'\nargs = ['-S', '-c', \"{script}\"]\ntoken_env = 'CELLAR_KEY'\n",
        "utf-8",
    )
    monkeypatch.setenv("OUTSPOKEN_HOME", str(tmp_path))
    monkeypatch.setenv("CELLAR_KEY", "s3cret-of-the-cellar")
    found = CliRunner().invoke(cli, ["--config", str(config_file(tmp_path)), "mcp", "list"])
    assert found.exit_code == 1
    assert "it wrote: no login with ***" in found.stdout
    assert "s3cret" not in found.stdout


@pytest.mark.parametrize("there", [True, False])
def test_where_no_server_is_configured_a_list_and_a_login_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
):
    """With and without the package that speaks the protocol: there is nobody to speak with."""
    monkeypatch.setenv("OUTSPOKEN_HOME", str(tmp_path))
    if not there:

        def nowhere(_: str) -> None:
            return None

        monkeypatch.setattr("importlib.util.find_spec", nowhere)
        monkeypatch.setattr("gateway.operate.servers.find_spec", nowhere)
    found = CliRunner().invoke(cli, ["mcp", "list"])
    assert (found.exit_code, found.output) == (0, "No server is configured: see docs/mcp.md.\n")
    refused = CliRunner().invoke(cli, ["mcp", "login", "cellar"])
    assert (refused.exit_code, refused.output) == (
        1,
        "There is no server called cellar in the configuration. There is: none.\n",
    )


async def test_without_a_server_nothing_of_it_is_there(tmp_path: Path):
    async with served(tmp_path, patient=True) as up:
        assert up.hub.opener.settings.tools_settled is None
    assert not (tmp_path / "state" / "mcp").exists()


HOLD = """
import asyncio, sys
from pathlib import Path
from tests.mcp.rig import brought, faulty
async def main():
    async with brought(Path(sys.argv[1]), faulty("child_stays", Path(sys.argv[1]) / "record")) as rig:
        print("PIDS", (await rig.servers.servers["faulty"].ready()).link.pid, rig.servers.lifeline.pid, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_nothing_of_a_server_outlives_a_gateway_that_is_killed(tmp_path: Path):
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(tmp_path), stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert holder.stdout is not None
    async with asyncio.timeout(60):
        while not (line := await holder.stdout.readline()).startswith(b"PIDS"):
            assert line, "it ended"
    pids = [*map(int, line.split()[1:]), int((tmp_path / "record.child").read_text())]
    assert all(psutil.pid_exists(pid) for pid in pids)
    os.kill(holder.pid, signal.SIGKILL)
    await holder.wait()
    async with asyncio.timeout(30):
        while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids):
            await asyncio.sleep(0.05)


def test_the_servers_are_loaded_by_nobody_else():
    assert McpServers.__module__ == "agent_core.tools.mcp.servers"
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, gateway.daemon; print([n for n in sys.modules if 'mcp' in n])"],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    ).stdout  # fmt: skip
    assert loaded.strip() == "['gateway.config.tools.mcp', 'gateway.http.mcpdoor']"


async def test_what_a_tool_asks_in_a_background_task_is_asked_on_the_page_that_began_it(tmp_path: Path):
    record = configured(tmp_path, "asks_the_person", 'prefix = "f_"\n')
    async with served(tmp_path, patient=True) as up, aiohttp.ClientSession(read_bufsize=2**20) as http:
        await learnt(up.hub)
        tab = Tab(http, up.url)
        await tab.says("in the background: call f_act {}")
        seen = await tab.sees("Task 1 (call f_act {}): ")
        (asked,) = [one for one in seen.values() if one["key"].startswith("task:")]
        question = asked["bubbles"][-1]
        assert (question["kind"], question["final"]) == ("question", False)
        body = {"turn": asked["turn"], "call": question["call"], "answer": "3"}
        async with http.post(f"{up.url}/api/sessions/c-conversation/approvals", json=body, headers=BROWSER) as response:
            assert (await response.json())["done"]
        await tab.sees("Task 1 (call f_act {}) is done")
    assert '"action": "accept"' in record.read_text()


async def test_an_answer_that_comes_late_is_told_to_whoever_was_told_that_nobody_knows(tmp_path: Path):
    record = configured(tmp_path, "answers_late")
    async with served(tmp_path, patient=True) as up, aiohttp.ClientSession(read_bufsize=2**20) as http:
        await learnt(up.hub)
        tab = Tab(http, up.url)
        await tab.says("call faulty__act {}")
        await tab.sees("did not finish in time")
        seen = await tab.sees("faulty__act has answered after all: it was done")
        assert len(seen) == 2
    assert effects(record) == ["act"]


async def test_the_console_shows_how_servers_stand_their_tools_and_what_ended_them(tmp_path: Path):
    configured(tmp_path, "dies")
    async with served(tmp_path, patient=True) as up, calling(up) as http:
        await learnt(up.hub)
        seen = await until(http, "/console/api/live", lambda s: s["servers"][0]["state"] == "ready")
        (server,) = seen["servers"]
        assert (server["id"], server["words"], server["restarts"]) == ("mcp/faulty", "", 0)
        assert "faulty__act" in server["tools"]
        await said(up.hub, "call faulty__act {}")
        seen = await until(http, "/console/api/live", lambda s: bool(s["servers"][0]["words"]))
        assert "ended with status 9" in seen["servers"][0]["words"]
        assert seen["servers"][0]["calls"] == 1
        await said(up.hub, "call faulty__look {}", "k2")
        await until(http, "/console/api/live", lambda s: s["servers"][0]["restarts"] >= 1)
