"""What a container engine is told, that the first process inside ends what nobody watches over, and that a sandbox is chosen by what works."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.tools.sandbox import contained
from agent_core.tools.sandbox.contained import asked
from agent_core.tools.sandbox.container import (
    BEGAN,
    ENDED,
    FIRST,
    ContainerUser,
    UnfitPath,
    arguments,
    image_of,
    mount,
    skeleton,
    ulimits,
)
from agent_core.tools.sandbox.ends import EndCause
from agent_core.tools.sandbox.seccomp import _NEW_NAMESPACES, filter_profile
from agent_core.tools.sandbox.terms import ENGINES, MIB, SandboxKind, ShellTerms, read_terms, spelled
from agent_core.tools.shell.record import OUTPUT, container_of, end_of
from agent_core.tools.shell.trial import first_that_works
from gateway.config.tools.shell import Shell, ShellSandbox
from gateway.operate.doctor.shell import judged
from gateway.shell.shell import shell_tools_of
from tests.shell.sandboxes import SMALL, needs_sandbox, put_down, ran, watcher

TERMS = ShellTerms(kind=SandboxKind.PODMAN, memory_bytes=512 * MIB, processes=50)
SOMEBODY = ContainerUser(1234, 1234, alone=True)


def told(terms: ShellTerms = TERMS, workspace: str = "/state/ws", user: ContainerUser = SOMEBODY) -> list[str]:
    return arguments(
        terms, workspace, ["python3", "-c", "1"], name="outspoken-x", user=user, seccomp="/c/seccomp.json", hard={"nproc": 90, "nofile": 512},
        there=lambda place: place in {"/usr", "/bin", "/etc/ssl/certs", "/opt/science"}, link=lambda place: "usr/bin" if place == "/bin" else "",
    )  # fmt: skip


def takes_its_place(place: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes by the name of an engine here does no more than a test says."""
    program = place / "podman"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")


