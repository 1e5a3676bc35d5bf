"""Paths and URLs: which are taken, and that no password is ever shown."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from agent_core.store.database.place import PostgresPlace, SqlitePlace, parse_place
from agent_core.store.store import CannotOpen, open_store
from tests.store.support import IDS, ROOT, FakeClock


@pytest.mark.parametrize("form", ["/x/y.db", "sqlite:////x/y.db", "sqlite+aiosqlite:////x/y.db", Path("/x/y.db")])
def test_a_file_may_be_given_as_path_or_url(form: str | Path) -> None:
    assert parse_place(form) == SqlitePlace(Path("/x/y.db"))


def test_a_relative_file_is_made_absolute() -> None:
    assert parse_place("sqlite:///y.db") == parse_place("y.db") == SqlitePlace(Path.cwd() / "y.db")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_every_postgres_url_names_our_driver_and_shows_no_password(scheme: str) -> None:
    place = parse_place(f"{scheme}://me:s3cret@host:5433/name?sslmode=require&password=s3cret")
    assert isinstance(place, PostgresPlace)
    assert place.url.drivername == "postgresql+asyncpg"
    assert place.url.query["ssl"] == "require"
    assert place.url.password == "s3cret"
    assert place.shown == "postgresql://me@host:5433/name"
    assert "s3cret" not in repr(place)


@pytest.mark.parametrize(
    "form",
    [
        "",
        ":memory:",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://a:s3cret@b/c",
        "sqlite:///x?mode=ro",
        "postgresql://a:s3cret@b/c?sslrootcert=/x.pem&options=-cpassword%3Ds3cret",
    ],
)
def test_what_cannot_keep_anything_is_refused(form: str) -> None:
    with pytest.raises(CannotOpen) as told:
        parse_place(form)
    assert "s3cret" not in str(told.value)


def test_a_missing_driver_is_told_in_one_sentence() -> None:
    program = (
        "import sys; sys.modules['asyncpg'] = None\n"
        "from tests.store.test_place import try_to_open\n"
        "try_to_open('postgresql://me:s3cret@127.0.0.1:1/x')\n"
    )
    said = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert said == "PostgreSQL needs the extra 'postgres': install it with pip install 'outspoken[postgres]'.\n"


def try_to_open(where: str) -> None:
    async def main() -> None:
        try:
            async with open_store(where, clock=FakeClock(), ids=IDS, version="test"):
                pass
        except CannotOpen as error:
            print(error)

    asyncio.run(main())
