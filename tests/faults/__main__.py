"""``python -m tests.faults`` plays the whole table and prints what became of it, in Markdown."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
import structlog

from tests.faults.cells import NOT_THERE
from tests.faults.clients import CLIENT, play_client
from tests.faults.kinds import Fault, Kind
from tests.faults.rig import cells_of, faulty_gateway, played
from tests.faults.test_faults import client_wrong, wrong_with


async def _row(kind: Kind) -> dict[Fault, list[str]]:
    """What is wrong with each fault of a kind."""
    found: dict[Fault, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        async with faulty_gateway(Path(folder), cells_of(kind), patch) as rig:
            for seen in await played(rig, cells_of(kind)):
                found.setdefault(seen.cell.fault, []).extend(wrong_with(seen))
            if kind is Kind.CLIENT:
                for number, cell in enumerate(CLIENT):
                    found.setdefault(cell.fault, []).extend(
                        client_wrong(await play_client(rig.up.url, rig.model, cell, number))
                    )
    return found


async def main() -> None:
    """All of it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    rows = {kind: await _row(kind) for kind in Kind}
    print(f"| fault | {' | '.join(Kind)} |")
    print(f"|---|{'---|' * len(Kind)}")
    for fault in Fault:
        cells = ["–" if (fault, kind) in NOT_THERE else "WRONG" if rows[kind].get(fault) else "told" for kind in Kind]
        print(f"| {fault} | {' | '.join(cells)} |")
    wrong = [one for row in rows.values() for each in row.values() for one in each]
    print(f"\n{sum(map(len, rows.values()))} of {len(Fault) * len(Kind)} cells are played, {len(wrong)} are wrong.")
    print("\n".join(wrong))


asyncio.run(main())
