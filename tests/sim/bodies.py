"""Stored bodies as they were, for tests that read a SQLite file by themselves."""

from __future__ import annotations

import sqlite3

from agent_core.store.keeping.packing import Piece, missing, piece_of, unpacked


def whole(database: sqlite3.Connection, body: bytes) -> bytes:
    """A body with what was cut out of it."""
    pieces: dict[bytes, Piece] = {}
    while wanted := missing([body], pieces):
        for digest in wanted:
            query = "SELECT form, stored, how FROM pieces WHERE digest = ?"
            form, stored, how = database.execute(query, (digest,)).fetchone()
            pieces[digest] = piece_of(digest, form, stored, compressed=how == "zlib")
    return unpacked(body, pieces)
