"""What no section is wrong about alone: the configuration is refused before a gateway starts, by everything that reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config.misfits import misfits
from gateway.config.reading import survey
from tests import forked

HEADS = {
    "[schedule]": '[[schedule.entries]]\nname = "news"\nprompt = "What is new?"\nchat = "discord/1"\nevery = "2 hours"\n',
    "[hooks.builds]": '[hooks.builds]\nchat = "telegram/1"\nprompt = "Look."\nsecret_env = "HOOK"\n',
    "a tool that does not exist: great": '[tools]\napproval = ["great"]\n',
    "there is no tool called great": '[agents.one]\ntools = ["great"]\n',
}


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "OUTSPOKEN_HOME": str(home), "HOOK": "whsec_" + "QUJD" * 12, "OUTSPOKEN_SERVER__PORT": "0"}
    return forked.run([*words], env)


@pytest.mark.parametrize(("words", "text"), HEADS.items())
def test_each_is_found_by_reading(tmp_path: Path, words: str, text: str) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_text(text)
    seen = survey(file, {"HOOK": "whsec_" + "QUJD" * 12})
    assert [one.what for one in seen.problems if words in one.what], seen.problems
    assert all(one.where.startswith(str(file)) and one.fix for one in seen.problems)


def test_what_needs_a_package_that_is_not_installed_says_what_to_install(tmp_path: Path) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_text('[mcp.time]\ncommand = "uvx"\n[telemetry]\notlp_endpoint = "http://127.0.0.1:4318/v1/traces"\n')
    config = survey(file, {"OUTSPOKEN_STORAGE__URL": "postgresql://127.0.0.1/x"}).config
    told = [one.fix for one in misfits(config, lambda _: False)]
    for extra in ("mcp", "otlp", "postgres"):
        assert any(f"outspoken[{extra}]" in fix for fix in told), told
    assert not [*misfits(config, lambda _: True)]


def test_check_refuses_what_run_refuses_and_with_the_same_words(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "own.py").write_text('def greet() -> str:\n    """Says hello."""\n    return "hello"\n')
    file = tmp_path / "outspoken.toml"
    file.write_text('[tools]\npath = "tools"\napproval = ["great"]\n')
    checked, ran = run(tmp_path, "config", "check"), run(tmp_path, "run")
    assert (checked.returncode, ran.returncode) == (78, 78), (checked, ran)
    assert "a tool that does not exist: great" in checked.stderr
    assert "a tool that does not exist: great" in ran.stderr
    file.write_text('[tools]\npath = "tools"\napproval = ["greet"]\n')
    good = run(tmp_path, "config", "check")
    assert (good.returncode, good.stdout) == (0, f"The configuration is valid: {file}.\n")


IDLE = {
    "identity_header is believed of nobody": '[server]\nidentity_header = "X-Forwarded-User"\n',
    "[operators] chat is nonsense": '[operators]\nchat = "nonsense"\n',
    "[operators] chat is discord/1": '[operators]\nchat = "discord/1"\n',
    "[hearing] command names a program that is not installed: no-such-program": (
        '[hearing]\ncommand = ["no-such-program", "{wav}"]\n'
    ),
    "[speaking] command names a program that is not installed: no-such-program": (
        '[speaking]\ncommand = ["no-such-program"]\n'
    ),
}


@pytest.mark.parametrize(("words", "text"), IDLE.items())
def test_what_is_set_and_has_no_effect_is_warned_of_and_refuses_no_start(tmp_path: Path, words: str, text: str) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_text(text)
    seen = survey(file, {})
    assert not seen.problems
    (told,) = seen.warnings
    assert told.startswith(f"{file}:2: ")
    assert words in told


def test_what_has_its_effect_is_not_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_text(
        '[server]\nidentity_header = "X-User"\ntrusted_proxies = ["127.0.0.1"]\n[operators]\nchat = "telegram/1"\n'
        f'[hearing]\ncommand = ["{sys.executable}", "{{wav}}"]\n'
    )
    seen = survey(file, {"TELEGRAM_BOT_TOKEN": "123456789:" + "a" * 35})
    assert not seen.problems
    assert not seen.warnings
