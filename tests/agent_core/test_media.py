"""Pictures and sound of a reply: each is kept as a file of its own, or told as lost; whatever a provider sends, the reply stands."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.driver.media import MediaKeeper
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import Full, QuotaKind
from agent_core.model.made import DATA, FILES
from agent_core.tools.base import NoRoom, Space


def picture(data: bytes | str, mime: str = "image/png") -> dict[str, Json]:
    said = data if isinstance(data, str) else b64encode(data).decode()
    return {"kind": "image", "mime": mime, DATA: [said]}


async def kept(keeper: MediaKeeper, number: int, *entries: dict[str, Json]) -> list[dict[str, Json]]:
    made = await keeper.keep({FILES: list(entries), "left_out": []}, number)
    assert made["left_out"] == []
    return cast("list[dict[str, Json]]", made[FILES])


async def test_each_file_of_each_call_of_each_turn_has_a_place_of_its_own(tmp_path: Path) -> None:
    files: dict[str, bytes] = {}
    for turn in ("t1", "t2"):
        for number in (1, 2, 11):
            for at, one in enumerate(await kept(MediaKeeper(tmp_path, turn), number, picture(b"a"), picture(b"b"))):
                said = f"{turn} {number} {at}".encode()
                Path(str(one["file"])).write_bytes(said)
                files[str(one["file"])] = said
                assert (one["bytes"], one["mime"], DATA in one, "lost" in one) == (1, "image/png", False, False)
    assert len(files) == 12
    assert {place: Path(place).read_bytes() for place in files} == files


@given(
    st.lists(st.text(max_size=12) | st.binary(max_size=12).map(lambda data: b64encode(data).decode()), max_size=3),
    st.text(max_size=9),
)
async def test_whatever_is_sent_as_data_is_a_file_or_is_lost_and_no_mistake_of_ours(
    pieces: list[str], mime: str
) -> None:
    with TemporaryDirectory() as folder:
        (one,) = await kept(
            MediaKeeper(Path(folder), "t"), 1, {"kind": "image", "mime": mime, DATA: cast("Json", pieces)}
        )
        assert ("file" in one) is not ("lost" in one)
        if "file" in one:
            place = Path(str(one["file"]))
            assert place.is_relative_to(folder)
            assert place.stat().st_size == one["bytes"]


class NoSpace:
    """Nobody has room for anything."""

    def __init__(self) -> None:
        self.asked: list[Mapping[QuotaKind, int]] = []

    @asynccontextmanager
    async def hold(self, amounts: Mapping[QuotaKind, int], folder: Path | None = None) -> AsyncGenerator[None]:
        del folder
        self.asked.append(amounts)
        raise NoRoom(Full(QuotaKind.SPOOL, 9, 9, 9))
        yield


@pytest.mark.parametrize("why", ["no room", "no folder"])
async def test_what_cannot_be_kept_is_told_as_lost_with_what_is_known_of_it(tmp_path: Path, why: str) -> None:
    full = NoSpace()
    (tmp_path / "file").touch()
    space = cast("Space", full)
    keeper: Any = MediaKeeper(tmp_path, "t", lambda: space) if why == "no room" else MediaKeeper(tmp_path / "file", "t")
    assert await kept(keeper, 1, picture(b"a" * 5_000)) == [{"kind": "image", "mime": "image/png", "lost": True}]
    assert not [one for one in tmp_path.rglob("*") if one.is_file() and one.name != "file"]
    assert all(one[QuotaKind.SPOOL] > 5_000 for one in full.asked)


async def test_where_only_the_address_of_a_picture_is_known_that_is_kept(tmp_path: Path) -> None:
    entry: dict[str, Json] = {"kind": "image", "url": "https://example.org/a.png"}
    assert await kept(MediaKeeper(tmp_path, "t"), 1, entry) == [entry]
