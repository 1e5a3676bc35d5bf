"""The configuration file may be named before or behind the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.command import cli
from gateway.cli.elsewhere import config_first


@pytest.mark.parametrize(
    "words",
    [
        ["--config", "FILE", "config", "check"],
        ["config", "check", "--config", "FILE"],
        ["config", "--config=FILE", "check"],
    ],
)
def test_it_is_taken_wherever_it_stands(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "missing.toml"
    said = CliRunner().invoke(cli, [word.replace("FILE", str(file)) for word in words])
    assert said.exit_code == 78
    assert f"{file}: does not exist" in " ".join(said.output.split())


def test_without_a_file_it_is_said_that_one_is_missing() -> None:
    said = CliRunner().invoke(cli, ["status", "--config"])
    assert said.exit_code == 2
    assert "'--config' requires an argument" in said.output


@given(st.lists(st.sampled_from(["ask", "--json", "words", "--config=a", "-h"])), st.lists(st.text(max_size=9)))
def test_nothing_is_lost_and_what_stands_behind_two_dashes_stays(words: list[str], behind: list[str]) -> None:
    told = config_first([*words, "--", *behind])
    assert told[len(words) :] == ["--", *behind]
    assert sorted(told[: len(words)]) == sorted(words)
    assert [word for word in told[: len(words)] if word != "--config=a"] == [
        word for word in words if word != "--config=a"
    ]
