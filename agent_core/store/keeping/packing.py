"""What is large in a stored body is put beside it, once, whoever says it again. Pure.

Theory. A body is JSON. A long text in it, a picture (a data URL), and a long list of messages are *cut out*: the body keeps a gap and the
digest of what was there. What was cut out is a *piece* under its digest, so equal pieces are one. A list becomes a piece for each of its
elements, and *runs* of some sixteen of them; where a run ends, the elements themselves decide. So whoever sends a conversation again,
longer by two messages or without its oldest, brings a few new pieces, whatever the conversation's length. A piece may have gaps itself.

Laws (tests/store/test_packing.py): `unpacked(pack(body)) == body`, to the byte; equal bodies are packed alike; a small body stays as
it is, and costs a look at its length; what two bodies share is packed into the same pieces.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias, cast

import orjson

from agent_core.messages import NO_LONGER_KEPT
from agent_core.records import dataclass

LOOKED_AT_BYTES = 4 * 1024
"""A smaller body is stored as it is: what a person types, and what a turn writes about it."""
PIECE_BYTES = 1024
"""A smaller text is not worth a piece of its own."""
SERIES_BYTES = 2 * 1024
RUN_ENDS = 16
"""One element in so many ends a run."""
RUN_MOST = 64
DIGEST_BYTES = 32
QUICKLY_FROM_BYTES = 256 * 1024
"""From here on compressing is to be quick rather than thorough: the writer waits for it."""
MARK = b"P"
"""How a body with gaps begins; any other is JSON, and begins otherwise."""
_DATA_URL = re.compile(r"data:[\w.+/-]{1,100};base64,")

Path: TypeAlias = "list[str | int]"
Tree: TypeAlias = Any
"""JSON as it is read: this module looks at every kind of it."""


class PieceForm(StrEnum):
    """What a piece holds."""

    TEXT = "text"
    BYTES = "bytes"
    """What a data URL holds."""
    BODY = "body"
    """An element of a list: JSON, perhaps with gaps."""
    RUN = "run"
    """The digests of some elements, one after the other."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that is stored once."""

    digest: bytes
    form: PieceForm
    content: bytes

    @property
    def below(self) -> tuple[bytes, ...]:
        """The digests of the pieces that it needs itself, as often as it needs them."""
        if self.form is PieceForm.RUN:
            return tuple(_digests(self.content))
        return needed(self.content) if self.form is PieceForm.BODY else ()


@dataclass(frozen=True, slots=True)
class Packed:
    """A body as it is stored, and all pieces that it needs, directly or not."""

    body: bytes
    pieces: tuple[Piece, ...] = ()


def pack(body: bytes) -> Packed:
    """The body with what is large cut out."""
    if len(body) < LOOKED_AT_BYTES or body.startswith(MARK):
        return Packed(body)
    pieces: dict[bytes, Piece] = {}
    try:
        tree = orjson.loads(body)
        if orjson.dumps(tree) != body:  # not as we write it, so it would not come back as it is
            return Packed(body)
        return Packed(_cut(tree, pieces), tuple(pieces.values()))
    except (ValueError, TypeError, RecursionError):  # no JSON, or nested so deep that it is better left alone
        return Packed(body)


def needed(body: bytes) -> tuple[bytes, ...]:
    """The digests in the gaps of a body, as often as they are there."""
    if not body.startswith(MARK):
        return ()
    _, cuts = orjson.loads(body[len(MARK) :])
    return tuple(bytes.fromhex(one) for _, _, digests in cuts for one in digests)


def unpacked(body: bytes, pieces: Mapping[bytes, Piece]) -> bytes:
    """The body as it was. A gap whose piece is not there any more says so."""
    return orjson.dumps(_filled(body, pieces)) if body.startswith(MARK) else body


def missing(bodies: Iterable[bytes], pieces: Mapping[bytes, Piece]) -> set[bytes]:
    """Which pieces are to be fetched next, so that `bodies` can be read."""
    wanted: set[bytes] = set()
    seen: set[bytes] = set()
    open_ends = [digest for body in bodies for digest in needed(body)]
    while open_ends:
        digest = open_ends.pop()
        if digest in seen:
            continue
        seen.add(digest)
        piece = pieces.get(digest)
        if piece is None:
            wanted.add(digest)
        else:
            open_ends += piece.below
    return wanted


def squeezed(piece: Piece) -> tuple[bytes, bool]:
    """The content as it is stored, and whether it is compressed."""
    if piece.form in (PieceForm.TEXT, PieceForm.BODY) and len(piece.content) >= 200:
        small = zlib.compress(piece.content, 6 if len(piece.content) < QUICKLY_FROM_BYTES else 1)
        if len(small) < len(piece.content) * 9 // 10:
            return small, True
    return piece.content, False


