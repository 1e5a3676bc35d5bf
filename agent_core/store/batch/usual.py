"""What nearly every turn says to the database, put into words before the first one: for the text of a statement SQLAlchemy takes a
millisecond or two, once. What is missing here is made when it is first said.

Law (tests/store/test_direct.py): a message with its turn, and the end of that, find all their texts made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import UpdateBase

from agent_core.store import tables as t
from agent_core.store.database import direct
from agent_core.store.deliveries import sql as deliveries
from agent_core.store.inbox import sql as inbox
from agent_core.store.sessions import sql as sessions
from agent_core.store.turns import sql as turns

_ENDED, _USED = ("state", "exit", "closed_at"), ("input_tokens", "output_tokens")
_CHANGES = (
    (t.MESSAGE, ("state", "turn")),
    (t.TURN, (*_ENDED, "model")),
    (t.TURN, (*_ENDED, *_USED, "model")),
    (t.TURN, (*_ENDED, "model", "key")),
    (t.TURN, (*_ENDED, *_USED, "model", "key")),
    (t.SESSION, ("last_at",)),
)
"""The columns that are written together, in the order of their table."""
_NEW = ((t.SESSION, ()), (t.TURN, ()), (t.MESSAGE, ()), (t.CALL, ()), (t.EVENT, ("id", "epoch")))
_ASKED = (inbox.HIGHEST_ID, 0), (sessions.BY_KEY, 1), (sessions.BY_ID, 1), (turns.TURNS, 1), (inbox.BY_ID, 1)
"""Questions, and for how many keys."""


def preparing(dialect: Dialect) -> Iterator[Callable[[], object]]:
    """Each makes one text."""

    def said(statement: UpdateBase, names: Sequence[str]) -> Callable[[], object]:
        return partial(direct.prepare, statement, tuple(names), dialect)

    for mapped, more in _NEW:
        yield said(mapped.insert, (*mapped.names, *more))
    for mapped, names in _CHANGES:
        which = (f"which_{column.name}" for column in mapped.table.primary_key)
        yield said(mapped.update(names), (*which, *(f"new_{name}" for name in names)))
    yield said(deliveries.put(dialect.name), (*t.PART.names, "session", "epoch"))
    for query, keys in _ASKED:
        yield partial(direct.prepare_question, query, keys, dialect)
