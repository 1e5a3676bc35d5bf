"""The journal in SQL, for tests that read it as it is stored."""

from __future__ import annotations

from agent_core.store.turns.rows import ROWS_A_TURN

OF_TURN = f"id BETWEEN (SELECT first_message * {ROWS_A_TURN} FROM turns WHERE turn = ?1) AND (SELECT (first_message + 1) * {ROWS_A_TURN} - 1 FROM turns WHERE turn = ?1)"
"""Which rows of the journal are a turn's, in SQL."""
