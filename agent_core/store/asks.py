"""How readers ask the database: a connection of their own for each question, and errors in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from agent_core.store import pieces
from agent_core.store.errors import StorageUnavailable
from agent_core.store.trouble import in_words


class Asks:
    """What all readers share."""

    def __init__(self, engine: AsyncEngine, shown: str) -> None:
        self._engine = engine
        self._shown = shown

    async def _all(self, query: Select[*tuple[Any, ...]]) -> Sequence[Row[*tuple[Any, ...]]]:
        """All rows of an answer. Raises `StorageUnavailable`."""
        try:
            async with self._engine.connect() as conn:
                return (await conn.execute(query)).all()
        except (SQLAlchemyError, PoolTimeout, OSError, TimeoutError) as error:
            raise StorageUnavailable(f"The database {self._shown} cannot be read: {in_words(error)}.") from error

    async def _whole(self, bodies: Sequence[bytes]) -> list[bytes]:
        """Stored bodies as they were before what is large was cut out."""
        return await pieces.whole(self._all, bodies)