def piece_of(digest: bytes, form: str, stored: bytes, *, compressed: bool) -> Piece:
    """A piece as it was before it was stored."""
    return Piece(digest, PieceForm(form), zlib.decompress(stored) if compressed else stored)


def _cut(tree: Tree, pieces: dict[bytes, Piece]) -> bytes:
    """The body of a tree, which is changed by this; its pieces are put into `pieces`."""
    cuts: list[tuple[Path, str, list[str]]] = []
    whole = [tree]
    _walk(whole, 0, [], cuts, pieces)
    if not cuts:
        return orjson.dumps(whole[0])
    return MARK + orjson.dumps([whole[0], cuts])


def _walk(
    holder: Tree,
    at: str | int,
    path: Path,
    cuts: list[tuple[Path, str, list[str]]],
    pieces: dict[bytes, Piece],
) -> None:
    value: Tree = holder[at]
    match value:
        case str():
            if len(value) >= PIECE_BYTES // 4 and (made := _text_piece(value)) is not None:
                form, piece = made
                pieces[piece.digest] = piece
                cuts.append((path, form, [piece.digest.hex()]))
                holder[at] = None
        case dict():
            for key in cast("dict[str, Tree]", value):
                _walk(value, key, [*path, key], cuts, pieces)
        case list():
            elements = cast("list[Tree]", value)
            if len(elements) > 1 and len(orjson.dumps(elements)) >= SERIES_BYTES:
                cuts.append((path, "series", [run.hex() for run in _series(elements, pieces)]))
                holder[at] = None
            else:
                for number in range(len(elements)):
                    _walk(elements, number, [*path, number], cuts, pieces)
        case _:
            pass


def _text_piece(text: str) -> tuple[str, Piece] | None:
    """How a text is cut out, and the piece; None if it is too small."""
    encoded = text.encode()
    if len(encoded) < PIECE_BYTES:
        return None
    head = _DATA_URL.match(text)
    if head is not None:
        try:
            data = base64.b64decode(text[head.end() :], validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if base64.b64encode(data).decode() == text[head.end() :]:
            return head.group(), _piece(PieceForm.BYTES, data)
    return "text", _piece(PieceForm.TEXT, encoded)


def _series(elements: Sequence[Tree], pieces: dict[bytes, Piece]) -> list[bytes]:
    """The runs of a list."""
    runs: list[bytes] = []
    run: list[bytes] = []
    for element in elements:
        piece = _piece(PieceForm.BODY, _cut(element, pieces))
        pieces[piece.digest] = piece
        run.append(piece.digest)
        if piece.digest[0] % RUN_ENDS == 0 or len(run) >= RUN_MOST:
            runs.append(_run(run, pieces))
            run = []
    return [*runs, _run(run, pieces)] if run else runs


def _run(digests: Collection[bytes], pieces: dict[bytes, Piece]) -> bytes:
    piece = _piece(PieceForm.RUN, b"".join(digests))
    pieces[piece.digest] = piece
    return piece.digest


def _piece(form: PieceForm, content: bytes) -> Piece:
    return Piece(hashlib.sha256(form.value.encode() + b"\0" + content).digest(), form, content)


def is_whole(piece: Piece) -> bool:
    """Its content is the one that it was stored with."""
    return _piece(piece.form, piece.content).digest == piece.digest


def _digests(run: bytes) -> list[bytes]:
    return [run[at : at + DIGEST_BYTES] for at in range(0, len(run), DIGEST_BYTES)]


def _filled(body: bytes, pieces: Mapping[bytes, Piece]) -> Tree:
    if not body.startswith(MARK):
        return orjson.loads(body)
    tree, cuts = orjson.loads(body[len(MARK) :])
    whole = [tree]
    for path, form, digests in cuts:
        holder: Tree = whole
        for key in (0, *path)[:-1]:
            holder = holder[key]
        holder[(0, *path)[-1]] = _value(form, [pieces.get(bytes.fromhex(one)) for one in digests], pieces)
    return whole[0]


def _value(form: str, found: Sequence[Piece | None], pieces: Mapping[bytes, Piece]) -> Tree:
    if form == "series":
        runs = [_digests(run.content) for run in found if run is not None]
        elements = [pieces.get(digest) for run in runs for digest in run]
        return [_filled(one.content, pieces) for one in elements if one is not None]
    piece = found[0]
    if piece is None:
        return NO_LONGER_KEPT
    return piece.content.decode() if form == "text" else form + base64.b64encode(piece.content).decode()