def test_an_engine_is_given_what_it_needs_to_find_itself_and_none_of_our_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes_its_place(tmp_path, "env", monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("DOCKER_HOST", "unix:///there")
    status, said = asked(SandboxKind.PODMAN)
    assert status == 0
    assert "DOCKER_HOST=unix:///there" in said
    assert "sk-secret" not in said


def test_an_engine_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    takes_its_place(tmp_path, "exec sleep 60", monkeypatch)
    monkeypatch.setattr(contained, "ENGINE_SECONDS", 0.05)
    began = time.monotonic()
    status, said = asked(SandboxKind.PODMAN, "info")
    assert (status, "did not answer" in said) == (124, True)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_is_told_all_that_is_promised(kind: SandboxKind) -> None:
    words = told(replace(TERMS, kind=kind, read=("/opt/science",)))
    line = " ".join(words)
    for one in (
        "--network none", "--read-only ", "--cap-drop ALL", "no-new-privileges", "seccomp=/c/seccomp.json", "--pull never", "--log-driver none",
        "--user 1234:1234", f"--memory {512 * MIB} --memory-swap {512 * MIB}", "--pids-limit 54", "nproc=50:50", "nofile=512:512", "core=0:0",
        "type=bind,source=/state/ws,target=/workspace --workdir /workspace", "source=/opt/science,target=/opt/science,readonly",
    ):  # fmt: skip
        assert one in line, one
    mounted = [one for one in words if one.startswith("type=bind") and not one.endswith(",readonly")]
    assert mounted == ["type=bind,source=/state/ws,target=/workspace"]
    assert words[-3:] == ["python3", "-c", "1"]
    assert "--privileged" not in line
    assert "-e" not in words
    assert "--env" not in line
    assert ("--http-proxy=false" in words) == (kind is SandboxKind.PODMAN)


def test_a_person_who_is_not_alone_is_not_counted_by_number_and_stays_the_same_inside() -> None:
    words = " ".join(told(user=ContainerUser(1000, 1000, kept=True)))
    assert "--userns keep-id" in words
    assert "nproc=90:90" in words


def test_an_image_takes_the_place_of_the_machines_programs() -> None:
    words = told(replace(TERMS, image="docker.io/library/python:3.12"))
    assert "docker.io/library/python:3.12" in words
    assert [one for one in words if one.startswith("type=bind")] == ["type=bind,source=/state/ws,target=/workspace"]
    assert image_of(TERMS, lambda _: "") == image_of(TERMS, lambda _: "")
    assert image_of(TERMS, lambda _: "") != image_of(TERMS, lambda _: "usr/bin")
    assert skeleton(lambda _: "") == skeleton(lambda _: "")


@given(st.text(max_size=30))
def test_no_path_becomes_another_word_for_an_engine(path: str) -> None:
    try:
        words = mount(path, "/workspace")
    except UnfitPath:
        assert {*path} & {*',"\n\r'}
    else:
        assert words.split(",") == ["type=bind", f"source={path}", "target=/workspace", "readonly"]


@given(
    st.dictionaries(st.sampled_from(["core", "cpu", "fsize", "nofile", "nproc", "memlock"]), st.integers(-1, 10**6)),
    st.booleans(),
)
def test_no_limit_is_above_what_we_have_ourselves(hard: dict[str, int], alone: bool) -> None:
    words = ulimits(TERMS, ContainerUser(1, 1, alone=alone), hard)
    for one in words[1::2]:
        name, _, value = one.partition("=")
        soft, _, most = value.partition(":")
        assert soft == most
        assert int(most) >= 0
        assert hard.get(name, -1) < 0 or int(most) <= hard[name]


def test_the_filter_of_engines_is_the_same_one() -> None:
    profile = orjson.loads(filter_profile())
    names = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert {
        "ptrace",
        "mount",
        "unshare",
        "clone3",
        "io_uring_setup",
        "memfd_create",
        "socket",
        "ioctl",
        "clone",
    } <= names
    assert all(rule["action"] == "SCMP_ACT_ERRNO" for rule in profile["syscalls"])
    masks = [rule["args"][0] for rule in profile["syscalls"] if rule["names"] == ["clone"]]
    assert sum(mask["value"] for mask in masks) == _NEW_NAMESPACES
    assert all((mask["index"], mask["value"].bit_count(), mask["valueTwo"]) == (0, 1, mask["value"]) for mask in masks)


def test_terms_of_an_older_gateway_are_those_of_bubblewrap() -> None:
    assert read_terms(spelled(TERMS)) == TERMS
    older = {name: value for name, value in spelled(TERMS).items() if name not in {"kind", "image"}}
    assert read_terms(older).kind is SandboxKind.BUBBLEWRAP


# --- the first process ---


def first(*argv: str) -> subprocess.Popen[bytes]:
    """As in a container, but for what `kill -1` would end here."""
    script = FIRST.replace("kill -TERM -1", "kill -TERM 0").replace("kill -KILL -1", "kill -KILL 0")
    return subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", "1000000", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def test_the_first_process_gives_a_status_and_nothing_to_read() -> None:
    with first("/bin/sh", "-c", "cat; echo said; echo more >&2; exit 41") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() == b"said\nmore\n"
        assert process.stderr.readline().split() == [BEGAN.encode()]
        assert process.stderr.readline().split() == [ENDED.encode(), b"41"]


def test_no_program_is_taken_for_an_option_of_ours() -> None:
    with first("--adjustment=0", "echo", "out") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() != b"out\n"
        assert f"{ENDED} 127".encode() in process.stderr.read()


def test_the_first_process_ends_all_when_nobody_holds_its_input() -> None:
    with first("sleep", "60") as process:
        assert process.stderr is not None
        process.stderr.readline()
        assert process.stdin is not None
        process.stdin.close()
        process.wait(50)  # it would sleep for a minute


# --- with a real engine ---


@pytest.mark.parametrize("kind", ENGINES)
def test_a_command_in_a_container_is_run_asked_and_ended(kind: SandboxKind, tmp_path: Path) -> None:
    terms = needs_sandbox(kind)
    end, output = ran(tmp_path / "1", "echo hello; pwd; id -u; cat; echo x > made; exit 125", terms)
    assert (end.cause, end.status) == (EndCause.EXITED, 125)
    assert output.startswith("hello\n/workspace\n")
    assert (tmp_path / "1" / "workspace" / "made").read_text() == "x\n"
    end, _ = ran(tmp_path / "2", "sleep 60", replace(terms, seconds=1))
    assert end.cause is EndCause.TIME
    end, _ = ran(tmp_path / "3", "true", replace(terms, hosts=("example.org",)))
    assert end.cause is EndCause.SANDBOX
    assert "no list of hosts" in end.words
    end, _ = ran(tmp_path / "4", "true", replace(terms, image="localhost/none-such"))
    assert end.cause is EndCause.SANDBOX
    assert end.words
    folder = put_down(
        tmp_path / "5",
        "/bin/sh",
        "-c",
        "trap 'echo bye; exit 5' TERM; echo on; while :; do sleep 0.1; done",
        terms=terms,
    )
    with watcher(folder) as process:
        until = time.monotonic() + 20
        while not (folder / OUTPUT).exists() or b"on" not in (folder / OUTPUT).read_bytes():
            assert time.monotonic() < until
            time.sleep(0.05)
        (folder / "stop").write_text("stopped")
        process.wait(30)
    end = end_of(folder)
    assert end is not None
    assert end.cause is EndCause.STOPPED
    assert b"bye" in (folder / OUTPUT).read_bytes()


@pytest.mark.parametrize("kind", ENGINES)
def test_a_container_does_not_outlive_who_watches_over_it(kind: SandboxKind, tmp_path: Path) -> None:
    terms = needs_sandbox(kind)
    script = "echo on; i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i > count; sleep 0.1; done"
    folder = put_down(tmp_path, "/bin/sh", "-c", script, terms=terms)
    count = tmp_path / "workspace" / "count"
    with watcher(folder) as process:
        until = time.monotonic() + 20
        while not count.exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        os.killpg(process.pid, 9)
        process.wait()
    client = container_of(folder)
    for one in Path("/proc").glob("[0-9]*/cmdline"):  # what asked the engine dies with its service, too
        try:
            if client.encode() in one.read_bytes() and b"run" in one.read_bytes().split(b"\0"):
                os.kill(int(one.parent.name), 9)
        except OSError:
            continue
    until = time.monotonic() + 20
    was = ""
    while (now := count.read_text()) != was:
        assert time.monotonic() < until
        was = now
        time.sleep(1)
    asked(kind, "rm", "--force", client)


# --- which one ---


async def test_the_first_that_works_is_taken_and_it_is_said_why_not_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [SandboxKind.PODMAN, SandboxKind.DOCKER]
    refused = await first_that_works(replace(SMALL, hosts=("example.org",)), wanted)
    assert refused.kind is None
    assert "no list of hosts" in refused.words or "not installed" in refused.words
    imaged = await first_that_works(replace(SMALL, image="localhost/none-such"), [SandboxKind.BUBBLEWRAP])
    assert "An image is for a container engine" in imaged.words
    monkeypatch.setenv("PATH", str(tmp_path))
    none = await first_that_works(SMALL, [*SandboxKind])
    assert none.kind is None
    for one in SandboxKind:
        assert f"{one.value} is not installed" in none.words
    made = await shell_tools_of(Shell(sandbox=ShellSandbox.ANY))
    assert made.tools == ()
    assert judged(made, root=False)[0].fix
    assert made.status() == {"state": "unusable", "sandbox": "", "words": made.why_not, "running": 0}


async def test_doctor_and_status_say_which_sandbox_it_is() -> None:
    needs_sandbox(SandboxKind.PODMAN)
    made = await shell_tools_of(Shell(sandbox=ShellSandbox.PODMAN))
    assert made.sandbox == "podman"
    assert "sandbox by podman" in judged(made, root=False)[0].what


def test_what_is_wanted_goes_in_order() -> None:
    assert Shell(sandbox=ShellSandbox.OFF).kinds() == ()
    assert Shell(sandbox=ShellSandbox.ANY).kinds() == (*SandboxKind,)
    assert Shell(sandbox=ShellSandbox.ANY, image="python:3").kinds() == ENGINES
    assert Shell(sandbox=ShellSandbox.DOCKER).kinds() == (SandboxKind.DOCKER,)
    with pytest.raises(ValueError, match="no name of an image"):
        Shell(image="--privileged")
