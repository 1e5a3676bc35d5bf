"""A known secret that somebody repeats in another form: in other letters, backwards, with blanks in it, in pieces, its middle left out. Pure.

Theory. Whoever answers about a key (a provider, a proxy) may write it as it likes; a list of forms never ends. What all of them have in common is
that a *piece* of the secret stands there: so many of its letters and digits in a row, forwards or backwards, whatever stands between them and
whichever case they are in. Pieces are found by their parts of a few characters (`_PROBE`) in a set, looked up at every so many characters of the text,
so a text without one costs little. A piece that is shorter is still one if dots or stars stand in the place of the rest.

Laws (tests/agent_core/test_redaction.py): no alteration of those named there leaves a piece of `piece_length` behind; the time is linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from agent_core.records import dataclass
from agent_core.text.patterns import late

SHORTEST_ALTERED = 12
"""Letters and digits. What is shorter is looked for in whole only: its pieces are found in ordinary words."""
_PIECE = 8
_PROBE = 6
_ORDINARY = 12
"""A word or a number of fewer signs, standing by itself, is no piece."""
_TIP = 3
"""So many characters of a secret's beginning or end are a piece where the rest is left out."""

_PUBLIC_ID = late(r"^(?:\d{5,20}:|xox[a-z]-\d{6,20}-\d{6,20}-)")
"""A Telegram token begins with the bot's id, one of Slack's with the numbers of workspace and app: they are no secret, and stand in every address
of their chats."""
_GAPS = ("**", "...", "…", "••", "xxxx", "###", "[..", "<red", "<hid", "<mas", "[red", "[hid", "[mas")
"""In lower case; where the rest of a key is left out, one of these stands."""
_GAP = late(r"(?i)\*{2,}|\.{3,}|…+|•{2,}|x{4,}|#{3,}|[\[<](?:\.{2,}|…|redacted|hidden|masked)[\]>]")
_TAIL = late(r"[\w+/=-]{1,200}")
_HEAD_CHARS = 200
_ASCII_SIGNS = {code: None for code in range(128) if not chr(code).isalnum()}


def squeezed(text: str) -> str:
    """Letters and digits only, in lower case; each has one place in `text`, in order."""
    if text.isascii():
        return text.translate(_ASCII_SIGNS).lower()
    return "".join(low if len(low := char.lower()) == 1 else char for char in text if char.isalnum())


