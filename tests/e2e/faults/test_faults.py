"""What providers, servers and proxies are known to do: none of it silent, hung, or a lie; what can be recovered is, alone and with a fallback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.e2e.faults.hosted_calls import HOSTED_CALLS
from tests.e2e.faults.hosted_refusals import REFUSALS
from tests.e2e.faults.hosted_streams import STREAMS
from tests.e2e.faults.local_between import PAGES, RELAYS
from tests.e2e.faults.local_servers import CALLS
from tests.e2e.faults.local_wire import EVENTS, HTTP
from tests.e2e.faults.local_words import MARKS, TEMPLATES, WORDS
from tests.e2e.faults.playing import Fault, complaints, ill_formed, play

TABLES: Mapping[str, Sequence[Fault]] = {
    "hosted, streams": STREAMS,
    "hosted, calls": HOSTED_CALLS,
    "hosted, refusals": REFUSALS,
    "local, calls": CALLS,
    "local, events": EVENTS,
    "local, HTTP": HTTP,
    "local, marks": MARKS,
    "local, templates": TEMPLATES,
    "local, words": WORDS,
    "between, pages": PAGES,
    "between, relays": RELAYS,
}


@pytest.mark.parametrize("fallback", [False, True], ids=["alone", "with a fallback"])
@pytest.mark.parametrize("table", TABLES)
async def test_what_is_known_to_happen_is_recovered_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, fallback: bool
) -> None:
    faults = TABLES[table]
    played = await play(faults, tmp_path, monkeypatch, fallback=fallback)
    found = [one for fault in faults for one in complaints(fault, played, fallback=fallback)]
    assert found == [], "\n".join(found)
    assert played.model.violations == []
    assert played.other.violations == []


def test_every_fault_has_a_name_of_its_own_and_a_source() -> None:
    assert ill_formed([fault for table in TABLES.values() for fault in table]) == []
