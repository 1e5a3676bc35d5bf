"""What a command printed, made readable; the filter of calls; the words of every end."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.text.shown import harmless
from agent_core.tools.sandbox.ends import CommandEnd, EndCause
from agent_core.tools.sandbox.seccomp import ARCHITECTURES, filter_program
from agent_core.tools.sandbox.terms import ShellTerms
from agent_core.tools.shell.output import both_ends, cleaned, last_line
from agent_core.tools.shell.record import CommandRecord, decoded, decoded_end, encoded, encoded_end
from agent_core.tools.shell.words import ended_title

STEERING = st.lists(
    st.one_of(
        st.sampled_from(
            [b"\x1b[31m", b"\x1b]0;title\x07", b"\r", b"\x08", b"\x1b", b"\n", b"\x9b1m", b"\xff", b"a\rb"]
        ),
        st.binary(max_size=8),
    ),
    max_size=20,
)


@given(STEERING)
def test_nothing_that_is_shown_steers_a_terminal(parts: list[bytes]) -> None:
    shown = cleaned(b"".join(parts))
    assert harmless(shown) == shown
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert "\n" not in last_line(b"".join(parts))


def test_of_a_line_that_is_written_again_and_again_the_last_state_is_left() -> None:
    assert cleaned(b"10 %\r50 %\r100 %\ndone\r\n\x1b[1mbold\x1b[0m") == "100 %\ndone\nbold"
    assert last_line(b"one\n  two  \n\n") == "two"


def test_a_long_output_is_shown_from_both_its_ends_and_says_so() -> None:
    text = b"".join(b"%d\n" % n for n in range(10_000))
    shown = both_ends(text, text, len(text), 1_000)
    assert shown.startswith("0\n1\n")
    assert shown.endswith("9999\n")
    assert "left out" in shown
    assert len(shown) < 1_100
    cut = both_ends(text[:2_000], text[-2_000:], len(text), 1_000)
    assert f"{len(text):,} bytes" in cut
    assert cut.endswith("9999\n")


def test_hostile_output_takes_no_longer_than_it_is_long() -> None:
    for piece in (b"\x1b[", b"\x1b]", b"\r", b"a\x08", b"\x1b[;;;;"):
        assert len(cleaned(piece * 50_000)) <= 500_000


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_the_filter_is_a_program_whose_jumps_lead_into_it(machine: str) -> None:
    program = filter_program(machine)
    assert program is not None
    lines = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    assert lines[-1][0] == 0x06
    for number, (code, if_so, if_not, _) in enumerate(lines):
        if code & 0x07 == 0x05:
            assert number + 1 + max(if_so, if_not) < len(lines)
    assert filter_program("vax") is None


@pytest.mark.parametrize("cause", EndCause)
def test_every_end_is_stored_and_told(cause: EndCause) -> None:
    record = CommandRecord(
        "c1", "t", "t:1", "/x", "make test", ("make",), ShellTerms(hosts=("a.example",), read=("/opt",)), 5
    )
    end = CommandEnd(cause, 139 if cause is EndCause.EXITED else None, 75.0, "why")
    assert decoded(encoded(record)) == record
    assert decoded_end(encoded_end(end)) == end
    title = ended_title(record, end)
    assert title.startswith("Command c1 (make test) ")
    assert "\n" not in title
    if cause is EndCause.EXITED:
        assert "SIGSEGV" in title
