"""Every statement that is put to a database, whichever way it goes: by SQLAlchemy, or by `agent_core.store.database.direct` to the driver itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

from agent_core.store.database import direct


@contextmanager
def told_of(note: Callable[[str, object], None]) -> Generator[None]:
    """`note` is told each statement before it is carried out, with its values, of several rows those of the first; it may raise."""
    plain = direct.ask

    def listen(_c: object, _d: object, statement: str, values: Any, _x: object, many: bool) -> None:
        note(statement, values[0] if many else values)

    def ask(conn: Connection, sql: str, given: Sequence[tuple[object, ...]]) -> list[tuple[Any, ...]]:
        note(sql, given[0])
        return plain(conn, sql, given)

    event.listen(Engine, "before_cursor_execute", listen)
    direct.ask = ask
    try:
        yield
    finally:
        direct.ask = plain
        event.remove(Engine, "before_cursor_execute", listen)
