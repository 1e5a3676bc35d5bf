"""Operators have a key of their own: whoever may chat opens none of their doors, and nothing but those that say "I live" is open."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest

from gateway.config.keyfiles import SEALING, key_in, made_key, sealing_key
from gateway.config.operatorkey import FILE_NAME, operator_key_of, with_operator_key
from gateway.config.paths import find_paths
from gateway.config.reading import ConfigError, load
from tests.forked import run
from tests.gateway.first_run import doctor
from tests.gateway.test_process import daemon, environment
from tests.ports import free_port
from tests.serving import served

TALKING, OPERATING = "talking-talking-talking", "operating-operating-operating"
BOTH = {"OUTSPOKEN_SERVER__API_KEY": TALKING, "OUTSPOKEN_SERVER__OPERATOR_KEY": OPERATING}
DOORS = (
    ("GET", "/status"), ("GET", "/metrics"), ("GET", "/api/access"), ("POST", "/api/access"), ("POST", "/api/send"), ("GET", "/api/send/1"),
    ("GET", "/console/api/live"), ("GET", "/console/api/explain/x"), ("POST", "/console/api/outbox/act"),
)  # fmt: skip


async def status(url: str, method: str, path: str, key: str, headers: Mapping[str, str] | None = None) -> int:
    sent = {**(headers or {}), **({"Authorization": f"Bearer {key}"} if key else {})}
    body: dict[str, str] | None = {} if method == "POST" else None
    async with aiohttp.ClientSession(headers=sent) as http, http.request(method, url + path, json=body) as response:
        return response.status


async def test_the_key_for_talking_opens_none_of_the_operators_doors(tmp_path: Path) -> None:
    async with served(tmp_path, BOTH) as up:
        for method, path in DOORS:
            for key in ("", TALKING, OPERATING[:-1], f"{OPERATING} "[1:]):
                assert await status(up.url, method, path, key) == 401, (method, path, key)
            assert await status(up.url, method, path, OPERATING) not in (401, 403), (method, path)
        assert await status(up.url, "GET", "/v1/models", TALKING) == 200
        assert await status(up.url, "GET", "/v1/models", OPERATING) == 401
        assert await status(up.url, "GET", "/healthz", "") == 200


async def test_where_only_a_key_for_talking_is_set_the_gateway_makes_the_operators_own(tmp_path: Path) -> None:
    async with served(tmp_path, {"OUTSPOKEN_SERVER__API_KEY": TALKING}) as up:
        path = tmp_path / FILE_NAME
        made = path.read_text().strip()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(made) > 30
        assert await status(up.url, "GET", "/status", TALKING) == 401
        assert await status(up.url, "GET", "/status", made) == 200
    async with served(tmp_path, {"OUTSPOKEN_SERVER__API_KEY": TALKING}) as up:
        assert await status(up.url, "GET", "/status", made) == 200


@pytest.mark.parametrize("there", [b"\xff\xfe of another kind", b" \n"])
def test_what_is_there_and_no_key_that_can_be_read_is_kept(tmp_path: Path, there: bytes) -> None:
    for name, make in ((FILE_NAME, lambda: made_key(tmp_path / FILE_NAME)), (SEALING, lambda: sealing_key(tmp_path))):
        (tmp_path / name).write_bytes(there)
        with pytest.raises(FileExistsError, match="this user can read no key in it"):
            make()
        assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir() if one.name == name] == [(name, there)]
        (tmp_path / name).write_bytes(b"")  # whoever made it so has nothing to lose
        make()
        assert key_in(tmp_path / name)


async def test_doctor_asks_with_the_key_that_was_made(tmp_path: Path) -> None:
    env = {"OUTSPOKEN_SERVER__API_KEY": TALKING}
    async with served(tmp_path, env) as up:
        port = {"OUTSPOKEN_SERVER__PORT": up.url.rpartition(":")[2]}
        told = await doctor(tmp_path, env={**env, **port})
        assert "does not answer us" not in str(told)
        assert "gateway" in str(told)


async def test_without_any_key_this_machine_is_the_operators(tmp_path: Path) -> None:
    async with served(tmp_path) as up:
        assert await status(up.url, "GET", "/status", "") == 200
        assert await status(up.url, "GET", "/status", "", {"Host": "evil.example"}) == 403
    assert not (tmp_path / FILE_NAME).exists()


def test_the_commands_find_the_key_that_was_made(tmp_path: Path) -> None:
    env = environment(tmp_path / "home", free_port(), OUTSPOKEN_SERVER__API_KEY=TALKING)
    with daemon(env, tmp_path / "log"):
        seen = run(["status"], env)
        assert seen.returncode == 0, seen.stderr
        assert run(["access", "list"], env).returncode == 0
        made = (tmp_path / "home" / FILE_NAME).read_text().strip()
        assert made not in (tmp_path / "log").read_text() + seen.stdout


def test_one_key_for_both_is_refused_in_words() -> None:
    env = {"OUTSPOKEN_SERVER__API_KEY": TALKING, "OUTSPOKEN_SERVER__OPERATOR_KEY": TALKING}
    with pytest.raises(ConfigError, match="operator_key") as told:
        load(None, env)
    assert TALKING not in str(told.value)


def test_looking_makes_no_key(tmp_path: Path) -> None:
    env = {"OUTSPOKEN_HOME": str(tmp_path), "OUTSPOKEN_SERVER__API_KEY": TALKING}
    paths = find_paths(env, tmp_path)
    assert operator_key_of(with_operator_key(load(None, env).config, paths)) is None
    assert not (tmp_path / FILE_NAME).exists()
