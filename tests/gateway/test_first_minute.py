"""The first minute of a stranger: what is typed first, and what is wrong first, each a sentence with what to do."""

from __future__ import annotations

import os
import pty
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from adapters.terminal.screen import typed
from gateway.cli.command import cli
from gateway.cli.examples import EXAMPLES
from gateway.cli.start import MachineStanding, next_steps
from tests.forked import start
from tests.gateway.test_process import environment, outspoken
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(EXAMPLES)

standings = st.builds(
    MachineStanding,
    problem=st.sampled_from(["", "The configuration has a problem:\n  - x"]),
    url=st.sampled_from(["", "http://127.0.0.1:8787"]),
    wanted_url=st.just("http://127.0.0.1:9999"),
    rehearsal=st.booleans(),
    platforms=st.sampled_from([(), ("telegram",)]),
)


def commands() -> dict[str, str]:
    """The help of every command there is."""
    import click

    found: dict[str, str] = {}

    def walk(command: click.Command, words: tuple[str, ...]) -> None:
        found[" ".join(words)] = CliRunner().invoke(cli, [*words, "--help"], prog_name="outspoken").output
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                walk(inner, (*words, name))

    walk(cli, ())
    return found


def test_every_command_explains_itself_and_shows_examples_of_itself() -> None:
    helps = commands()
    assert set(EXAMPLES) == set(helps), "gateway/cli/examples.py has an example for every command, and for no other"
    for words, text in helps.items():
        assert text.startswith(f"Usage: outspoken {words}".rstrip()), words
        for line in EXAMPLES[words]:
            assert f"  {line}\n" in text, words
            assert f"outspoken {words}".rstrip() in re.sub(r" --config \S+", "", line), line


@given(standings)
def test_whatever_stands_there_is_a_next_step_and_every_command_that_is_named_exists(standing: MachineStanding) -> None:
    lines = next_steps(standing)
    named = [found[1] for line in lines if (found := re.match(r"  outspoken (\S+(?: \S+)?)  ", line))]
    assert named
    assert {words for words in named if words != "--help"} <= set(COMMANDS)
    text = "\n".join(lines)
    assert ("outspoken setup" in text) == (not standing.problem and (standing.rehearsal or not standing.platforms))
    assert ("outspoken run" in text) == (not standing.problem and not standing.url)
    assert (standing.url in text) or bool(standing.problem)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.binary())
def test_what_is_typed_can_always_be_sent_and_is_not_changed_if_it_could_be_before(text: str, raw: bytes) -> None:
    assert typed(text) == text
    typed(raw.decode("ascii", "surrogateescape")).encode("utf-8")


def test_without_a_word_it_says_the_next_step(tmp_path: Path) -> None:
    told = outspoken(environment(tmp_path, free_port()))
    assert (told.returncode, told.stderr) == (0, "")
    assert "no model is set up" in told.stdout
    broken = outspoken(environment(tmp_path, free_port(), OUTSPOKEN_SERVER__PORTT="1"))
    assert broken.returncode == 0
    assert "Did you mean OUTSPOKEN_SERVER__PORT?" in broken.stdout
    assert "outspoken config check" in broken.stdout


@pytest.mark.parametrize("directory", ["/dev/null/state", "/proc/state"])
@pytest.mark.skipif(sys.platform != "linux", reason="these places are Linux's")
def test_a_directory_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path, directory: str) -> None:
    told = outspoken({**environment(tmp_path, 0), "OUTSPOKEN_HOME": directory}, "run")
    assert told.returncode == 78
    assert "cannot be written" in told.stderr
    assert "OUTSPOKEN_HOME=" in told.stderr
    assert "Traceback" not in told.stderr


def test_a_port_in_use_is_told_with_another_one_to_take(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        told = outspoken(environment(tmp_path, taken.getsockname()[1]), "run")
    assert told.returncode == 78
    assert "OUTSPOKEN_SERVER__PORT=" in told.stderr


def older_python() -> str | None:
    """An interpreter that is too old, if this machine has one."""
    for number in range(6, 11):
        found = shutil.which(f"python3.{number}")
        places = [Path(found)] if found else [*Path.home().glob(f".pyenv/versions/3.{number}.*/bin/python3")]
        for place in places:
            said = subprocess.run([place, "-c", "print(1)"], capture_output=True, text=True, check=False).stdout
            if said == "1\n":
                return str(place)
    return None


def test_an_older_python_says_so_in_a_sentence() -> None:
    pretended = "import sys; sys.version_info = (3, 10, 4); import gateway"
    old = older_python()
    for words in ([sys.executable, "-c", pretended], *([[old, "-m", "gateway"]] if old else [])):
        told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert told.returncode == 1
        assert re.fullmatch(r"outspoken needs Python 3\.11 or newer, and this is Python 3\.\d+\. .*\n", told.stderr)


def test_a_terminal_without_umlauts_neither_ends_the_program_nor_loses_the_question(tmp_path: Path) -> None:
    env = environment(
        tmp_path, free_port(), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii"
    )
    asked = subprocess.run(
        [sys.executable, "-m", "gateway", "ask", "--json", "gr\u00fc\u00df dich".encode()],
        env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    assert "gr?? dich" in asked.stdout


def test_a_terminal_that_cannot_replace_lines_gets_none_to_replace(tmp_path: Path) -> None:
    env = {**environment(tmp_path, free_port()), "TERM": "dumb"}
    main, inner = pty.openpty()
    try:
        (said_to := tmp_path / "said").write_text("hello\n/quit\n")
        terminal = Path(os.ttyname(inner))
        status = start(["chat"], env, out=Path(os.devnull), err=terminal, stdin=said_to).wait()
        os.close(inner)
        said = b""
        while chunk := _read(main):
            said += chunk
    finally:
        os.close(main)
    assert status == 0
    assert b"TERM=xterm-256color" in said
    assert b"\x1b" not in said


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # nobody has the other side open any more
        return b""


def test_where_nobody_knows_the_address_before_none_is_named(tmp_path: Path) -> None:
    free = outspoken(environment(tmp_path, 0)).stdout
    assert "start it; it says where the web chat is" in free
    assert ":0" not in free
    everywhere = environment(tmp_path, 8791, OUTSPOKEN_SERVER__HOST="::", OUTSPOKEN_SERVER__API_KEY="a-key")
    assert "the web chat is then at http://[::1]:8791" in outspoken(everywhere).stdout
