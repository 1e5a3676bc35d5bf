"""Lists for ``IN``, padded to a power of two: the number of different statements stays small, and so do the caches of prepared ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Self, TypeVar

from sqlalchemy import BindParameter, Boolean, Column, ColumnElement, Text, and_, tuple_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType

K = TypeVar("K")
CHUNK_KEYS = 4096
"""Most keys of one ``IN`` list: both engines allow about 32 000 parameters a statement."""


def padded(keys: Collection[K]) -> Iterable[list[K]]:
    """`keys` in chunks, each filled up to a power of two by repeating its last key."""
    return _padded(list(keys)) if keys else ()  # most are empty, and there are a dozen of them in each batch


def _padded(every: list[K]) -> Iterable[list[K]]:
    for begin in range(0, len(every), CHUNK_KEYS):
        chunk = every[begin : begin + CHUNK_KEYS]
        size = 1 << (len(chunk) - 1).bit_length()
        yield chunk + [chunk[-1]] * (size - len(chunk))


class _Among(FunctionElement[bool]):
    """``(a, b) IN (…)``."""

    type = Boolean()
    inherit_cache = True
    of: Sequence[ColumnElement[Any]] = ()

    def self_group(self, against: OperatorType | None = None) -> Self:  # noqa: ARG002 - as it is called
        """As it is: SQLite would be asked whether it is 1, and looks at every row for that."""
        return self


@compiles(_Among)
def _plain(element: _Among, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.clauses, **kw)


@compiles(_Among, "sqlite")
def _behind_a_select(element: _Among, compiler: SQLCompiler, **kw: Any) -> str:
    before, _, after = compiler.process(element.clauses, **kw).partition(" IN ")
    first, *others = element.of
    known = "CAST(column1 AS TEXT)" if isinstance(first.type, Text) else "column1"
    named = ", ".join((known, *(f"column{place}" for place, _ in enumerate(others, 2))))
    return f"{before} IN (SELECT {named} FROM {after})"  # noqa: S608 - the compiler's own text


def among(
    columns: Sequence[ColumnElement[Any]], keys: BindParameter[Any] | Sequence[tuple[Any, ...]]
) -> ColumnElement[bool]:
    """Whether these columns together are one of `keys`, of which there is at least one. A text comes first, if there is one among them.

    SQLite uses no index for ``(a, b) IN (VALUES …)`` if there are two or more: it reads the whole table. For the same behind a SELECT it does, but
    compares all columns as it does the first: behind a text, it would use the index of a number only if the first that is selected is a text, too.
    """
    made = _Among(tuple_(*columns).in_(keys))
    made.of = columns
    return made


def begins(column: Column[str], prefix: str, dialect: str) -> ColumnElement[bool]:
    """Whether a text begins so. Also as a range where texts are in the order of their bytes, so that the index is used."""
    same = column.startswith(prefix, autoescape=True)
    if dialect != "sqlite":
        return same
    return and_(column >= prefix, column < f"{prefix[:-1]}{chr(ord(prefix[-1]) + 1)}", same)
