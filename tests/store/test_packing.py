"""What is large is cut out of bodies: it comes back to the byte, and what is equal is one."""

from __future__ import annotations

import base64
import random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.messages import NO_LONGER_KEPT
from agent_core.store.keeping.packing import (
    DIGEST_BYTES,
    LOOKED_AT_BYTES,
    MARK,
    RUN_MOST,
    Piece,
    PieceForm,
    missing,
    needed,
    pack,
    unpacked,
)
from agent_core.store.turns.rows import timed, untimed

SMALL = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.text()
)


def _times(word: str, times: int) -> str:
    return word * times


def _picture(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data * 400).decode()


def _no_picture(text: str) -> str:
    return "data:image/png;base64," + text * 600


LONG = st.one_of(
    st.builds(_times, st.text(min_size=1, max_size=20), st.integers(200, 3000)),
    st.builds(_picture, st.binary(min_size=1)),
    st.builds(_no_picture, st.text(min_size=1, max_size=9)),
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(inner, max_size=12), st.dictionaries(st.text(), inner, max_size=6))


TREES: st.SearchStrategy[Any] = st.recursive(st.one_of(SMALL, LONG), _nested, max_leaves=30)


def by_digest(pieces: tuple[Piece, ...]) -> dict[bytes, Piece]:
    return {piece.digest: piece for piece in pieces}


@given(TREES)
def test_whatever_is_packed_comes_back_to_the_byte(tree: Any) -> None:
    body = orjson.dumps(tree)
    packed = pack(body)
    pieces = by_digest(packed.pieces)
    assert unpacked(packed.body, pieces) == body
    assert missing([packed.body], pieces) == set()
    assert pack(body) == packed


@given(TREES)
def test_every_piece_is_needed_and_what_is_removed_is_said_to_be(tree: Any) -> None:
    packed = pack(orjson.dumps(tree))
    reached = {digest for piece in packed.pieces for digest in piece.below} | set(needed(packed.body))
    assert reached == by_digest(packed.pieces).keys()
    read = unpacked(packed.body, {})
    orjson.loads(read)  # still JSON, whatever was removed
    assert not packed.body.startswith(MARK) or b"[]" in read or NO_LONGER_KEPT.encode() in read


@given(st.binary(max_size=60), st.integers(1, 300))
def test_what_is_no_json_of_ours_is_left_as_it_is(some: bytes, times: int) -> None:
    body = b"{" + some * times
    packed = pack(body)
    assert unpacked(packed.body, by_digest(packed.pieces)) == body


def test_a_small_body_is_not_looked_into() -> None:
    body = orjson.dumps({"text": "x" * (LOOKED_AT_BYTES - 20)})
    assert pack(body).body is body


def _conversation(number: int) -> list[dict[str, str]]:
    made = random.Random(7)
    return [{"role": "user", "content": f"{n} " + made.randbytes(150).hex()} for n in range(number)]


def _stored(bodies: list[bytes]) -> int:
    pieces: dict[bytes, Piece] = {}
    total = 0
    for body in bodies:
        packed = pack(body)
        total += len(packed.body)
        pieces |= by_digest(packed.pieces)
    return total + sum(len(piece.content) for piece in pieces.values())


def test_a_conversation_that_is_sent_again_and_again_costs_what_is_new() -> None:
    said = _conversation(400)
    new = len(orjson.dumps(said))
    growing = [orjson.dumps({"own_history": said[:n]}) for n in range(2, 400, 2)]
    assert _stored(growing) < 4 * new < sum(map(len, growing)) / 20
    sliding = [orjson.dumps({"own_history": said[n : n + 40]}) for n in range(0, 360, 2)]
    assert _stored(sliding) < 3 * new < sum(map(len, sliding)) / 5


@pytest.mark.parametrize("word", ["a", "b", "c", "d"])
def test_a_run_has_an_end_also_where_no_element_ends_it(word: str) -> None:
    runs = [one for one in pack(orjson.dumps([{"text": word * 40}] * 1_000)).pieces if one.form is PieceForm.RUN]
    assert max(len(one.content) for one in runs) <= RUN_MOST * DIGEST_BYTES


def test_a_picture_is_one_piece_whatever_it_is_sent_with() -> None:
    picture = "data:image/jpeg;base64," + base64.b64encode(random.Random(1).randbytes(300_000)).decode()
    bodies = [
        orjson.dumps({"input": [{"content": [{"type": "text", "text": f"look {n}"}, {"url": picture}]}], "n": n})
        for n in range(20)
    ]
    assert _stored(bodies) < 310_000


def test_a_body_nested_very_deep_is_left_alone() -> None:
    body = b"[" * 900 + b'"' + b"x" * 9000 + b'"' + b"]" * 900
    packed = pack(body)
    assert unpacked(packed.body, by_digest(packed.pieces)) == body


@given(
    st.integers(-5, 2**53),
    st.integers(-5, 2**53),
    st.binary(max_size=30) | st.sampled_from([b"", b",", b"}", b'"x"', b'"x":1}']),
)
def test_a_row_that_begins_with_its_time_is_stored_without_it_and_read_as_it_was(
    at: int, said: int, rest: bytes
) -> None:
    for body in (
        b'{"at":%d,%s' % (said, rest),
        b'{"at":%d}' % said,
        b'{"at":%d%s' % (said, rest),
        b"{" + rest,
        b'"' + rest,
    ):
        assert timed(untimed(body, at), at) == body
    assert untimed(b'{"at":%d,"x":1}' % at, at) == b',"x":1}'
