"""Long texts are formatted by a worker, as they would be at once, and nothing of a text is ever lost."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import Piece
from adapters.delivery.formjob import decoded, encoded, work
from adapters.delivery.parts import Parts, Picture
from adapters.discord.pieces import pieces as discord
from adapters.slack.pieces import pieces as slack
from adapters.telegram.pieces import pieces as telegram
from adapters.text.styled import Styled
from agent_core.workers.pool import Workers
from gateway.delivery.forming import AT_ONCE_CHARS, FINAL, GROWING, GROWING_CHARS, Forming, FormParts, Texts
from tests import examples

FORMS = [telegram, discord, slack]
ORDINARY = (
    "# A title\n\nSome **bold**, *slanted* and ~~old~~ text with `code` and [a link](https://example.org/a).\n\n- one\n- two\n\n"
    "```python\nprint('x')\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> said 🇩🇪 👨‍👩‍👧\n\n"
)
LONG = ORDINARY * 40
assert len(LONG) > 2 * AT_ONCE_CHARS


def text_of(pieces: tuple[Piece, ...]) -> str:
    return "\n".join(piece.text for piece in pieces)


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


@given(st.text(max_size=400) | st.text(alphabet="*_`~[]()!<>|#-\n ab", max_size=400), st.sampled_from(FORMS))
def test_pieces_are_the_same_after_their_way_through_a_worker(markdown: str, form: FormParts):
    for piece in form(markdown, growing=False):
        assert decoded(encoded(piece)) == piece


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize(("platform", "form"), [*zip(("telegram", "discord", "slack"), FORMS, strict=True)])
def test_a_worker_is_asked_for_a_text_as_it_is_wanted(platform: str, form: FormParts, *, growing: bool, plain: bool):
    """What a platform has refused for its form goes without it, and not once more as it was."""
    made = work(
        {"by": f"adapters.{platform}.pieces:pieces", "growing": growing, "plain": plain}, ORDINARY[:-30].encode()
    )
    assert made == [encoded(piece) for piece in form(ORDINARY[:-30], growing=growing, plain=plain)]


@pytest.mark.parametrize("odd", [None, 1, [], ["x"], ["x", [[1, 2]]], ["x", [[1, 2, "no style", ""]]], {"name": "x"}])
def test_what_is_no_piece_is_refused(odd: object):
    with pytest.raises(ValueError, match="this is no"):
        decoded(odd)  # pyright: ignore[reportArgumentType] - a worker that was taken over may send anything


@pytest.mark.parametrize("form", FORMS)
async def test_a_worker_formats_as_the_loop_does(form: FormParts):
    async with Workers() as workers:
        forming = Forming(workers)
        assert await forming.final(form, LONG) == form(LONG, growing=False)
        assert await forming.growing(form, LONG[:-9]) == form(LONG[:-9], growing=True)
        assert workers.processes != []


async def test_a_short_text_needs_no_worker():
    async with Workers() as workers:
        forming = Forming(workers)
        assert await forming.final(telegram, "*x*") == telegram("*x*", growing=False)
        assert await forming.growing(telegram, "*x") == telegram("*x", growing=True)
        assert workers.processes == []


def endless(markdown: str, *, growing: bool, plain: bool = False) -> tuple[Piece, ...]:
    """Formats nothing but plain text, ever."""
    while not plain:
        time.sleep(1)
    return (Styled(markdown),)


async def test_a_text_that_cannot_be_formatted_in_time_is_shown_whole_without_form(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway.delivery.forming.FINAL", replace(FINAL, seconds=2.0))
    async with Workers() as workers:
        assert await Forming(workers).final(endless, "x" * 9000) == (Styled("x" * 9000),)


async def test_a_text_on_its_way_that_takes_too_long_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway.delivery.forming.GROWING", replace(GROWING, seconds=2.0))
    async with Workers() as workers:
        assert await Forming(workers).growing(endless, "x" * 9000) is None
        assert await Forming(workers).growing(telegram, "x " * GROWING_CHARS) is None


async def test_whoever_waits_for_a_text_that_takes_long_hears_that_it_is_at_work(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway.delivery.forming.FINAL", replace(FINAL, seconds=0.5))
    monkeypatch.setattr("gateway.delivery.forming.SIGN_SECONDS", 0.05)
    signs, shown = list[str](), list[tuple[Piece, ...]]()

    def show(parts: Parts) -> Picture:
        shown.append(parts(LONG, False))
        return Picture(())

    async with Workers() as workers:
        forming = Forming(workers)
        await Texts(lambda: endless, lambda: forming, lambda: signs.append("at work")).shown(show)
    assert text_of(shown[-1]) == LONG
    assert signs


async def test_without_any_worker_the_text_still_comes_whole():
    workers = Workers()
    await workers.aclose()
    found = await Forming(workers).final(telegram, LONG)
    assert letters(LONG)[:500] in letters(text_of(found))
    assert letters(text_of(found)) == letters(text_of(telegram(LONG, growing=False, plain=True)))


@examples.MANY
@given(st.text(max_size=600), st.sampled_from([telegram, slack]))
def test_the_plain_form_holds_every_letter(text: str, form: FormParts):
    assert letters(text_of(form(text, growing=False, plain=True))) == letters(text)


@pytest.mark.parametrize(
    "bomb", ["![" * 1_500, "[" * 3_000, "*a" * 1_500, "~~a" * 1_000, "`" * 3_000, "🇩" * 3_000, "*(a" * 1_000]
)
@pytest.mark.parametrize("form", FORMS)
async def test_the_loop_formats_no_text_that_takes_it_long(form: FormParts, bomb: str):
    """In processor time: how long others hold the machine is none of its business."""
    async with Workers() as workers:
        forming = Forming(workers)
        form("a", growing=False)
        took: list[float] = []
        for _ in range(3):  # what is shared with others computes more slowly at times
            began = time.thread_time()
            assert letters(text_of(await forming.final(form, bomb))) == letters(text_of(form("", growing=False)) + bomb)
            took.append(time.thread_time() - began)
        assert min(took) < 0.05
