"""What becomes of parts by calls that fail: nothing of a final part is lost, whatever is refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import GROWS, Ability, Button, CallFailed, Cause, Content, ContentKind, Fate, Flow, Traits
from adapters.contract.files import MOST_TEXT_BYTES, spelled_out
from adapters.contract.pacing import Urgency
from adapters.delivery.aftermath import (
    MOST_ANEW,
    MOST_MOVES,
    MOST_SHIELDED,
    MOST_UNREADABLE,
    MOST_UPLOADS,
    NOT_LET_IN_MS,
    behind,
    failed,
)
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import (
    BLOCKS_MS,
    PROBE_MS,
    Create,
    Delete,
    Edit,
    LookLater,
    Part,
    PartFailure,
    begun,
    new_part,
    next_step,
    settled,
)
from adapters.delivery.substitutes import SMALLEST_UNITS, in_more_parts, instead_of, text_of_file
from adapters.text.split import split
from adapters.text.styled import Styled, units
from agent_core.store.deliveries.rows import INSTEAD, DeliveryState
from tests.adapters.test_reconcile import FREE, Platform, Rig, content
from tests.examples import MANY

FILE = Content(ContentKind.FILE, Styled(), file_text="print(1)\n```\nprint(2)\n", file_name="app.py")
PLAIN = Traits(drafts=False)


def instead(what: Content, cause: Cause) -> Sequence[Content]:
    spelled = split(Styled(text_of_file(what)), 400, units)
    return instead_of(what, cause, spelled=spelled, shorter=lambda body, size: split(body, size, units), replies=False)


@dataclass
class Strict(Platform):
    """A platform that refuses, and says so in words that nobody has seen before."""

    longest: int = 10_000
    files: bool = True
    edits: bool = True
    removed: float = 0.0
    """Share of the edits before which a person takes the message away."""
    files_shown: list[str] = field(default_factory=list[str])

    def create(self, key: str, text: str, *, repeated: bool, grows: bool = False) -> str:
        if text.startswith("FILE "):
            if not self.files:
                raise CallFailed(Fate.REFUSED, "no files here", cause=self.chance.choice((Cause.FILE, Cause.OTHER)))
        elif len(text) > self.longest:
            raise CallFailed(Fate.REFUSED, "too long", cause=Cause.TOO_LONG)
        return super().create(key, text, repeated=repeated, grows=grows)

    def edit(self, platform_id: str, text: str) -> None:
        assert not text.startswith("FILE "), "no edit makes a file"
        if self.chance.random() < self.removed:
            self.shown.pop(platform_id, None)
        if len(text) > self.longest:
            raise CallFailed(Fate.REFUSED, "too long", cause=Cause.TOO_LONG)
        if not self.edits:
            cause = self.chance.choice((Cause.UNEDITABLE, Cause.OTHER, Cause.NO_RIGHTS))
            raise CallFailed(Fate.REFUSED, "words that nobody knows", cause=cause)
        super().edit(platform_id, text)


def file_wanted(text: str) -> Content:
    """Its body is what the platform of these tests shows of it."""
    return Content(ContentKind.FILE, Styled(f"FILE {text}"), file_text=text, file_name="a.py")


def shown(rig: Rig) -> str:
    return "".join(rig.texts)


WORDS = st.text("abc \n", min_size=1, max_size=900).filter(str.strip)


@MANY
@given(
    st.lists(WORDS, min_size=1, max_size=4),
    WORDS,
    st.booleans(),
    st.sampled_from(Ability),
    st.tuples(st.booleans(), st.booleans(), st.integers(150, 1_000)),
    st.floats(0, 0.5),
    st.integers(0, 2**32),
    st.data(),
)
def test_every_final_word_is_there_at_the_end(
    previews: list[str],
    final: str,
    with_file: bool,
    ability: Ability,
    strict: tuple[bool, bool, int],
    removed: float,
    seed: int,
    data: st.DataObject,
) -> None:
    files, edits, longest = strict
    chance = random.Random(seed)
    platform = Strict(ability, chance, 0.3, longest=max(longest, 450), files=files, edits=edits, removed=removed)
    rig = Rig(platform, instead=instead)
    for text in previews:
        rig.want([WantedPart("b", i, content(piece), final=False) for i, piece in enumerate((text, text[::-1]))])
        for _ in range(data.draw(st.integers(0, 6))):
            rig.step()
    last = [WantedPart("b", 0, content(final), final=True)]
    if with_file:
        last.append(WantedPart("b", 1, file_wanted("code of the file"), final=True))
    rig.want(last)
    rig.settle()
    everything = shown(rig)
    assert not any(part.open for part in rig.parts.values())
    assert not any(part.row.state is DeliveryState.FAILED and part.row.final for part in rig.parts.values())
    standing = {part.row.platform_id for part in rig.parts.values() if part.stands}
    words = "".join(text for one, (_, text) in platform.shown.items() if one in standing)
    assert "".join(final.split()) in "".join(words.split())
    mine = sorted((part for part in rig.parts.values() if part.stands), key=lambda part: part.order)
    if ability is not Ability.NONE:
        order = [int(part.row.platform_id or 0) for part in mine]
        assert order == sorted(order), "it is read in the order of its parts"
    if with_file:
        assert "code of the file" in everything
        assert ("FILE code of the file" in everything) == files
    if ability is not Ability.NONE and edits and not removed:
        assert standing == set(platform.shown), "nothing of the previews stays"


def part_of(what: Content, *, final: bool = True) -> tuple[Rig, Part]:
    rig = Rig(Platform(Ability.NONE, random.Random(0), faults=0), instead=instead)
    rig.want([WantedPart("b", 0, what, final=final)])
    return rig, next(iter(rig.parts.values()))


def refused(part: Part, cause: Cause, *, creating: bool) -> list[Part]:
    error = CallFailed(Fate.REFUSED, "the platform's words", cause=cause)
    return failed(part, error, Ability.NONE, creating=creating, now=1, share=0, instead=instead)


@pytest.mark.parametrize("cause", [Cause.FILE, Cause.NO_RIGHTS, Cause.OTHER])
def test_a_refused_file_gives_its_text_back(cause: Cause) -> None:
    _, part = part_of(FILE)
    gone, *given = refused(begun(part, 0, repeated=False), cause, creating=True)
    assert gone.row.state is DeliveryState.SKIPPED
    assert gone.row.cause.startswith(INSTEAD)
    assert given[0].content.body.text.startswith("`app.py` could not be sent as a file.")
    assert all(line in "".join(one.content.body.text for one in given) for line in FILE.file_text.splitlines())
    assert "````py" in given[0].content.body.text, "a fence that the code does not hold"
    assert all(one.row.final and one.row.place == part.row.place for one in given)


async def test_what_is_in_a_file_of_the_workspace_is_shown_if_it_is_a_text(tmp_path: Path) -> None:
    async def spelled(data: bytes) -> str:
        file = tmp_path / "notes.md"
        file.write_bytes(data)
        content = Content(ContentKind.FILE, Styled(), file=str(file), file_name="notes.md")
        return (await spelled_out(content)).file_text

    assert await spelled(b"\xef\xbb\xbfone\r\ntwo\n") == "one\ntwo\n"
    assert len(await spelled(b"x" * MOST_TEXT_BYTES)) == MOST_TEXT_BYTES
    for data in (b"", b" \n", b"x" * (MOST_TEXT_BYTES + 1), b"\xff\xd8", b"PK\x03\x04", b"a\x00b"):
        assert await spelled(data) == ""
    gone = Content(ContentKind.FILE, Styled(), file=str(tmp_path / "gone"), file_name="gone")
    assert await spelled_out(gone) == gone


def test_a_file_with_a_text_goes_as_text_and_names_no_file_any_more() -> None:
    wanted = Content(ContentKind.FILE, Styled(), file="/x/a.py", file_name="a.py")
    spelled = split(Styled(text_of_file(replace(wanted, file_text="one = 1"))), 400, units)
    (given,) = instead_of(wanted, Cause.FILE, spelled=spelled, shorter=lambda body, size: (body,), replies=False)
    assert (given.kind, given.file, given.file_name) == (ContentKind.TEXT, "", "")
    assert "one = 1" in given.body.text
    assert instead_of(wanted, Cause.FILE, spelled=(), shorter=lambda body, size: (body,), replies=False) == ()


@pytest.mark.parametrize("final", [True, False])
def test_what_stands_behind_a_message_that_was_taken_away_is_sent_anew_behind_it(*, final: bool) -> None:
    rig = Rig(Platform(Ability.KEYED, random.Random(0), faults=0), instead=instead)
    rig.want([WantedPart("b", 0, content("one"), final=True), WantedPart("b", 1, content("two"), final=final)])
    rig.settle()
    rig.platform.delete("1")
    rig.want([WantedPart("b", 0, content("ONE"), final=True), WantedPart("b", 1, content("two"), final=final)])
    rig.settle()
    rig.want([WantedPart("b", 0, content("ONE"), final=True), WantedPart("b", 1, content("two"), final=True)])
    rig.settle()
    assert rig.texts == ["ONE", "two"]


def test_what_was_split_is_read_before_what_stands_behind_it() -> None:
    rig = Rig(Strict(Ability.KEYED, random.Random(0), faults=0, longest=500), instead=instead)
    rig.want([WantedPart("b", 0, content("one"), final=False), WantedPart("b", 1, content("two"), final=True)])
    rig.settle()
    rig.want([WantedPart("b", 0, content("long " * 150), final=True), WantedPart("b", 1, content("two"), final=True)])
    rig.settle()
    assert [text.split()[0] for text in rig.texts] == ["long", "long", "two"]


def test_a_file_that_was_never_a_text_fails_with_its_words() -> None:
    _, part = part_of(Content(ContentKind.FILE, Styled(), file="/x/photo.png", file_name="photo.png"))
    (after,) = refused(begun(part, 0, repeated=False), Cause.FILE, creating=True)
    assert after.row.state is DeliveryState.FAILED


def test_a_file_that_cannot_be_uploaded_goes_as_text_at_last() -> None:
    _, part = part_of(FILE)
    error = CallFailed(Fate.NOT_SENT, "the host for files is not reached")
    for number in range(1, MOST_UPLOADS + 1):
        part, *given = failed(
            begun(part, 0, repeated=False), error, Ability.LOOK_UP, creating=True, now=1, share=0, instead=instead
        )
        assert bool(given) == (number == MOST_UPLOADS)


def test_what_an_edit_cannot_make_of_a_message_gets_one_of_its_own_and_the_message_goes_after_it() -> None:
    rig, _ = part_of(content("```\nprint(1)"), final=False)
    rig.settle()
    rig.want([WantedPart("b", 0, file_wanted("print(1)"), final=True)])
    first = next_step(rig.parts.values(), Ability.NONE, FREE, 0)
    assert isinstance(first, Create)
    assert first.part.content.kind is ContentKind.FILE
    waits = dict.fromkeys(Urgency, 0) | {Urgency.FINAL: 900}
    assert next_step(rig.parts.values(), Ability.NONE, waits, 0) == LookLater(900), (
        "the preview stays until the file is there"
    )
    rig.settle()
    assert rig.texts == ["FILE print(1)"]


@pytest.mark.parametrize("cause", [Cause.UNEDITABLE, Cause.OTHER, Cause.NO_RIGHTS, Cause.NO_THREAD])
def test_an_edit_that_is_refused_for_whatever_reason_is_sent_anew(cause: Cause) -> None:
    rig, part = part_of(content("the preview"), final=False)
    rig.settle()
    rig.want([WantedPart("b", 0, content("the answer"), final=True)])
    part = rig.parts[part.name]
    made = refused(part, cause, creating=False)
    if cause is Cause.NO_THREAD:  # the first time, it is tried outside of the topic
        made = refused(made[0], cause, creating=False)
    for one in made:
        rig.put(one)
    step = next_step(rig.parts.values(), Ability.NONE, FREE, 0)
    assert isinstance(step, Create)
    assert step.part.content.body.text == "the answer"
    rig.settle()
    assert rig.texts == ["the answer"]


def test_what_was_refused_on_its_way_is_sent_at_the_end() -> None:
    rig, part = part_of(content("half of it"), final=False)
    (after,) = refused(begun(part, 0, repeated=False), Cause.OTHER, creating=True)
    assert after.row.state is DeliveryState.FAILED
    rig.put(after)
    assert next_step(rig.parts.values(), Ability.NONE, FREE, 0) == LookLater(None)
    rig.want([WantedPart("b", 0, content("half of it"), final=True)])
    rig.settle()
    assert rig.texts == ["half of it"]


@given(st.integers(SMALLEST_UNITS, 3_000), st.integers(SMALLEST_UNITS + 50, 900))
def test_what_is_too_long_is_cut_until_it_fits_and_stays_in_order(length: int, longest: int) -> None:
    text = " ".join(f"w{n}" for n in range(length // 4))
    platform = Strict(Ability.NONE, random.Random(0), 0, longest=longest)
    rig = Rig(platform, instead=instead)
    rig.want([WantedPart("b", 0, content(text), final=True), WantedPart("b", 1, content("the end"), final=True)])
    rig.settle()
    assert " ".join(rig.texts).split() == [*text.split(), "the", "end"]
    rig.want([WantedPart("b", 0, content(text), final=True), WantedPart("b", 1, content("the end"), final=True)])
    assert next_step(rig.parts.values(), Ability.NONE, FREE, 0) == LookLater(None), "it is not put together again"


def test_a_message_that_became_too_long_keeps_its_beginning_in_it() -> None:
    rig, _ = part_of(content("short"), final=False)
    rig.settle()
    rig.platform = Strict(Ability.NONE, random.Random(0), 0, longest=300, shown=rig.platform.shown, made=1)
    text = " ".join(f"w{n}" for n in range(120))
    rig.want([WantedPart("b", 0, content(text), final=True)])
    rig.settle()
    assert " ".join(rig.texts).split() == text.split()
    assert "1" in rig.platform.shown, "the first message was edited"


# ---------------------------------------------------------------------- answers that nobody can read

UNREADABLE = CallFailed(Fate.UNKNOWN, "no answer that makes sense", cause=Cause.UNREADABLE)


@pytest.mark.parametrize("ability", list(Ability))
def test_what_cannot_be_understood_has_a_bound_of_tries(ability: Ability) -> None:
    _, part = part_of(content("x"))
    tries = 0
    while part.open:
        part = begun(part, 0, repeated=tries > 0)
        tries += 1
        (part,) = failed(part, UNREADABLE, ability, creating=True, now=1, share=0)
    assert part.row.state is DeliveryState.FAILED
    assert tries == (2 if ability is Ability.NONE else MOST_UNREADABLE)
    assert part.row.cause == UNREADABLE.words


@pytest.mark.parametrize("ability", list(Ability))
def test_what_a_page_answers_may_have_been_made_and_is_made_twice_at_most_where_nobody_can_tell(
    ability: Ability,
) -> None:
    _, part = part_of(content("x"))
    page = CallFailed(Fate.UNKNOWN, "a proxy answered", cause=Cause.SHIELDED)
    tries = 0
    while part.open:
        part = begun(part, 0, repeated=tries > 0)
        tries += 1
        (part,) = failed(part, page, ability, creating=True, now=1, share=0)
    assert tries == (2 if ability is Ability.NONE else MOST_SHIELDED)


@pytest.mark.parametrize("creating", [True, False])
def test_what_a_firewall_takes_amiss_is_not_tried_for_ever_and_never_labelled(creating: bool) -> None:
    _, part = part_of(content("x"))
    error = CallFailed(Fate.NOT_SENT, "a firewall answered", cause=Cause.SHIELDED)
    tries = 0
    while part.open and tries < 2 * MOST_SHIELDED:
        part = begun(part, 0, repeated=False) if creating else part
        tries += 1
        (part, *_) = failed(part, error, Ability.NONE, creating=creating, now=1, share=0)
        assert not part.row.labelled
    assert tries == MOST_SHIELDED
    assert (part.row.state, part.row.cause) == (DeliveryState.FAILED, error.words)


@pytest.mark.parametrize("creating", [True, False])
def test_a_pause_that_a_platform_asks_for_uses_up_no_try(creating: bool) -> None:
    _, part = part_of(content("x"))
    part = replace(part, row=replace(part.row, attempt=2))
    for _ in range(3):
        tried = begun(part, 0, repeated=False) if creating else part
        (part,) = failed(
            tried, CallFailed(Fate.TOO_FAST, "slower", retry_after=1), Ability.NONE, creating=creating, now=1, share=0
        )
        assert (part.row.state, part.row.attempt) == (DeliveryState.WANTED, 2)


def test_with_a_key_what_was_not_understood_is_looked_up() -> None:
    _, part = part_of(content("x"))
    looked: list[bool] = []
    while part.open:
        step = next_step([replace(part, row=replace(part.row, retry_at=None))], Ability.KEYED, FREE, 0)
        assert isinstance(step, Create)
        looked.append(step.look_up)
        (part,) = failed(
            begun(part, 0, repeated=step.repeated), UNREADABLE, Ability.KEYED, creating=True, now=1, share=0
        )
    assert any(looked)


def test_an_edit_that_cannot_be_understood_is_sent_anew_at_last() -> None:
    rig, part = part_of(content("the preview"), final=False)
    rig.settle()
    rig.want([WantedPart("b", 0, content("the answer"), final=True)])
    made = [rig.parts[part.name]]
    for number in range(1, MOST_UNREADABLE + 1):
        made = failed(made[0], UNREADABLE, Ability.NONE, creating=False, now=1, share=0)
        assert (len(made) == 2) == (number == MOST_UNREADABLE)
    assert made[0].row.labelled, "it may be there twice"
    for one in made:
        rig.put(one)
    rig.settle()
    assert rig.texts == ["the answer"], "the old message goes when the new one is there"


@pytest.mark.parametrize("ability", list(Ability))
def test_edits_that_can_never_be_understood_end_in_one_new_message(ability: Ability) -> None:
    class Odd(Platform):
        def edit(self, platform_id: str, text: str) -> None:
            super().edit(platform_id, text)
            raise UNREADABLE

    rig = Rig(Odd(ability, random.Random(0), faults=0), instead=instead)
    rig.want([WantedPart("b", 0, content("the preview"), final=False)])
    rig.settle()
    rig.want(
        [WantedPart("b", 0, content("the answer"), final=True), WantedPart("b", 1, content("the next"), final=True)]
    )
    rig.settle()
    assert rig.platform.made <= 3
    assert sorted(rig.texts) == ["the answer", "the next"]
    assert not any(part.open for part in rig.parts.values())


def test_what_can_be_understood_of_no_message_is_sent_anew_so_many_times_and_then_has_failed() -> None:
    """Else a chat whose platform answers oddly gets the same answer again and again."""
    rig, part = part_of(content("the answer"), final=True)
    rig.settle()
    made = [rig.parts[part.name]]
    for times in range(MOST_ANEW + 1):
        stands = replace(made[0].row, platform_id=f"m{times}", state=DeliveryState.WANTED, attempt=0)
        made = [replace(made[0], row=stands)]
        while len(made) == 1 and made[0].open:
            made = failed(made[0], UNREADABLE, Ability.KEYED, creating=False, now=1, share=0)
        assert (len(made), made[0].row.state) == (
            (1, DeliveryState.FAILED) if times == MOST_ANEW else (2, DeliveryState.WANTED)
        )


def test_a_message_that_is_found_to_be_the_answer_after_all_stays() -> None:
    rig, part = part_of(content("the preview"), final=False)
    rig.settle()
    rig.want([WantedPart("b", 0, content("the answer"), final=True)])
    made = [rig.parts[part.name]]
    while len(made) == 1:
        made = failed(made[0], UNREADABLE, Ability.KEYED, creating=False, now=1, share=0)
    old = made[1].row.platform_id
    found = settled(made[0], old or "", made[0].content, Ability.KEYED, 1)
    step = next_step([found, made[1]], Ability.KEYED, FREE, 1)
    assert isinstance(step, Delete)
    assert step.leave


@pytest.mark.parametrize("what", ["delete", "preview"])
def test_what_nobody_misses_is_given_up(what: str) -> None:
    rig, part = part_of(content("x"), final=False)
    rig.settle()
    rig.want([] if what == "delete" else [WantedPart("b", 0, content("xy"), final=False)])
    part = rig.parts[part.name]
    for _ in range(MOST_UNREADABLE):
        (part,) = failed(part, UNREADABLE, Ability.NONE, creating=False, now=1, share=0)
    assert part.row.state is (DeliveryState.SKIPPED if what == "delete" else DeliveryState.FAILED)


# ---------------------------------------------------------------------- nothing is kept back for long


def two(*, grows: bool = False) -> tuple[Part, Part]:
    rig = Rig(Platform(Ability.NONE, random.Random(0), faults=0))
    rig.want([WantedPart("b", 0, content("one"), final=True), WantedPart("b", 1, content("two"), final=True)])
    one, other = rig.parts.values()
    if grows:
        one = replace(one, row=replace(one.row, platform_id=f"{GROWS}7"))
    return one, other


@given(st.integers(0, 10**7), st.integers(0, 300_000))
def test_what_fails_for_longer_than_a_minute_keeps_nothing_back(since: int, left: int) -> None:
    one, other = two()
    pauses = {one.name: PartFailure(left, late=True, since=since)}
    step = next_step([one, other], Ability.NONE, FREE, 0, None, pauses)
    assert isinstance(step, Create)
    # It is tried once more before something goes past it; then that goes.
    assert step.part == (one if left == 0 or since >= PROBE_MS else other)


@given(st.integers(1, 300_000))
def test_before_that_the_order_is_kept(left: int) -> None:
    one, other = two()
    assert next_step([one, other], Ability.NONE, FREE, 0, None, {one.name: PartFailure(left)}) == LookLater(left)


def test_what_is_only_looked_for_keeps_nothing_back() -> None:
    one, other = two()
    lost = replace(one, row=replace(one.row, gone=True, state=DeliveryState.UNKNOWN))
    pauses = {one.name: PartFailure(10_000)}
    step = next_step([lost, other], Ability.LOOK_UP, FREE, 0, None, pauses)
    assert isinstance(step, Create | Edit)
    assert step.part == other
    assert BLOCKS_MS == 60_000


def test_what_cannot_be_cut_is_not_sent_again_as_it_is() -> None:
    long = content("x" * (2 * SMALLEST_UNITS))
    assert in_more_parts(long, lambda body, _: [body], replies=False) == ()
    assert in_more_parts(content("x" * (SMALLEST_UNITS - 1)), lambda body, _: [body, body], replies=False) == ()


def test_of_pieces_the_first_replies_and_the_last_can_be_pressed() -> None:
    long = replace(content("x" * SMALLEST_UNITS), reply_to="m", buttons=(Button("Why", "why:t"),), feedback="t")
    for replies in (True, False):
        found = in_more_parts(long, lambda body, _: [body, Styled(""), body, body], replies=replies)
        assert [one.reply_to for one in found] == ["m", *["m" if replies else ""] * 2]
        assert [bool(one.buttons) for one in found] == [bool(one.feedback) for one in found] == [False, False, True]


@pytest.mark.parametrize("fate", [Fate.UNKNOWN, Fate.NOT_SENT])
@pytest.mark.parametrize("creating", [True, False])
def test_only_what_may_have_been_created_is_looked_for_and_what_may_have_grown_is_not_known(
    fate: Fate, creating: bool
) -> None:
    _, part = part_of(content("a"))
    part = replace(part, there=Flow("so far"), row=replace(part.row, platform_id=None if creating else "m1"))
    (made,) = failed(part, CallFailed(fate, "x"), Ability.LOOK_UP, creating=creating, now=1, share=0)
    unknown = creating and fate is Fate.UNKNOWN
    assert made.row.state is (DeliveryState.UNKNOWN if unknown else DeliveryState.WANTED)
    assert (made.there is None) == (fate is Fate.UNKNOWN)


def test_a_part_that_is_sent_from_chat_to_chat_comes_to_its_end() -> None:
    _, part = part_of(content("a"))
    for _ in range(MOST_MOVES):
        (part,) = refused(part, Cause.MOVED, creating=True)
        assert part.row.state is DeliveryState.WANTED
    (part,) = refused(part, Cause.MOVED, creating=True)
    assert part.row.state is DeliveryState.FAILED


def test_what_stands_behind_a_lost_message_and_is_of_another_turn_stays_where_it_is() -> None:
    before = settled(begun(part_of(content("one"))[1], 0, repeated=False), "1", content("one"), Ability.KEYED, 0)
    other = new_part(WantedPart("b", 0, content("two"), final=True), "telegram/1/2/", "another", 9)
    other = settled(other, "2", content("two"), Ability.KEYED, 0)
    mine = new_part(WantedPart("b", 1, content("three"), final=True), "telegram/1/2/", before.row.origin, 8)
    mine = settled(mine, "3", content("three"), Ability.KEYED, 0)
    lost = refused(before, Cause.NO_MESSAGE, creating=False)
    made = behind(before, lost, [before, other, mine], 5)
    assert {one.row.origin for one in made} == {before.row.origin}


def test_a_bot_that_is_not_let_in_waits_before_it_tries_again() -> None:
    _, part = part_of(content("one"))
    (after,) = failed(
        begun(part, 0, repeated=False), CallFailed(Fate.REFUSED, "no", cause=Cause.NOT_LET_IN), Ability.KEYED,
        creating=True, now=1_000, share=0.5,
    )  # fmt: skip
    assert (after.row.state, after.row.retry_at) == (DeliveryState.WANTED, 1_000 + NOT_LET_IN_MS)
