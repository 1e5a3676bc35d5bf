"""How a formula is written by a mathematician: TeX to MathML, a job of a worker, as what knows the signs takes memory and some formulas take long.

What comes is a closed set of elements and attributes, as lists that JSON knows: a name, attributes or null, and children. Nothing in it can be followed,
fetched or run.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

from agent_core.jsonvalue import Json
from agent_core.workers.pool import Job

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MOST_FORMULAS, MOST_CHARS = 100, 2_000
"""So many in one request, and so long; a longer one stays as it was written."""
MOST_NODES, DEEPEST = 2_000, 60
JOB = Job("adapters.http.written.formulas:work", 3.0, 2_000_000)
ELEMENTS = frozenset(
    ["math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "mstyle", "mpadded", "mphantom", "menclose", "msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mprescripts", "none", "mtable", "mtr", "mtd"]
)  # fmt: skip
ATTRIBUTES = frozenset(
    ["display", "displaystyle", "scriptlevel", "mathvariant", "stretchy", "fence", "separator", "form", "lspace", "rspace", "linethickness", "columnalign", "columnspacing", "rowspacing", "columnlines", "rowlines", "accent", "accentunder", "movablelimits", "minsize", "maxsize", "width", "height", "depth", "voffset", "notation", "symmetric", "largeop"]
)  # fmt: skip
_VALUE = re.compile(r"[\w.%+ -]{0,60}")


class _TooMuch(Exception):
    """More than a page should be given."""


def work(_request: dict[str, Json], blob: bytes) -> Json:
    """A list of [TeX, whether it stands alone] to a list of MathML; null for what cannot be read."""
    import orjson

    return [_written(str(tex), alone=bool(alone)) for tex, alone in orjson.loads(blob)]


def _written(tex: str, *, alone: bool) -> Json:
    from latex2mathml.converter import convert_to_element

    try:
        made = convert_to_element(tex, display="block" if alone else "inline")
        return _Cleaning().cleaned(made, 0)
    except Exception:  # noqa: BLE001 - whatever a model writes as a formula: it stays as it was written
        return None


class _Cleaning:
    """Takes over what is in the set."""

    def __init__(self) -> None:
        self._left = MOST_NODES

    def cleaned(self, one: Element, depth: int) -> Json:
        self._left -= 1
        if self._left < 0 or depth > DEEPEST or one.tag not in ELEMENTS:
            raise _TooMuch
        attributes: dict[str, Json] = {
            name: value for name, value in one.attrib.items() if name in ATTRIBUTES and _VALUE.fullmatch(value)
        }
        text = unescape(one.text or "")
        return [
            one.tag,
            attributes or None,
            *([text] if text else []),
            *(self.cleaned(each, depth + 1) for each in one),
        ]
