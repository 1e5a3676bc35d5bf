"""Counts what a test puts to a database; what else is asked meanwhile, by whatever runs beside it, is not counted."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlalchemy import Engine
from sqlalchemy import event as sql_event

_mine: ContextVar[bool] = ContextVar("mine", default=False)


@contextmanager
def asked_here() -> Generator[list[str]]:
    """Every question of this task in the block, in their order. Of what is written it is not known for whom."""
    asked: list[str] = []

    def note(_c: object, _d: object, statement: str, *_: object) -> None:
        if _mine.get():
            asked.append(statement)

    sql_event.listen(Engine, "before_cursor_execute", note)
    before = _mine.set(True)
    try:
        yield asked
    finally:
        _mine.reset(before)
        sql_event.remove(Engine, "before_cursor_execute", note)