@dataclass(frozen=True, slots=True)
class Alterations:
    """What is needed to find pieces of some secrets."""

    _plain: tuple[tuple[str, int], ...] = ()
    """Each secret squeezed, forwards and backwards, with the length of a piece."""
    _probes: frozenset[str] = frozenset()
    _probe: int = _PROBE
    _stride: int = _PIECE - _PROBE + 1
    _tips: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Alterations:
        """For these secrets, as far as they are long enough."""
        private = (_PUBLIC_ID.sub("", secret) for secret in secrets)
        known = {one: secret for secret in private if len(one := squeezed(secret)) >= SHORTEST_ALTERED}
        if not known:
            return cls()
        plain = tuple((form, least) for one, secret in sorted(known.items()) for form, least in _spellings(one, secret))
        shortest = min(length for _, length in plain)
        probe = min(_PROBE, shortest - 2)
        probes = frozenset(form[at : at + probe] for form, _ in plain for at in range(len(form) - probe + 1))
        return cls(plain, probes, probe, shortest - probe + 1, tuple(known))

    def without(self, text: str, mask: str) -> str:
        """`text` with the mask in the place of each piece."""
        if not self._plain:
            return text
        low = text.lower()
        if any(gap in low for gap in _GAPS):
            text = self._whole(text, mask)
        flat = squeezed(text)
        spans = self._spans(flat)
        return _masked(text, spans, mask) if spans else text

    def _whole(self, text: str, mask: str) -> str:
        """`text` without the keys whose middle is left out."""
        out: list[str] = []
        done = 0
        for gap in _GAP.finditer(text):
            if gap.start() < done:
                continue
            first = gap.start()
            while first > max(done, gap.start() - _HEAD_CHARS) and (
                text[first - 1].isalnum() or text[first - 1] in "_-+/="
            ):
                first -= 1
            behind = _TAIL.match(text, gap.end())
            head, tail = squeezed(text[first : gap.start()]), squeezed(behind[0] if behind else "")
            if any(_is_tip(known, head, tail) for known in self._tips):
                out += (text[done:first], mask)
                done = behind.end() if behind else gap.end()
        return "".join((*out, text[done:])) if out else text

    def _spans(self, flat: str) -> list[tuple[int, int]]:
        """Where pieces stand in a squeezed text, joined and in order."""
        found: list[tuple[int, int]] = []
        at, probe, probes = 0, self._probe, self._probes
        last = len(flat) - probe
        while at <= last:
            if flat[at : at + probe] in probes:
                span = self._around(flat, at)
                if span is not None:
                    _join(found, span)
                    at = max(at, span[1] - probe)
            at += self._stride
        return found

    def _around(self, flat: str, at: int) -> tuple[int, int] | None:
        """The longest piece that the probe at `at` is a part of, if it is long enough."""
        best: tuple[int, int] | None = None
        part = flat[at : at + self._probe]
        for form, least in self._plain:
            where = form.find(part)
            while where >= 0:
                first, end = at, at + self._probe
                low, high = where, where + self._probe
                while first > 0 and low > 0 and flat[first - 1] == form[low - 1]:
                    first, low = first - 1, low - 1
                while end < len(flat) and high < len(form) and flat[end] == form[high]:
                    end, high = end + 1, high + 1
                if end - first >= least and (best is None or end - first > best[1] - best[0]):
                    best = (first, end)
                where = form.find(part, where + 1)
        return best


def _spellings(one: str, secret: str) -> tuple[tuple[str, int], ...]:
    """A squeezed secret forwards, backwards, in hexadecimal (also percent-encoded) and in escapes, each with the length of a piece."""
    least = piece_length(len(one))
    codes = "".join(f"u{ord(char):04x}" for char in secret)
    return (
        (one, least),
        (one[::-1], least),
        (secret.encode("utf-8", "surrogatepass").hex(), 2 * least),
        (codes, 5 * least),
    )


def _is_tip(known: str, head: str, tail: str) -> bool:
    """Whether what stands before and behind a gap is a secret's beginning or end."""
    begins = len(head) >= _TIP and (known.startswith(head) or head.endswith(known[:_PIECE]))
    return begins or (len(tail) >= _TIP and known.endswith(tail))


def piece_length(length: int) -> int:
    """From how many letters and digits in a row on something is a piece of a secret that has `length` of them."""
    return max(6, min(_PIECE, length // 2))


def _join(spans: list[tuple[int, int]], span: tuple[int, int]) -> None:
    first, end = span
    while spans and spans[-1][1] >= first:
        before = spans.pop()
        first, end = min(first, before[0]), max(end, before[1])
    spans.append((first, end))


def _is_ordinary(text: str, begins: int, over: int) -> bool:
    """A word or a number that stands by itself: a key of words ("my-gateway-key-2026") must not take them from every other text."""
    piece = text[begins:over]
    alone = not text[begins - 1 : begins].isalnum() and not text[over : over + 1].isalnum()
    word = piece.isalpha() and (piece.islower() or piece.istitle())
    return alone and len(piece) < _ORDINARY and (word or piece.isdigit())


def _masked(text: str, spans: Sequence[tuple[int, int]], mask: str) -> str:
    """The mask in the place of each span of the squeezed text, with the signs inside it."""
    places = [place for place, char in enumerate(text) if char.isalnum()]
    out: list[str] = []
    done = 0
    for first, end in spans:
        begins, over = places[first], places[end - 1] + 1
        if _is_ordinary(text, begins, over):
            continue
        out += (text[done:begins], mask)
        done = over
    return "".join((*out, text[done:]))
