"""What a sandbox is given of the machine, as it is told to bubblewrap: what lies in memory leaves memory for the command, and terms are kept whole."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.tools.sandbox.bubblewrap import SHARED_MEMORY, arguments, temporary_bytes
from agent_core.tools.sandbox.terms import MIB, SandboxKind, ShellTerms, read_terms, spelled, surroundings
from tests.agent_core.turns import gives


@given(st.integers(1, 64 * 1024))
def test_what_lies_in_memory_leaves_most_of_it_to_the_command(mebibytes: int) -> None:
    terms = ShellTerms(memory_bytes=mebibytes * MIB)
    size = temporary_bytes(terms)
    assert MIB <= size <= max(MIB, terms.memory_bytes // 2)
    told = arguments(
        terms, "/w", there=gives(False), link=gives(""), data={}, seccomp=None, status=3, block=4
    )  # fmt: skip
    sizes = {told[at + 3]: int(told[at + 1]) for at, word in enumerate(told) if word == "--size"}
    assert (sizes["/tmp"], sizes["/dev/shm"]) == (size, SHARED_MEMORY)


OTHERS: dict[str, Any] = {
    "seconds": 7.0, "memory_bytes": 5 * MIB, "processes": 3, "disk_bytes": 6 * MIB, "files": 8, "output_bytes": 9, "cpus": 1, "hosts": ("a.example",),
    "read": ("/opt/tools",), "kind": SandboxKind.PODMAN, "image": "debian",
}  # fmt: skip


@pytest.mark.parametrize("name", [one.name for one in fields(ShellTerms)])
def test_every_limit_is_kept_with_a_command(name: str) -> None:
    terms = replace(ShellTerms(), **{name: OTHERS[name]})
    assert terms != ShellTerms()
    assert read_terms(spelled(terms)) == terms


def test_a_command_has_a_proxy_where_it_may_call_somebody_and_finds_what_it_may_read() -> None:
    alone, calling = surroundings(ShellTerms(read=("/opt/tools",))), surroundings(ShellTerms(hosts=("a.example",)))
    assert alone["PATH"].startswith("/opt/tools/bin:")
    assert not [name for name in alone if "proxy" in name.lower()]
    assert {calling[name] for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")} == {
        "http://127.0.0.1:3128"
    }
