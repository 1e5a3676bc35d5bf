"""How a column is added: a field in the class of its rows, and a migration. Everything else follows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from migrations import REVISIONS

ROOT = Path(__file__).resolve().parents[2]
ADDED = """from alembic import op
from sqlalchemy import Column, Text

revision, down_revision, branch_labels, depends_on = "9999", "{before}", None, None


def upgrade() -> None:
    op.add_column("turns", Column("mood", Text, nullable=False, server_default="calm"))
"""
PROGRAM = """
import asyncio, sys
from sqlalchemy import inspect, create_engine
from tests.store.support import message, opened, turn_of

async def main():
    async with opened(sys.argv[1]) as store:
        _, _, turn = await turn_of(store)
        found = await store.turns.one(turn)
        print(found.mood, [one.mood for one in await store.turns.latest(found.session, 5)])

asyncio.run(main())
"""


def test_a_column_is_a_field_and_a_migration(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for part in ("agent_core", "migrations", "tests/store"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests/__init__.py", "tests/databases.py"):
        shutil.copy(ROOT / name, copy / name)
    rows = copy / "agent_core/store/turns/rows.py"
    source = rows.read_text()
    place = '    removed: str = later("")'
    assert source.count(place) == 1
    rows.write_text(source.replace(place, f'    mood: str = later("calm")\n{place}'))
    (copy / "migrations/versions/9999_mood.py").write_text(ADDED.format(before=REVISIONS[-1]))
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "db")], cwd=copy, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "calm ['calm']\n"), ran.stderr
