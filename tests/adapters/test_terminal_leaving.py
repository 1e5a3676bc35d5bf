"""Who presses Ctrl-C at an empty line is told how one leaves, and leaves with the next one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from adapters.terminal import conversation
from adapters.terminal.conversation import Lines

CTRL_C = KeyboardInterrupt


@pytest.mark.parametrize(
    ("pressed", "told"),
    [([CTRL_C, CTRL_C, EOFError], 1), ([CTRL_C, "", CTRL_C, EOFError], 2), ([CTRL_C, "/help", CTRL_C, CTRL_C], 2)],
)
async def test_the_second_ctrl_c_in_a_row_leaves(
    pressed: Sequence[type[BaseException] | str],
    told: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed = iter(pressed)

    async def read() -> str:
        one = next(typed)
        if isinstance(one, str):
            return one
        raise one

    async def about(*_: object) -> tuple[bool, tuple[str, ...]]:
        return False, ()

    monkeypatch.setattr(conversation, "_reader", lambda: Lines(read, read))
    monkeypatch.setattr(conversation, "_about", about)
    assert await conversation.chat("http://127.0.0.1:1", None, "s", new=False) == 0
    shown = capsys.readouterr().err.count("leave (or Ctrl-D)")
    assert shown == told + sum(one == "/help" for one in pressed)
    assert [*typed] == ([EOFError] if pressed[1] is CTRL_C else [])
