"""No command of the documentation fails: blocks that are marked are run, all others name what there is."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from gateway.cli.command import cli
from gateway.commands.registry import menu
from gateway.config.keys import OTHER_VARIABLES, describe
from tests.docs.pages import ROOT, Block, pages
from tests.ports import free_port
from tests.program import program
from tests.serving import QUICK

LIMIT_SECONDS = 110
SHELLS = {"", "sh", "console", "bash", "shell"}


def blocks() -> list[Block]:
    return [block for page in pages() for block in page.blocks]


def lines(block: Block) -> Iterator[str]:
    """The commands of a block: lines that are continued are one; prompts and what is printed are left out."""
    joined = block.text.replace("\\\n", " ")
    for line in joined.splitlines():
        bare = line.removeprefix("$ ").strip()
        if block.language == "console" and not line.startswith("$ "):
            continue
        yield bare


def commands(first: str) -> list[tuple[Block, list[str]]]:
    """Every use of a program in a block, as words; environment, pipes and what runs it are taken off."""
    found: list[tuple[Block, list[str]]] = []
    for block in blocks():
        if block.language not in SHELLS:
            continue
        for line in lines(block):
            for piece in re.split(r"\s*(?:\||&&|;|>|<|&$)\s*", line):
                try:
                    words = shlex.split(piece, comments=True)
                except ValueError:
                    continue
                while words and re.match(r"[A-Z][A-Z0-9_]*=", words[0]):
                    words = words[1:]
                uses = [number for number, word in enumerate(words) if Path(word).name == first]
                if uses and (uses[0] == 0 or words[0] in {"exec", "sudo"}):
                    found.append((block, words[uses[-1] if words[0] == "sudo" else uses[0] :][1:]))
    return found


def misuse(words: list[str]) -> str:
    """What is wrong with the words behind ``outspoken``; empty if nothing is."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        if words[0].startswith("-"):
            option, *words = words
            if option not in {name for parameter in command.params for name in parameter.opts} | {"--help", "-h"}:
                return f"{command.name} has no option {option}"
            words = words[1:] if option == "--config" else words
            continue
        inner = command.get_command(click.Context(command), words[0])
        if inner is None:
            return f"there is no command {words[0]}"
        command, words = inner, words[1:]
    known = {name for parameter in command.params for name in parameter.opts} | {"--help", "-h"}
    wrong = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    return f"{command.name} has no option {wrong[0]}" if wrong else ""


def test_every_use_of_the_program_is_one_that_it_understands() -> None:
    used = commands("outspoken")
    assert len(used) >= 30
    wrong = [
        f"{block.page}:{block.line}: {shlex.join(words)}: {what}" for block, words in used if (what := misuse(words))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("words", ["runn", "ask --jsonn x", "access aprove X", "--confg x run"])
def test_a_misuse_is_found(words: str) -> None:
    assert misuse(words.split())


def test_make_is_asked_for_what_it_makes() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = "\n".join(page.path.read_text("utf-8") for page in pages())
    asked = set(re.findall(r"`make ([a-z-]+)", text)) | {words[0] for _, words in commands("make") if words}
    assert len(asked) > 3
    assert {word for word in asked if "=" not in word} <= targets


def test_modules_tests_and_files_that_are_named_exist() -> None:
    for page in pages():
        text = page.path.read_text("utf-8")
        for module in re.findall(r"python -m ((?:gateway|tests|agent_core|adapters)[\w.]*)", text):
            assert find_spec(module), f"{page.name}: {module}"
        if page.name == "CHANGELOG.md":
            continue  # what it tells of may be gone
        for named in re.findall(r"`((?:tests|deploy|gateway|agent_core|adapters|migrations|docs)/[\w./-]+)`", text):
            assert (ROOT / named).exists() or "/." in named, f"{page.name}: {named}"  # hidden ones are made


def test_variables_that_are_named_are_known() -> None:
    known = {name for doc in describe() for name in doc.env} | set(OTHER_VARIABLES)
    for page in pages():
        if page.name == "CHANGELOG.md":
            continue
        for name in re.findall(r"\bOUTSPOKEN_[A-Z_]*[A-Z]\b", page.path.read_text("utf-8")):
            assert name in known, f"{page.name}: {name}"


def test_blocks_of_configuration_are_valid(tmp_path: Path) -> None:
    from gateway.config.reading import survey

    for block in blocks():
        if block.language != "toml":
            continue
        file = tmp_path / "outspoken.toml"
        file.write_text(block.text, "utf-8")
        for name in re.findall(r'(?:_|\b)file = "([^"]+)"', block.text):
            (tmp_path / name).write_text("a-long-random-word")
        for name in re.findall(r'secret_files = \["([^"]+)"', block.text):
            (tmp_path / name).write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        # A block shows one section; what it needs of others is there.
        env = {"OUTSPOKEN_TELEGRAM__WEBHOOK_SECRET": "a-long-random-word", "TELEGRAM_BOT_TOKEN": "1:a-long-random-word"}
        env["PAPERS_TOKEN"] = "a-long-random-word"
        problems = survey(file, env).problems
        assert not problems, f"{block.page}:{block.line}: {problems}"


RUNNABLE = sorted({block.page for block in blocks() if block.run})


@pytest.mark.timeout(LIMIT_SECONDS + 20)
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize("page", RUNNABLE)
def test_the_blocks_of_a_page_run_one_after_the_other(page: str, tmp_path: Path) -> None:
    """In an empty home, on a free port, with the rehearsal model; each block in the folder and the state that the ones before left."""
    found = [block for block in blocks() if block.run and block.page == page]
    if any("curl" in block.text for block in found) and shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    port = str(free_port())
    bin_, work = tmp_path / "bin", tmp_path / "work"
    bin_.mkdir()
    work.mkdir()
    program(bin_)
    script = ["set -euo pipefail"]
    for number, block in enumerate(found):
        text = block.text.replace("8787", port)
        if block.language == "python":
            (tmp_path / f"{number}.py").write_text(text)
            text = f'"{sys.executable}" "{tmp_path / f"{number}.py"}"'
        script += [f"echo '== {block.page}:{block.line}'", text]
    env = {
        "PATH": f"{bin_}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        **QUICK,
        "OUTSPOKEN_SERVER__PORT": port,
    }
    with (tmp_path / "out").open("wb") as out:
        shell = subprocess.Popen(
            ["bash", "-c", "\n".join(script)],
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        status = shell.wait(LIMIT_SECONDS)
    finally:
        stop_all(shell.pid)
        shell.wait(20)
    assert status == 0, (tmp_path / "out").read_text("utf-8")


def stop_all(group: int) -> None:
    """End what the blocks started and left running: a session of its own, so nothing else is in it."""
    try:
        os.killpg(group, signal.SIGTERM)
        for _ in range(300):
            time.sleep(0.1)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_the_page_of_telegram_names_every_command_of_its_menu() -> None:
    page = (ROOT / "docs" / "telegram.md").read_text()
    section = page.split("## Commands", 1)[1].split("\n## ", 1)[0]
    named = set(re.findall(r"`/(\w+)", section))
    assert named == {command.name for command in menu(people=True, agents=True)}
