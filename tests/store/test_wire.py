"""Whatever comes from a model's side can be stored and read back, on both engines."""

from __future__ import annotations

import random

from agent_core.causes import BreakCause
from agent_core.journal.rows import decode, encode
from agent_core.model.failures import rejection
from agent_core.model.stream.chunks import ChunkReader
from agent_core.store.turns.rows import IntendedCall, JournalRow
from agent_core.turn.events import CallBroke, Event, ReplyFinished, ToolCallNamed
from tests.sim.odd import payloads, value
from tests.store.support import FakeClock, opened, turn_of

SCRIPTS = 400


def events_of(seed: int) -> list[Event]:
    """What a generated script comes to."""
    draw = random.Random(seed)
    reader = ChunkReader(1, (), parse_text_calls=True, offered=("look", "put"))
    found = [*reader.feed(payloads(draw), 1), *reader.finish(2)]
    refused = rejection(draw.choice((0, 400, 500)), reader.error if reader.error is not None else value(draw))
    reader_ended = ReplyFinished(
        at=3, reason=reader.finish_reason, thoughts=reader.keeper.kept(),
        input_tokens=reader.input_tokens, output_tokens=reader.output_tokens, cached_tokens=reader.cached_tokens,
    )  # fmt: skip
    broke = CallBroke(
        at=4, cause=BreakCause.BAD_REQUEST, detail=refused.detail, status=refused.status, complaint=refused.complaint
    )
    return [*found, reader_ended, broke]


async def test_whatever_comes_over_the_wire_is_stored_and_read_back(where: str) -> None:
    async with opened(where, FakeClock()) as store:
        session, epoch, turn = await turn_of(store)
        told: list[Event] = []
        for seed in range(SCRIPTS):
            told += events_of(seed)
        rows = [JournalRow(seq, w.kind, w.body, w.at) for seq, w in enumerate(map(encode, told), start=1)]
        for at in range(0, len(rows), 200):
            await store.turns.append(session, epoch, turn, rows[at : at + 200])
        names = {(event.call, event.name) for event in told if isinstance(event, ToolCallNamed)}
        calls = [IntendedCall(call, name, "pure", f"{turn}:{n}") for n, (call, name) in enumerate(dict(names).items())]
        await store.turns.intend(session, epoch, turn, [], calls)
        kept = [(row.kind, row.body) for row in await store.turns.journal(turn, 0)]
        assert [decode(kind, body) for kind, body in kept] == told


def test_names_and_words_have_an_end_and_nothing_unstorable() -> None:
    for seed in range(600):
        for event in events_of(seed):
            encode(event).body.decode()
            words = [getattr(event, name, "") for name in ("text", "name", "call", "reason", "detail")]
            assert "\x00" not in "".join(words)
            if isinstance(event, ToolCallNamed):
                assert len(event.name) <= 128
                assert len(event.call) <= 200
                assert 0 <= event.index < 20_000
            if isinstance(event, ReplyFinished):
                assert len(event.reason) <= 64
                assert 0 <= event.input_tokens <= 20_000_000
