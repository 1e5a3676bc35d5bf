"""Summaries of a conversation that somebody shared who is forgotten."""

from __future__ import annotations

from agent_core.store import forgetting as steps
from agent_core.store.store import Store
from tests.store.support import row, turn_of


async def test_another_word_stands_in_the_place_of_each_summary_and_of_nothing_else(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    said = b'{"at":1,"kept_turns":2,"summary":"tangerine"}'
    await store.append(
        session, epoch, turn, [row(1, said, "Compacted"), row(2, b'"tangerine"'), row(3, said, "Compacted")]
    )
    found = await store.forgotten.summaries(session)
    assert sorted(found) == [(turn, 1), (turn, 3)]
    assert (await store.remove_some(steps.blank_summaries(found))).count == 2
    bodies = [one.body for one in await store.journal(turn)]
    assert [b"tangerine" in body for body in bodies] == [False, False, True, False]
    assert [steps.SUMMARY.encode() in body and b'"kept_turns":2' in body for body in bodies] == [
        False,
        True,
        False,
        True,
    ]
