"""A newer version beside the one before it, on one database: its migration runs under gateways that serve, they are replaced one after the other, and back.

The newer version is this one with a migration that it has before anybody: `planted` puts it into a process before that begins.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from migrations import MIN_REVISION, REVISIONS
from tests.databases import new_database
from tests.several.support import Cluster, Talks, cluster

pytestmark = pytest.mark.timeout(180)
NEWER = "9001"
MIGRATION = f"""
import sqlalchemy as sa
from alembic import op
revision, down_revision, branch_labels, depends_on = "{NEWER}", "{REVISIONS[-1]}", None, None


def upgrade():
    for name in ("nodes", "slices", "sessions", "inbox", "turns", "journal", "deliveries", "cursors"):
        op.add_column(name, sa.Column("later", sa.Text(), nullable=False, server_default="x"))
    op.create_table("laters", sa.Column("number", sa.BigInteger(), primary_key=True))
"""
PRELUDE = """
import alembic.config, gateway.version, migrations
from pathlib import Path
from agent_core.store import reading
from agent_core.store.database import upgrade

migrations.REVISIONS = upgrade.REVISIONS = (*migrations.REVISIONS, "{newer}")
upgrade.NEWEST = reading.NEWEST = "{newer}"
migrations.MIN_REVISION = upgrade.MIN_REVISION = "{oldest}"
gateway.version.version = lambda _: "9.0"
gateway.version.program_version.cache_clear()


class Planted(alembic.config.Config):
    def __init__(self):
        super().__init__()
        self.set_main_option("version_path_separator", "space")
        self.set_main_option("version_locations", str(Path(migrations.__path__[0], "versions")) + " {folder}")


alembic.config.Config = Planted
"""


def planted(folder: Path, oldest: str = MIN_REVISION) -> str:
    """What makes a process one of the newer version, whose schema programs that know `oldest` can use."""
    folder.mkdir(exist_ok=True)
    (folder / "newer.py").write_text(MIGRATION)
    return PRELUDE.format(newer=NEWER, oldest=oldest, folder=folder)


async def goes_on(talks: Talks, all_: Cluster) -> None:
    talks.say_everywhere()
    await talks.all_answered()
    talks.judge()
    assert (
        await all_.ask("SELECT count(*) FROM turns WHERE exit IS DISTINCT FROM 'answered' AND state = 'closed'")
    ) == [(0,)]


async def test_a_newer_version_follows_the_one_before_it_without_a_pause_and_back(
    postgres_server: str, tmp_path: Path
) -> None:
    database = await new_database(postgres_server, template="migrated")
    newer = planted(tmp_path / "newer")
    async with cluster(tmp_path, "telegram", database) as all_:
        old = [await all_.begin("old0"), await all_.begin("old1")]
        await all_.even(2)
        talks = Talks(all_.harness, 8)
        await goes_on(talks, all_)
        talking = asyncio.create_task(_talk(talks))
        new = [await all_.begin("new0", newer)]
        assert await all_.ask("SELECT version_num FROM alembic_version") == [(NEWER,)], "under those that serve"
        await all_.even(3)
        for before in old:
            before.signal(signal.SIGTERM)
            assert await before.ended() == 0
        new.append(await all_.begin("new1", newer))
        await all_.even(2)
        assert await all_.ask("SELECT DISTINCT version FROM nodes WHERE ended_at IS NULL") == [("9.0",)]

        back = await all_.begin("back")
        await all_.even(3)
        for after in new:
            after.signal(signal.SIGTERM)
            assert await after.ended() == 0
        talking.cancel()
        await talks.all_answered()
        await goes_on(talks, all_)
        assert back.inner.returncode is None
        assert await all_.ask("SELECT version_num FROM alembic_version") == [(NEWER,)], "its schema stays"
        all_.sound()


async def _talk(talks: Talks) -> None:
    """Somebody says something again and again, until cancelled."""
    number = 0
    while True:
        which = number % len(talks.people)
        if len(talks.said[which]) == len(set(talks.answers(which))):
            talks.say(which, ("say answer", "slow one two three answer")[number % 2])
        number += 1
        await asyncio.sleep(0.1)


async def test_a_schema_that_the_version_before_cannot_use_waits_until_that_has_stopped(
    postgres_server: str, tmp_path: Path
) -> None:
    database = await new_database(postgres_server, template="migrated")
    newer = planted(tmp_path / "newer", oldest=NEWER)
    async with cluster(tmp_path, "telegram", database) as all_:
        old = await all_.begin("old")
        talks = Talks(all_.harness, 3)
        await goes_on(talks, all_)
        with pytest.raises(AssertionError, match="it ended with 75"):
            await all_.begin("new", newer)
        said = (tmp_path / "new" / "log").read_text()
        assert "of an older version" in said
        assert "Stop all of them first" in said
        assert await all_.ask("SELECT version_num FROM alembic_version") == [(REVISIONS[-1],)], "nothing is changed"
        await goes_on(talks, all_)

        old.signal(signal.SIGTERM)
        assert await old.ended() == 0
        await asyncio.gather(all_.begin("new", newer), all_.begin("new too", newer))
        assert await all_.ask("SELECT revision FROM min_version") == [(NEWER,)]
        await goes_on(talks, all_)
        all_.sound()
