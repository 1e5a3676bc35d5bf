"""The laws of styled text, as checks that say what is broken."""

from __future__ import annotations

from itertools import pairwise

import regex

from adapters.text.styled import VERBATIM, Style, Styled, in_order


def bare(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def check(styled: Styled) -> None:
    """Spans are in bounds, sorted, not empty, well nested, and begin and end where something is to be seen."""
    spans = styled.spans
    assert spans == in_order(spans)
    blocks = {span.start for span in spans if span.style is Style.PRE}
    for span in spans:
        assert 0 <= span.start < span.end <= len(styled.text), span
        assert span.start in blocks or not styled.text[span.start].isspace(), span
        assert not styled.text[span.end - 1].isspace(), span
    for index, outer in enumerate(spans):
        for inner in spans[index + 1 :]:
            if inner.start >= outer.end:
                break
            assert inner.end <= outer.end, (outer, inner)
            assert outer.style not in VERBATIM, (outer, inner)
            assert inner.style not in VERBATIM or outer.style is Style.QUOTE, (outer, inner)
            assert inner.style is not outer.style, (outer, inner)


def check_parts(whole: Styled, parts: tuple[Styled, ...]) -> None:
    """Nothing is lost but white space, nothing is empty, and styles go on."""
    assert "".join(bare(part.text) for part in parts) == bare(whole.text)
    for part in parts:
        assert part.text.strip()
        check(part)
    assert [one for part in parts for one in per_letter(part)] == per_letter(whole)


def per_letter(styled: Styled) -> list[tuple[str, frozenset[tuple[Style, str]]]]:
    """Every character that is no white space, with its styles."""
    styles: list[set[tuple[Style, str]]] = [set() for _ in styled.text]
    for span in styled.spans:
        for place in range(span.start, span.end):
            styles[place].add((span.style, span.value))
    return [(char, frozenset(found)) for char, found in zip(styled.text, styles, strict=True) if not char.isspace()]


def check_no_torn_cluster(whole: Styled, parts: tuple[Styled, ...], room: int) -> None:
    """Each cluster without white space that has room in a part is in one part."""
    places: set[int] = set()
    at = 0
    for part in parts:
        at += len(bare(part.text))
        places.add(at)
    at = 0
    for found in regex.finditer(r"\X", whole.text):
        cluster = found.group()
        size = len(bare(cluster))
        if size == len(cluster) and 2 * size <= room:
            assert not any(at < place < at + size for place in places), repr(cluster)
        at += size


def is_sorted(offsets: list[int]) -> bool:
    """Whether the numbers never fall."""
    return all(one <= other for one, other in pairwise(offsets))
