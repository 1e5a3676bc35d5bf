"""A terminal whose gateway goes away in the middle of an answer: it waits, and shows all of it, once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.terminal.ask import GatewayLost, Shown, StatusLine, stream
from tests.chats.model import scripted_model
from tests.forked import Forked, start
from tests.gateway.test_process import daemon, environment
from tests.ports import free_port


async def until(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("command", ["ask", "chat"])
async def test_the_answer_is_shown_whole_and_once_when_the_gateway_is_killed_and_comes_back(
    tmp_path: Path, command: str
) -> None:
    async with scripted_model() as model:
        model.released.clear()
        more = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-x", "OUTSPOKEN_MODEL__NAME": "m1"}
        patient = {"OUTSPOKEN_MODEL__STALL_SECONDS": "30", "OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS": "30"}
        env = environment(tmp_path, free_port(), **more, **patient)
        out, err, given_ = tmp_path / "out", tmp_path / "err", tmp_path / "in"
        given_.write_text("hold Line one speaks of bridges\n")
        words = ["ask", "hold Line one speaks of bridges"] if command == "ask" else ["chat"]

        def begun() -> Forked:
            return start(words, env, out=out, err=err, stdin=given_ if command == "chat" else None)

        with daemon(env, tmp_path / "log") as first:
            person = await asyncio.to_thread(begun)
            await until(lambda: out.exists() and "bridges" in out.read_text())
            first.kill()
            await until(lambda: "waiting for it" in err.read_text())
        model.release()
        with daemon(env, tmp_path / "log"):
            status = await asyncio.to_thread(person.wait)
        said = out.read_text()
        assert status == 0, err.read_text()
        assert said.count("Line one speaks of bridges") == 1
        assert said.rstrip().endswith("end")
        assert "Error" not in err.read_text()


async def test_a_gateway_that_takes_connections_and_says_nothing_is_waited_for_as_long_as_one_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter(range(1_000))

    async def once(*_: object) -> AsyncIterator[tuple[str, str]]:
        yield ("waits" if next(times) else "data"), "not yet"
        raise GatewayLost("it says nothing")

    monkeypatch.setattr("adapters.terminal.ask._once", once)
    monkeypatch.setattr("adapters.terminal.ask.AGAIN_SECONDS", 0.005)
    heard: list[str] = []

    async def listen() -> None:
        async for kind, _ in stream("http://127.0.0.1:1", None, "hello", "", back_seconds=0.05):
            heard.append(kind)

    with pytest.raises(GatewayLost, match="did not come back"):
        await listen()
    assert heard == ["data", "lost"]


PIECES = st.lists(st.text("ab \n", min_size=1, max_size=6), max_size=12)


@given(PIECES, st.integers(0, 60), st.data())
def test_an_answer_that_comes_again_in_other_pieces_is_on_the_screen_once(
    pieces: list[str], cut: int, data: st.DataObject
) -> None:
    whole = "".join(pieces)
    screen = Shown()
    seen = screen.new(whole[:cut])
    screen.again()
    rest = whole
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        seen += screen.new(rest[:size])
        rest = rest[size:]
    assert seen == whole


def test_an_answer_that_was_written_anew_is_shown_anew() -> None:
    screen = Shown()
    seen = screen.new("I look. The ferry leaves")
    screen.again()
    seen += screen.new("I look. ") + screen.new("It left") + screen.new(" at ten.")
    assert seen == "I look. The ferry leaves\nI look. It left at ten."
    screen.again()
    assert screen.new("I look. It left") + screen.new(" at ten. Go.") == " Go.", "and once, if it comes again"


def test_a_status_steers_no_terminal_and_is_gone_when_something_else_comes() -> None:
    screen = StringIO()
    line = StatusLine(screen, enabled=True)
    line.show("waiting\x1b[2J for \x1b]0;x\x07it\r\nall")
    drawn = screen.getvalue()
    assert drawn.startswith("\r\x1b[2K\x1b[2m")
    assert drawn.endswith("\x1b[0m")
    assert not set("\x1b\x07\r\n") & set(drawn.removeprefix("\r\x1b[2K\x1b[2m").removesuffix("\x1b[0m"))
    line.clear()
    line.clear()
    assert screen.getvalue() == f"{drawn}\r\x1b[2K"
