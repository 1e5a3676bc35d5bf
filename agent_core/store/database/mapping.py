"""A table from the class of its rows: the class is the one place where a column stands, and everything else follows from it.

A field is a column of the same name: `str` is text, `int` and `bool` are numbers, `bytes` are bytes, an enum is stored by its value, and
`| None` may be null. What a class cannot say (keys, indexes, what the table has besides) stands with the table, in `tables`.

Not the mapped classes of SQLAlchemy's ORM: our rows are frozen, and may be handed to every thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from functools import cache
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_type_hints

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Insert,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    Update,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy.sql.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from agent_core.records import LATER, changed, dataclass, taken
from agent_core.store.database.direct import do

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

R = TypeVar("R")
Int = BigInteger().with_variant(Integer(), "sqlite")
"""64 bits on both engines; SQLite counts up by itself only in a column of the very type INTEGER."""


@dataclass(slots=True)
class Fact(Generic[R]):
    """A row, and what is made of it."""

    row: R
    stored: R | None = None
    """As it was read; None if it is new."""

    @property
    def new(self) -> bool:
        """It was not there."""
        return self.stored is None

    def change(self, **changes: object) -> None:
        """From now on it is like this."""
        self.row = changed(self.row, **changes)


@dataclass(frozen=True, eq=False)
class Mapped(Generic[R]):
    """A class of rows and its table."""

    row: type[R]
    table: Table
    names: tuple[str, ...]
    """The fields that are columns, in their order; those that a question brings from elsewhere come behind them."""
    elsewhere: tuple[str, ...]
    fields_of: Callable[[R], tuple[object, ...]]
    """What a row holds in the fields that are columns."""
    readers: tuple[tuple[int, Callable[[Any], object]], ...]
    """By place: how what is read becomes what the field holds, where that is another thing."""
    checked: tuple[tuple[Callable[[Sequence[Any]], Sequence[Any]], frozenset[type]], ...]
    """What is at some places, and of which types that may be. SQLite keeps a text also where a number belongs, and a server keeps it out."""
    told: tuple[str, ...]
    """The fields whose values are stored as something else."""
    insert: Insert
    query: Select[*tuple[Any, ...]]
    """The columns of all rows; a question narrows it, and may add others behind them."""
    identity: tuple[str, ...]
    """By which of its columns a row is known again when it is put."""
    fixed: bool
    """What is there stays as it is when it is put again."""
    keys: tuple[str, ...]
    """The columns of its primary key."""

    def make(self, found: Sequence[Any]) -> R:
        """A row of `query`; what comes behind its own fields is the caller's. Raises ValueError, TypeError if it makes no sense."""
        values: list[Any] = list(found[: len(self.names) + len(self.elsewhere)])
        for those, types in self.checked:
            if not types.issuperset(map(type, those(values))):
                raise TypeError(f"A row of {self.table.name} holds something that does not belong there.")
        for place, read in self.readers:
            if values[place] is not None:
                values[place] = read(values[place])
        return self.row(*values)

    def key(self, one: R) -> tuple[str | int, ...]:
        """By what a row is known again."""
        return tuple(getattr(one, name) for name in self.identity)

    def values(self, one: R, **more: object) -> dict[str, object]:
        """What is stored of a row, by column; and `more` of what the table has besides."""
        values = dict(zip(self.names, self.fields_of(one), strict=True))
        for name in self.told:
            values[name] = stored(values[name])
        return {**values, **more} if more else values

    def differing(self, pairs: Iterable[tuple[R, R]]) -> tuple[str, ...]:
        """The columns in which any of these pairs differ."""
        found: set[str] = set()
        for pair in pairs:
            before, after = map(self.fields_of, pair)
            found.update([name for name, a, b in zip(self.names, before, after, strict=True) if a != b])
        return tuple([name for name in self.names if name in found])

    def add(self, conn: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        """Store these, each as `values` gives it. Nothing of them is there."""
        if rows:
            do(conn, self.insert, rows)

    def put(self, conn: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        """Store these, whether they are there or not."""
        if rows:
            do(conn, _upsert(self.table, self.identity, self.fixed, conn.dialect.name), rows)

    def add_new(self, conn: Connection, facts: Iterable[Fact[R]]) -> None:
        """Store what is new."""
        if new := [self.values(fact.row) for fact in facts if fact.stored is None]:
            do(conn, self.insert, new)

    def store_changed(self, conn: Connection, facts: Iterable[Fact[R]]) -> None:
        """Write the columns that differ in any of the rows; what did not change in one of these is written as it was read."""
        pairs = [
            (fact.stored, fact.row)
            for fact in facts
            if fact.stored is not fact.row and fact.stored is not None and fact.stored != fact.row
        ]
        if pairs and (names := self.differing(pairs)):
            do(conn, self.update(names), [self.change(row, names) for _, row in pairs])

    def update(self, names: Sequence[str]) -> Update:
        """Sets these columns of the rows that `change` gives."""
        return _update(self.table, tuple(names))

    def change(self, one: R, names: Sequence[str]) -> dict[str, object]:
        """What `update` needs of a row."""
        values = self.values(one)
        which = {f"which_{name}": values[name] for name in self.keys}
        return which | {f"new_{name}": values[name] for name in names}


@cache
def _update(table: Table, names: tuple[str, ...]) -> Update:
    named = (column == bindparam(f"which_{column.name}") for column in table.primary_key)
    return update(table).where(*named).values({name: bindparam(f"new_{name}") for name in names})


def inserting(table: Table, dialect: str) -> postgresql.Insert | sqlite.Insert:
    """An `INSERT` that can be told what to do where there is such a row. Only the dialect that is used is loaded: each is 25 ms and 3 MiB."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


@cache
def _upsert(table: Table, identity: tuple[str, ...], fixed: bool, dialect: str) -> Insert:
    made = inserting(table, dialect)
    if fixed:
        return made.on_conflict_do_nothing(index_elements=identity)
    changed = {column.name: made.excluded[column.name] for column in table.c if column.name not in identity}
    return made.on_conflict_do_update(index_elements=identity, set_=changed)


def stored(value: object) -> object:
    """A field's value as its column holds it."""
    if isinstance(value, StrEnum):
        return str.__str__(value)
    return int(value) if isinstance(value, bool) else value


def mapped(
    metadata: MetaData,
    name: str,
    row: type[R],
    *more: SchemaItem,
    key: Sequence[str],
    besides: Sequence[Column[Any]] = (),
    elsewhere: Sequence[str] = (),
    foreign: Mapping[str, str] | None = None,
    unique: Sequence[str] = (),
    indexed: Sequence[str] = (),
    rowid: bool = True,
    fixed: bool = False,
    identity: Sequence[str] = (),
) -> Mapped[R]:
    """The table of these rows; they are known again by their key, unless another `identity` is named."""
    hints = get_type_hints(row)
    metadatas = {one.name: one.metadata for one in fields(row)}  # type: ignore[arg-type]
    names = tuple(one.name for one in fields(row) if one.name not in elsewhere)  # type: ignore[arg-type]
    assert tuple(one.name for one in fields(row)) == (*names, *elsewhere), f"{name}: what comes from elsewhere is last"  # type: ignore[arg-type]
    composite = len(key) + sum(column.primary_key for column in besides) > 1
    columns: list[Column[Any]] = []
    readers: list[tuple[int, Callable[[Any], object]]] = []
    plain: dict[type[Any], list[int]] = {int: [], str: []}
    for one in names:
        kind, nullable = _kind(hints[one])
        if kind in plain:
            plain[kind].append(len(columns))
        else:
            readers.append((len(columns), kind))
        options: dict[str, Any] = {}
        if LATER in metadatas[one]:
            options["server_default"] = str(stored(metadatas[one][LATER]))
        if one in key:
            options["primary_key"] = True
            if composite and kind is int:
                options["autoincrement"] = False
        else:
            options["nullable"] = nullable
        references = [ForeignKey(foreign[one])] if foreign and one in foreign else []
        columns.append(
            Column(one, _type(kind), *references, unique=one in unique or None, index=one in indexed or None, **options)
        )
    table = Table(name, metadata, *besides, *columns, *more, sqlite_with_rowid=rowid)
    return Mapped(
        row,
        table,
        names,
        tuple(elsewhere),
        taken(names),
        tuple(readers),
        tuple((_at(places), frozenset({kind, NoneType})) for kind, places in plain.items() if places),
        tuple(names[place] for place, kind in readers if kind is not bytes),
        insert(table),
        select(*(table.c[one] for one in names)),
        tuple(identity or key),
        fixed,
        tuple(column.name for column in table.primary_key),
    )


def _at(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Takes what is at these places."""
    return itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))


def _kind(hint: Any) -> tuple[type[Any], bool]:
    several = get_args(hint)
    if not several:
        return hint, False
    return next(one for one in several if one is not NoneType), NoneType in several


def _type(kind: type[Any]) -> TypeEngine[Any]:
    if issubclass(kind, int):
        return Int
    return LargeBinary() if kind is bytes else Text()
