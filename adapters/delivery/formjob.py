"""A text formatted for a platform by a worker, of its own so that the worker imports little: what is asked, and what is answered, as data.

A model's answer is as long and as odd as it likes, and Markdown has no reader whose time is linear in every text. So `parts` of a port is a
function of a module, which a worker can import; what it gives is turned into lists here, and back.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adapters.text.codefile import CodeFile
from adapters.text.styled import Span, Style, Styled
from agent_core.jsonvalue import Json

if TYPE_CHECKING:
    from adapters.contract.chat import Piece


def work(request: dict[str, Json], blob: bytes) -> Json:
    """A job for a worker: the pieces of the text in `blob`."""
    module, _, name = str(request["by"]).partition(":")
    pieces: Any = getattr(import_module(module), name)
    found: tuple[Piece, ...] = pieces(
        blob.decode("utf-8", "surrogatepass"), growing=request["growing"] is True, plain=request["plain"] is True
    )
    return [encoded(piece) for piece in found]


def encoded(piece: Piece) -> Json:
    """A piece as data."""
    match piece:
        case Styled():
            return [piece.text, [[span.start, span.end, span.style.value, span.value] for span in piece.spans]]
        case CodeFile():
            return {"name": piece.name, "language": piece.language, "text": piece.text}


_STYLES = {style.value: style for style in Style}


def decoded(data: Json) -> Piece:
    """What was `encoded`. Raises `ValueError` for anything else."""
    match data:
        case [str(text), list(spans)]:
            return Styled(text, tuple(map(_span, spans)))
        case {"name": str(name), "language": str(language), "text": str(text)}:
            return CodeFile(name, language, text)
        case _:
            raise ValueError("this is no piece")


def _span(data: Json) -> Span:
    match data:
        case [int(start), int(end), str(style), str(value)] if style in _STYLES:
            return Span(start, end, _STYLES[style], value)
        case _:
            raise ValueError("this is no span")
