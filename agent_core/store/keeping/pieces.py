"""Pieces in the database: counted by the gaps that they fill, written with the rows that need them, gone with the last of these.

Law: at every commit, a piece's `refs` is the number of gaps, in stored bodies and in other pieces, that it fills; there is none
with 0. A piece whose content was removed before its rows (how `gone`) keeps its count, and its content comes back if it is brought
again. On PostgreSQL, whoever makes or removes pieces holds a lock of their own, so that two nodes do not both believe to be the first.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import BigInteger, Connection, Row, Select, bindparam, delete, select, update

from agent_core.store import tables as t
from agent_core.store.database.keys import padded
from agent_core.store.keeping.packing import MARK, Piece, PieceForm, missing, needed, piece_of, squeezed, unpacked
from agent_core.store.keeping.rows import PieceRow

PIECES_LOCK = 0x6F757473_00000002 - (1 << 63)
"""Advisory lock on PostgreSQL; far from those of the nodes."""
ASKED_AT_ONCE = 500
IN_THREAD_BYTES = 64 * 1024
"""What is larger is put together beside the loop."""
Ask: TypeAlias = Callable[[Select[*tuple[Any, ...]]], Awaitable[Sequence[Row[*tuple[Any, ...]]]]]
GONE, PLAIN, COMPRESSED = "gone", "plain", "zlib"

_p = t.pieces.c
_KNOWN = select(_p.digest, _p.how).where(_p.digest.in_(bindparam("keys", expanding=True)))
_now = bindparam("now", type_=BigInteger)
_MORE = update(t.pieces).where(_p.digest == bindparam("which")).values(refs=_p.refs + bindparam("more"))
_TOUCHED = update(t.pieces).where(_p.digest.in_(bindparam("keys", expanding=True)), _p.at < _now).values(at=_now)
_BACK = (
    update(t.pieces)
    .where(_p.digest == bindparam("which"))
    .values(stored=bindparam("new_stored"), how=bindparam("new_how"))
)
_LESS = update(t.pieces).where(_p.digest == bindparam("which")).values(refs=_p.refs - bindparam("less"))
_UNUSED = select(_p.digest, _p.form, _p.stored, _p.how).where(
    _p.digest.in_(bindparam("keys", expanding=True)), _p.refs <= 0
)
_REMOVED = delete(t.pieces).where(_p.digest.in_(bindparam("keys", expanding=True)))


def add(conn: Connection, offered: Mapping[bytes, Piece], bodies: Iterable[bytes], at: int) -> None:
    """These bodies are stored in this transaction: so are the pieces that they need, which are among `offered`."""
    wanted = Counter(digest for body in bodies for digest in needed(body))
    if wanted:
        _alone(conn)
    while wanted:
        known: dict[bytes, str] = {}
        for keys in padded(sorted(wanted)):
            known.update((bytes(row[0]), row[1]) for row in conn.execute(_KNOWN, {"keys": keys}))
        if known:
            conn.execute(_MORE, [{"which": digest, "more": wanted[digest]} for digest in sorted(known)])
        fresh = [offered[digest] for digest in sorted(wanted) if digest not in known]
        t.PIECE.add(conn, [_values(piece, wanted[piece.digest], at) for piece in fresh])
        wanted = Counter(digest for piece in fresh for digest in piece.below)
    _seen_again(conn, [piece for piece in offered.values() if piece.form is PieceForm.BYTES], at)


def _seen_again(conn: Connection, files: Sequence[Piece], at: int) -> None:
    """Files are as young as the last message that brings them, and one that was removed before is there again."""
    by_digest = {piece.digest: piece for piece in files}
    for keys in padded(sorted(by_digest)):
        conn.execute(_TOUCHED, {"keys": keys, "now": at})
        again = [bytes(row[0]) for row in conn.execute(_KNOWN, {"keys": keys}) if row[1] == GONE]
        for digest in again:
            stored, compressed = squeezed(by_digest[digest])
            how = COMPRESSED if compressed else PLAIN
            conn.execute(_BACK, {"which": digest, "new_stored": stored, "new_how": how})


def release(conn: Connection, bodies: Iterable[bytes]) -> int:
    """These bodies are removed in this transaction: so are the pieces that nobody else needs. Returns how many."""
    given_up = Counter(digest for body in bodies for digest in needed(body))
    if given_up:
        _alone(conn)
    gone = 0
    while given_up:
        conn.execute(_LESS, [{"which": digest, "less": given_up[digest]} for digest in sorted(given_up)])
        unused: list[Piece] = []
        for keys in padded(sorted(given_up)):
            found = conn.execute(_UNUSED, {"keys": keys}).all()
            unused += [read(row) for row in found]
        for keys in padded([piece.digest for piece in unused]):
            conn.execute(_REMOVED, {"keys": keys})
        gone += len(unused)
        given_up = Counter(digest for piece in unused for digest in piece.below)
    return gone


async def whole(ask: Ask, bodies: Sequence[bytes]) -> list[bytes]:
    """Stored bodies as they were before they were packed; `ask` reads rows."""
    if not any(body.startswith(MARK) for body in bodies):
        return list(bodies)
    found: dict[bytes, Piece] = {}
    gone: set[bytes] = set()
    while wanted := sorted(missing(bodies, found) - gone):
        for first in range(0, len(wanted), ASKED_AT_ONCE):
            some = wanted[first : first + ASKED_AT_ONCE]
            query = select(_p.digest, _p.form, _p.stored, _p.how).where(_p.digest.in_(some), _p.how != GONE)
            found.update((piece.digest, piece) for piece in map(read, await ask(query)))
        gone.update(digest for digest in wanted if digest not in found)
    if sum(len(piece.content) for piece in found.values()) < IN_THREAD_BYTES:
        return [unpacked(body, found) for body in bodies]
    return await asyncio.to_thread(lambda: [unpacked(body, found) for body in bodies])


def read(row: Row[*tuple[Any, ...]]) -> Piece:
    """A row of (digest, form, stored, how)."""
    return piece_of(bytes(row[0]), row[1], bytes(row[2]), compressed=row[3] == COMPRESSED)


def _values(piece: Piece, refs: int, at: int) -> dict[str, object]:
    stored, compressed = squeezed(piece)
    how = COMPRESSED if compressed else PLAIN
    return t.PIECE.values(PieceRow(piece.digest, piece.form, stored, how, len(piece.content), refs, at))


def _alone(conn: Connection) -> None:
    if conn.dialect.name == "postgresql":
        conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({PIECES_LOCK})")
