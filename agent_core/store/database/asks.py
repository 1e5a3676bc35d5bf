"""How readers ask the database: a connection of their own for each question, and errors in words.

Law: what cannot be read twice on fresh connections is `Damaged`, and that is told of those rows alone: who asks for many
asks again for fewer (`around`), so that one damaged row hides no other.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import structlog
from sqlalchemy import Column, ColumnElement, Connection, Row, Select, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from agent_core.records import dataclass
from agent_core.store.database.direct import found
from agent_core.store.database.keys import begins, padded
from agent_core.store.database.readers import Readers
from agent_core.store.database.trouble import Blame, blame, in_words
from agent_core.store.errors import Damaged, StorageUnavailable
from agent_core.store.keeping import pieces

K = TypeVar("K")
R = TypeVar("R")
S = TypeVar("S")
log = structlog.get_logger("storage")
EDGE_ROWS = 256
"""So many rows are asked for at once on the way to what cannot be read; then fewer and fewer."""
Rows = Sequence[Row[*tuple[Any, ...]]]
Key: TypeAlias = "tuple[str | int, ...]"
Gathered: TypeAlias = "tuple[Key, asyncio.Future[Sequence[Sequence[Any]]]]"
"""What somebody asks for, and waits for."""


@dataclass(frozen=True, slots=True)
class Always:
    """A question that is asked again and again as it is, for other `keys` and `named` values: its text is made once."""

    query: Select[*tuple[Any, ...]]
    keys: Sequence[object] = ()
    named: Mapping[str, object] | None = None


class StoreAsks:
    """The question itself. One for all that is asked of a database, so that what could not be read is known in one place."""

    def __init__(self, readers: Readers, shown: str) -> None:
        self.readers = readers
        self.shown = shown
        self.lost: dict[str, bool] = {}
        """Of which lists something could not be read the last time."""
        self.lost_keys: dict[str, frozenset[str]] = {}
        """And whose that was, where its index tells."""
        self._gathering: dict[Select[*tuple[Any, ...]], list[Gathered]] = {}
        self._asking = set[asyncio.Task[None]]()

    async def all(self, query: Select[*tuple[Any, ...]]) -> Rows:
        """All rows of an answer. Raises `StorageUnavailable`; `Damaged` if what is asked for cannot be read, and other rows may."""
        return await self._asked(lambda conn: conn.execute(query).all())

    async def each(self, *questions: Select[*tuple[Any, ...]] | Always) -> list[Sequence[Sequence[Any]]]:
        """The rows of several answers, by one hand-over: that takes as long as a question. Raises as `all`, for all of them."""
        return await self._asked(
            lambda conn: [
                found(conn, one.query, one.keys, one.named) if isinstance(one, Always) else conn.execute(one).all()
                for one in questions
            ]
        )

    async def always(
        self, query: Select[*tuple[Any, ...]], keys: Sequence[object] = (), /, **named: object
    ) -> Sequence[Sequence[Any]]:
        """The rows of the answer to a question that is `Always` the same: to make one anew takes ten times as long as its answer. Raises as `all`."""
        (rows,) = await self.each(Always(query, keys, named))
        return rows

    async def gathered(self, query: Select[*tuple[Any, ...]], key: Key) -> Sequence[Sequence[Any]]:
        """The rows of an answer for this key, among those for the keys that others ask for in this moment: that is one question. Raises as `each`, for
        all of them."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[Sequence[Any]]] = loop.create_future()
        if (gathering := self._gathering.get(query)) is None:
            gathering = self._gathering[query] = []
            self._asking.add(task := loop.create_task(self._gather(query, gathering)))
            task.add_done_callback(self._asking.discard)
        gathering.append((key, answer))
        return await answer

    async def _gather(self, query: Select[*tuple[Any, ...]], gathering: list[Gathered]) -> None:
        del self._gathering[query]  # who comes from now on asks anew
        keys = padded({key: None for key, _ in gathering}) if len(gathering) > 1 else ([gathering[0][0]],)
        try:
            answers = await self.each(*[Always(query, some) for some in keys])
        except Exception as error:  # noqa: BLE001 - who asked is told
            for _, answer in gathering:
                if not answer.done():
                    answer.set_exception(error)
            return
        except BaseException:
            for _, answer in gathering:
                answer.cancel()
            raise
        rows = answers[0] if len(answers) == 1 else [row for found in answers for row in found]
        for _, answer in gathering:
            if not answer.done():
                answer.set_result(rows)

    async def _asked(self, ask: Callable[[Connection], R]) -> R:
        try:
            return await self._once(ask)
        except _TROUBLE as error:
            if blame(error) is not Blame.ROWS:
                raise self._unreadable(error) from error
        try:
            return await self._once(ask)
        except _TROUBLE as error:
            raise self._unreadable(error) from error

    def begins(self, column: Column[str], prefix: str) -> ColumnElement[bool]:
        return begins(column, prefix, self.readers.dialect)

    async def _once(self, ask: Callable[[Connection], R]) -> R:
        def of(conn: Connection) -> R:
            try:
                return ask(conn)
            except SQLAlchemyError as error:
                if blame(error) is Blame.ROWS:
                    conn.invalidate()  # what it has in its cache is not asked again
                raise

        return await self.readers.run(of)

    async def whole(self, bodies: Sequence[bytes]) -> list[bytes]:
        """Stored bodies as they were before what is large was cut out."""
        with self.sense():
            return await pieces.whole(self.all, bodies)

    async def made(self, query: Select[*tuple[Any, ...]], make: Callable[[Row[*tuple[Any, ...]]], R]) -> list[R]:
        """All rows of an answer, as what they stand for; made where they are read, which is beside the loop on SQLite. Raises `Damaged` as well if a row
        stands for nothing."""

        def ask(conn: Connection) -> list[R]:
            rows = conn.execute(query).all()
            with self.sense():
                return [make(row) for row in rows]

        return await self._asked(ask)

    async def made_always(
        self, query: Select[*tuple[Any, ...]], make: Callable[[Sequence[Any]], R], /, **named: object
    ) -> list[R]:
        """The same of a question that is `Always` the same."""
        rows = await self.always(query, **named)
        with self.sense():
            return [make(row) for row in rows]

    @contextmanager
    def sense(self) -> Generator[None]:
        """What is read in the block stands for something: no state that does not exist, no number where bytes should be."""
        try:
            yield
        except (ValueError, TypeError, LookupError, zlib.error) as error:
            raise Damaged(f"Rows in the database {self.shown} make no sense: {type(error).__name__}.") from error

    async def readable(
        self,
        what: str,
        query: Select[*tuple[Any, ...]],
        key: Column[str],
        make: Callable[[Row[*tuple[Any, ...]]], R],
        key_of: Callable[[R], str],
        most: int | None = None,
    ) -> list[R]:
        """What can be read of a list, the rows from both ends of its keys up to what cannot; that some are left out is said in the log and by
        `left_out`. Of `most` rows those with the highest keys. Around damage they come in the order of their keys, the highest first."""
        try:
            found = await self.made(query.limit(most), make)
            left_out = ""
        except Damaged as error:
            every = query.order_by(None)
            found = await self._edge(every.order_by(key.desc()), lambda last: key < last, make, key_of, most)
            last = key_of(found[-1]) if found else None
            if most is None or len(found) < most:
                rest = every if last is None else every.where(key < last)
                more = await self._edge(rest.order_by(key), lambda last: key > last, make, key_of, None)
                found += more[::-1][: None if most is None else most - len(found)]
            left_out = str(error)
        self.note_left_out(what, left_out)
        return found

    def sensible(self, what: str, rows: Iterable[S], make: Callable[[S], R]) -> list[R]:
        """What can be made of the rows of a list that everybody needs, each by itself; that some are left out is said as by `readable`."""
        found, left_out = list[R](), ""
        for row in rows:
            try:
                with self.sense():
                    found.append(make(row))
            except Damaged as error:
                left_out = str(error)
        self.note_left_out(what, left_out)
        return found

    def note_left_out(self, what: str, left_out: str) -> None:
        """Why something of a list was left out when it was asked for just now; empty if nothing was."""
        if left_out and not self.lost.get(what):
            log.warning("rows.left_out", table=what, error=left_out)
        self.lost[what] = bool(left_out)

    async def _edge(
        self,
        query: Select[*tuple[Any, ...]],
        beyond: Callable[[str], ColumnElement[bool]],
        make: Callable[[Row[*tuple[Any, ...]]], R],
        key_of: Callable[[R], str],
        most: int | None,
    ) -> list[R]:
        """Rows in the order of `query` up to the first that cannot be read."""
        found: list[R] = []
        size = EDGE_ROWS
        while size and (most is None or len(found) < most):
            wanted = size if most is None else min(size, most - len(found))
            asked = query if not found else query.where(beyond(key_of(found[-1])))
            try:
                rows = await self.made(asked.limit(wanted), make)
            except Damaged:
                size //= 4
                continue
            found += rows
            if len(rows) < wanted:
                break
        return found

    def left_out(self, what: str) -> bool:
        """Whether something of a list could not be read the last time that it was asked for."""
        return self.lost.get(what, False)

    async def first(self, query: Select[*tuple[Any, ...]], make: Callable[[Row[*tuple[Any, ...]]], R]) -> R | None:
        """The first of them, if there is any."""
        return next(iter(await self.made(query, make)), None)

    async def distinct(self, column: Column[str]) -> list[str]:
        """The different values of a column that leads an index: a step each, however many rows there are."""
        found: list[str] = []
        while True:
            query = select(func.min(column))
            value = (await self.all(query.where(column > found[-1]) if found else query))[0][0]
            if value is None:
                return found
            found.append(str(value))

    def _unreadable(self, error: Exception) -> StorageUnavailable:
        if blame(error) is Blame.ROWS:
            return Damaged(f"Rows in the database {self.shown} cannot be read: {in_words(error)}.")
        return StorageUnavailable(f"The database {self.shown} cannot be read: {in_words(error)}.")


class StoreReading:
    """What asks about one subject. Every method raises `StorageUnavailable` if the database cannot be read."""

    def __init__(self, asks: StoreAsks) -> None:
        self._asks = asks


_TROUBLE = (SQLAlchemyError, PoolTimeout, OSError, TimeoutError)


async def around(keys: Sequence[K], ask: Callable[[Sequence[K]], Awaitable[Sequence[R]]]) -> tuple[list[R], list[K]]:
    """What can be read of `keys`, in their order, and those keys of which it cannot: they are found by halves."""
    if not keys:
        return [], []
    try:
        return [*await ask(keys)], []
    except Damaged:
        if len(keys) == 1:
            return [], [keys[0]]
    half = len(keys) // 2
    first, lost = await around(keys[:half], ask)
    second, more = await around(keys[half:], ask)
    return [*first, *second], [*lost, *more]
