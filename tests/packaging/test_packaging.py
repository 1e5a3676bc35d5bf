"""What a stranger gets: the archives, the installed program in an empty home, its help and its completion."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import tarfile
import time
import tomllib
import urllib.request
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.version import program_version
from tests.packaging.installed import ROOT, Installed, install, run
from tests.ports import free_port


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Empty."""
    made = tmp_path / "home"
    made.mkdir()
    return made


def environment(home: Path, **more: str) -> dict[str, str]:
    """Nothing but what every shell has."""
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "NO_COLOR": "1", **more}


def outspoken(installed: Installed, home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(installed.program), *words],
        cwd=home,
        env=environment(home, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@contextmanager
def daemon(installed: Installed, home: Path, port: int) -> Generator[str]:
    """The installed gateway; the line that it says when it is ready."""
    env = environment(home, OUTSPOKEN_SERVER__PORT=str(port))
    with (home.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(installed.program), "run"], cwd=home, env=env, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        yield process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


def test_the_environment_has_what_the_wheel_asks_for_and_the_versions_fit(installed: Installed):
    assert "No broken requirements" in installed.pip("check")
    there = {entry["name"].lower() for entry in json.loads(installed.pip("list", "--format", "json"))}
    assert {"outspoken", "aiohttp", "pydantic"} <= there
    assert {"pytest", "hypothesis", "asyncpg", "ruff"}.isdisjoint(there), "only what is declared is there"


def test_the_wheel_has_everything_that_is_needed_and_nothing_else(installed: Installed):
    with zipfile.ZipFile(installed.wheel) as archive:
        names = archive.namelist()
        [entry] = [name for name in names if name.endswith("entry_points.txt")]
        assert "outspoken = gateway.cli.command:main" in archive.read(entry).decode()
    assert {name.split("/")[0] for name in names} == {
        "agent_core",
        "adapters",
        "gateway",
        "migrations",
        f"outspoken-{program_version()}.dist-info",
    }
    for package in ("agent_core", "adapters", "gateway", "migrations"):
        ours = {
            str(path.relative_to(ROOT))
            for path in (ROOT / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".mo"
        }
        # Compiled by the build
        ours = {f"{name.removesuffix('.po')}.mo" if name.endswith(".po") else name for name in ours}
        assert ours == {name for name in names if name.startswith(f"{package}/")}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/NOTICE") for name in names)


def test_the_source_archive_has_what_building_testing_and_deploying_need(installed: Installed):
    with tarfile.open(installed.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Makefile", "requirements.lock", "deploy/Containerfile", "docs/setup.md", "tests/conftest.py"} <= names
    assert not {name for name in names if name.startswith((".venv", ".cache", "build", "dist", ".git/"))}
    assert not {name for name in names if "__pycache__" in name}


def test_it_talks_in_an_empty_home_and_remembers(installed: Installed, home: Path):
    port = free_port()
    with daemon(installed, home, port) as line:
        assert line == f"outspoken {program_version()} is ready: http://127.0.0.1:{port}\n"
        url = f"http://127.0.0.1:{port}"
        for words in ("remember that my dog is called Rex", "what do you remember"):
            body = json.dumps({"messages": [{"role": "user", "content": words}]}).encode()
            headers = {"Content-Type": "application/json", "X-Outspoken-Session": "packaging"}
            request = urllib.request.Request(f"{url}/v1/chat/completions", body, headers)
            with urllib.request.urlopen(request, timeout=60) as response:
                answer = json.load(response)
            assert answer["choices"][0]["finish_reason"] == "stop"
        assert "Rex" in answer["choices"][0]["message"]["content"]
        with urllib.request.urlopen(url, timeout=60) as response:
            assert b"<html" in response.read(), "the web page is in the package"
    assert (home / ".local" / "state" / "outspoken" / "outspoken.db").stat().st_size
    assert {path.name for path in home.iterdir()} == {".local"}, "nothing is strewn about"


def test_the_version_is_that_of_the_wheel(installed: Installed, home: Path):
    assert outspoken(installed, home, "--version").stdout.strip() == f"outspoken, version {program_version()}"


def test_pipx_and_uv_find_one_program_and_the_extras_are_those_that_are_heavy():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert list(project["scripts"]) == ["outspoken"]
    assert list(project["optional-dependencies"]) == ["documents", "mcp", "otlp", "postgres"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed_for_each_shell_and_are_sound(installed: Installed, home: Path, shell: str):
    printed = outspoken(installed, home, "completion", shell)
    assert printed.returncode == 0, printed.stderr
    assert "_OUTSPOKEN_COMPLETE" in printed.stdout
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=printed.stdout, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_and_their_options(installed: Installed, home: Path):
    script = home / "completion.bash"
    script.write_text(outspoken(installed, home, "completion", "bash").stdout)
    asked = (
        f"source {script}; COMP_WORDS=(outspoken {{words}}); COMP_CWORD={{at}}; "
        '_outspoken_completion outspoken; echo "${{COMPREPLY[@]}}"'
    )
    path = f"{installed.program.parent}:/usr/bin:/bin"

    def completed(*words: str) -> set[str]:
        line = asked.format(words=" ".join(words), at=len(words))
        return set(run(["bash", "-c", line], home, PATH=path, HOME=str(home)).split())

    assert completed("expl") == {"explain"}
    assert {"approve", "list", "revoke"} <= completed("access", "''")
    assert "--export" in completed("replay", "--ex")


def test_without_arguments_it_says_what_to_do_next(installed: Installed, home: Path):
    first = outspoken(installed, home)
    assert first.returncode == 0
    assert "outspoken run" in first.stdout
    assert "outspoken setup" in first.stdout
    assert not list(home.iterdir()), "looking leaves nothing behind"


# ---------------------------------------------------------------------- the container


def steps() -> list[tuple[str, str]]:
    """The Containerfile's steps: instruction and words; continued lines are one."""
    text = (ROOT / "deploy" / "Containerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


def test_the_containers_steps_are_sound_and_copy_only_what_the_build_is_given():
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    copied: set[str] = set()
    for instruction, words in steps():
        if instruction == "RUN":
            checked = subprocess.run(["sh", "-n", "-c", words], capture_output=True, text=True, check=False)
            assert (checked.returncode, checked.stderr) == (0, ""), words
        if instruction == "COPY" and not words.startswith("--from"):
            copied |= set(words.split()[:-1])
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)
    assert ("USER", "10001:10001") in steps()
    assert [words for instruction, words in steps() if instruction == "CMD"] == ['["outspoken", "run"]']


def test_what_the_container_takes_out_again_is_not_needed_to_run(installed: Installed):
    """The step that uninstalls, against the environment that has only what the wheel asks for."""
    [words] = [words for instruction, words in steps() if instruction == "RUN" and "hatchling" in words]
    removed = {word for word in words.split() if not word.startswith("-")} - {"pip", "uninstall"}
    removed = {word for word in removed if "/" not in word}
    assert "hatchling" in removed
    there = {entry["name"].lower() for entry in json.loads(installed.pip("list", "--format", "json"))}
    assert removed.isdisjoint(there)


READ_ONLY = """
set -eu
mount --make-rprivate /
mount --bind {state} {state}
mount --bind -o ro / {root}
mount --rbind /proc {root}/proc
mount --rbind /dev {root}/dev
mount --bind {state} {root}{state}
mount -t tmpfs tmpfs {root}{tmp}
exec chroot {root} {program} run
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare here")
def test_it_runs_with_the_containers_environment_on_a_root_file_system_that_is_read_only(
    installed: Installed, tmp_path: Path
):
    """What the container does that needs no engine: its variables, its health check, its read-only root."""
    state, root, tmp = tmp_path / "state", tmp_path / "root", tmp_path / "tmp"
    for folder in (state, root, tmp):
        folder.mkdir()
    port = free_port()
    assignments = " ".join(words for instruction, words in steps() if instruction == "ENV" and "CMD" not in words)
    variables = dict(word.split("=", 1) for word in shlex.split(assignments) if "=" in word)
    there = {"/var/lib": state, "/tmp": tmp, "/etc": tmp}
    ours = {
        name: value for name, value in variables.items() if name.startswith("OUTSPOKEN_") or name.endswith("_DIRECTORY")
    }
    for name, value in ours.items():
        place = next((place for place in there if value.startswith(place + "/")), None)
        ours[name] = f"{there[place]}{value.removeprefix(place)}" if place else value
    env = environment(
        tmp_path / "nowhere",
        **ours,
        OUTSPOKEN_SERVER__API_KEY="a-long-random-word",
        OUTSPOKEN_SERVER__PORT=str(port),
    )
    assert env["OUTSPOKEN_SERVER__HOST"] == "0.0.0.0", "a container's port is published from outside of it"
    env |= {"OUTSPOKEN_SERVER__HOST": "127.0.0.1", "PATH": f"{env['PATH']}:/usr/sbin:/sbin"}
    script = READ_ONLY.format(state=state, root=root, tmp=tmp, program=installed.program)
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    with (tmp_path / "log").open("wb") as log:
        gateway = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], env=env, stdout=log, stderr=log)
    try:
        [check] = [words for instruction, words in steps() if instruction == "HEALTHCHECK"]
        name, *words = json.loads(check.partition("CMD ")[2])
        assert name == "outspoken"
        deadline = time.monotonic() + 50
        while subprocess.run([installed.program, *words], env=env, capture_output=True, check=False).returncode:
            assert gateway.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.3)
        assert (state / "outspoken" / "outspoken.db").exists()
        gateway.terminate()
        assert gateway.wait(50) == 0
        assert not list(tmp.iterdir()), "what is in /tmp is in memory only"
    finally:
        if gateway.poll() is None:
            gateway.kill()
            gateway.wait(10)
