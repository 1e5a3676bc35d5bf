"""The unit, as systemd itself judges it."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.cli.guarded import CONFIGURATION

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "outspoken.service"
MOST_EXPOSURE = 12
"""Tenths; what is left is that it uses the network, and runs in the host's root directory."""

systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")


def setting(name: str, section: str = "Service") -> str:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    parser.read_string(UNIT.read_text("utf-8"))
    return parser[section][name]


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a program that is there: verification wants one."""
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text("utf-8").replace(setting("ExecStart").split()[0], "/bin/true"), "utf-8")
    return copy


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, timeout=60, check=False)


@systemd
def test_systemd_finds_nothing_to_complain_about(unit: Path):
    found = analyze("verify", "--man=no", str(unit))
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


@systemd
def test_a_mistake_in_the_unit_would_be_found(unit: Path):
    unit.write_text(
        unit.read_text("utf-8").replace("ProtectHome=yes", "ProtectHomes=yes\nProtectClock=perhaps"), "utf-8"
    )
    assert "ProtectHomes" in analyze("verify", "--man=no", str(unit)).stderr


@systemd
def test_the_sandbox_is_as_tight_as_a_program_that_talks_to_the_network_can_have_it(unit: Path):
    if "--offline" not in analyze("--help").stdout:
        pytest.skip("this systemd-analyze cannot judge a file")
    found = analyze("security", "--offline=true", "--no-pager", f"--threshold={MOST_EXPOSURE}", str(unit))
    assert found.returncode == 0, found.stdout
    loose = unit.read_text("utf-8").replace("CapabilityBoundingSet=\n", "").replace("ProtectSystem=strict", "")
    unit.write_text(loose, "utf-8")
    assert analyze("security", "--offline=true", "--no-pager", f"--threshold={MOST_EXPOSURE}", str(unit)).returncode


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="there is no systemd-sysusers here")
def test_the_user_that_the_unit_names_is_made(tmp_path: Path):
    (tmp_path / "etc").mkdir()
    made = subprocess.run(
        ["systemd-sysusers", f"--root={tmp_path}", str(UNIT.with_name("outspoken.sysusers.conf"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    users = (tmp_path / "etc" / "passwd").read_text("utf-8")
    assert users.startswith(f"{setting('User')}:x:")
    assert users.rstrip().endswith("/nologin")


def test_a_wrong_configuration_is_not_tried_again():
    assert setting("RestartPreventExitStatus") == str(CONFIGURATION)
    assert (setting("Type"), setting("Restart")) == ("notify", "on-failure")


def test_what_may_work_later_is_tried_until_it_does():
    """A database may come back at three in the morning, when nobody is there to start what has waited for it."""
    assert setting("StartLimitIntervalSec", "Unit") == "0"
    assert setting("Restart") == "on-failure"
