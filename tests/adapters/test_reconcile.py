"""The laws of reconciling, on a platform that fails in every way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import GROWS, Ability, Button, CallFailed, Cause, Content, ContentKind, Fate, Flow, Traits
from adapters.contract.contents import decode
from adapters.contract.pacing import Urgency
from adapters.delivery.aftermath import Instead, behind, failed, nothing
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import (
    Create,
    Delete,
    Edit,
    FinishGrowing,
    GrowBy,
    LookLater,
    Name,
    Part,
    begun,
    finished,
    joined,
    loaded,
    moved,
    new_part,
    next_step,
    plan,
    removed,
    sent_by,
    settled,
    ungrown,
)
from adapters.text.styled import Styled
from agent_core.store.deliveries.rows import DeliveryState
from tests.examples import MANY

FREE = dict.fromkeys(Urgency, 0)


def content(text: str, kind: ContentKind = ContentKind.TEXT) -> Content:
    return Content(kind, Styled(text))


@dataclass
class Platform:
    """Messages on a screen, with faults by a seed."""

    ability: Ability
    chance: random.Random
    faults: float = 0.4
    shown: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Platform id → (key, text), in the order of creation."""
    labelled: set[str] = field(default_factory=set[str])
    made: int = 0
    growing: set[str] = field(default_factory=set[str])
    """Messages that take more; people stop some of them."""

    def _fate(self, idempotent: bool) -> None:
        roll = self.chance.random()
        if roll > self.faults:
            return
        kind = self.chance.choice(("not_sent", "too_fast", "unknown"))
        if kind == "not_sent":
            raise CallFailed(Fate.NOT_SENT, "refused")
        if kind == "too_fast":
            raise CallFailed(Fate.TOO_FAST, "429", retry_after=1)
        if idempotent or self.chance.random() < 0.5:
            raise CallFailed(Fate.UNKNOWN, "lost")
        raise Lost

    def create(self, key: str, text: str, *, repeated: bool, grows: bool = False) -> str:
        lost = False
        try:
            self._fate(False)
        except Lost:
            lost = True
        known = next((i for i, (k, _) in self.shown.items() if k == key), None)
        if known is not None and self.ability is Ability.KEYED:
            found = known
        else:
            self.made += 1
            found = str(self.made)
            self.shown[found] = (key, text)
            if grows:
                self.growing.add(found)
            if repeated:
                self.labelled.add(found)
        if lost:
            raise CallFailed(Fate.UNKNOWN, "the answer was lost")
        return found

    def find(self, key: str) -> str | None:
        found = next((i for i, (k, _) in self.shown.items() if k == key), None)
        return GROWS + found if found in self.growing else found

    def start(self, key: str, text: str) -> str:
        return GROWS + self.create(key, text, repeated=False, grows=True)

    def _takes(self, platform_id: str) -> str:
        number = platform_id.removeprefix(GROWS)
        if self.chance.random() < self.faults / 4:
            self.growing.discard(number)
        if number not in self.growing:
            raise CallFailed(Fate.REFUSED, "not in streaming state", cause=Cause.NOT_GROWING)
        return number

    def append(self, platform_id: str, more: str) -> None:
        """Not idempotent: what is lost may have been done."""
        number = self._takes(platform_id)
        lost = False
        try:
            self._fate(False)
        except Lost:
            lost = True
        key, text = self.shown[number]
        self.shown[number] = (key, text + more)
        if lost:
            raise CallFailed(Fate.UNKNOWN, "the answer was lost")

    def finish(self, platform_id: str, more: str) -> None:
        if self.chance.random() < self.faults / 4 and platform_id.removeprefix(GROWS) in self.growing:
            self.append(platform_id, more)
            self.growing.discard(platform_id.removeprefix(GROWS))
            raise CallFailed(Fate.UNKNOWN, "the answer was lost")
        self.append(platform_id, more)
        self.growing.discard(platform_id.removeprefix(GROWS))

    def edit(self, platform_id: str, text: str) -> None:
        assert platform_id not in self.growing, "a message that grows cannot be edited"
        self._fate(True)
        if platform_id not in self.shown:
            raise CallFailed(Fate.REFUSED, "gone", cause=Cause.NO_MESSAGE)
        self.shown[platform_id] = (self.shown[platform_id][0], text)

    def delete(self, platform_id: str) -> None:
        assert platform_id not in self.growing, "a message that grows cannot be deleted"
        self._fate(True)
        self.shown.pop(platform_id, None)


def flow(content: Content, final: bool) -> Flow:
    """Text in a markup of its own: what may go on is not closed."""
    return Flow(content.body.text + ("." if final else ""))


class Lost(Exception):
    """It was done, and the answer is lost."""


@dataclass
class Rig:
    platform: Platform
    streams: bool = False
    parts: dict[Name, Part] = field(default_factory=dict[Name, Part])
    now: int = 0
    place: int = 1
    instead: Instead = nothing
    traits: Traits = field(default_factory=lambda: Traits(drafts=False))

    def want(self, wanted: Sequence[WantedPart], origin: str = "t1") -> None:
        for part in plan(self.parts, wanted, "s", origin, self.place, traits=self.traits):
            self.parts[part.name] = part
            self.place = max(self.place, part.row.place + 1)

    def put(self, part: Part) -> None:
        self.parts[part.name] = part

    def step(self, *, dies: bool = False) -> bool:
        """One step; False if there is nothing to do. With `dies`, the process is killed after the call, before it is stored."""
        flows = flow if self.streams else None
        step = next_step(self.parts.values(), self.platform.ability, FREE, self.now, flows)
        match step:
            case LookLater(ms):
                if ms is None:
                    return False
                self.now += ms
            case Create(part):
                part = begun(part, self.now, repeated=step.repeated)
                self.put(part)
                self._call(part, step, creating=True, dies=dies)
            case Edit(part) | Delete(part) | GrowBy(part) | FinishGrowing(part):
                self._call(part, step, creating=False, dies=dies)
        if dies:
            self.parts = {name: replace(loaded(part), there=None) for name, part in self.parts.items()}
        return True

    def _call(
        self, part: Part, step: Create | Edit | GrowBy | FinishGrowing | Delete, *, creating: bool, dies: bool
    ) -> None:
        ability = self.platform.ability
        try:
            if isinstance(step, Create):
                found = self.platform.find(part.row.key) if step.look_up else None
                text = part.content.body.text
                if step.look_up and found is None and part.row.gone:
                    self.put(removed(part, self.now))
                    return
                if step.first is not None:
                    made = self.platform.start(part.row.key, step.first.text)
                else:
                    made = found or self.platform.create(part.row.key, text, repeated=step.repeated)
                done = settled(part, made, sent_by(step, ability, self.traits), ability, self.now, step.first)
            elif isinstance(step, GrowBy):
                assert part.row.platform_id is not None
                assert part.there is not None
                if step.more:
                    self.platform.append(part.row.platform_id, step.more.text)
                done = settled(part, part.row.platform_id, part.content, ability, self.now, part.there + step.more)
            elif isinstance(step, FinishGrowing):
                assert part.row.platform_id is not None
                self.platform.finish(part.row.platform_id, step.more.text if step.more is not None else "")
                done = finished(part, part.content if step.more is not None else None, ability, self.now)
            elif isinstance(step, Edit):
                assert part.row.platform_id is not None
                self.platform.edit(part.row.platform_id, part.content.body.text)
                done = settled(part, part.row.platform_id, part.content, ability, self.now)
            else:
                if part.row.platform_id is not None and not step.leave:
                    self.platform.delete(part.row.platform_id)
                done = removed(part, self.now)
        except CallFailed as error:
            done, *others = failed(
                part, error, ability, creating=creating, now=self.now, share=0.5, instead=self.instead
            )
            follow = behind(part, [done, *others], self.parts.values(), self.now)
            for other in (*others, *follow) if not dies else ():
                self.put(other)
        if not dies:
            self.put(done)

    def settle(self) -> None:
        for _ in range(2_000):
            if not self.step():
                return
        raise AssertionError("it never ends")

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.platform.shown.values()]


TEXTS = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4)
HISTORIES = st.lists(TEXTS, min_size=1, max_size=6)


def wanted_of(texts: Sequence[str], *, final: bool, status: str = "") -> list[WantedPart]:
    listed = [WantedPart("b", i, content(text), final=final) for i, text in enumerate(texts)]
    if status:
        listed.append(WantedPart("status", 0, content(status, ContentKind.STATUS), final=False, fleeting=True))
    return listed


@MANY
@given(HISTORIES, st.sampled_from(Ability), st.integers(0, 2**32), st.data())
def test_at_last_the_surface_shows_what_is_wanted_in_order(
    history: list[list[str]], ability: Ability, seed: int, data: st.DataObject
) -> None:
    rig = Rig(Platform(ability, random.Random(seed)))
    for texts in history[:-1]:
        rig.want(wanted_of(texts, final=False, status=data.draw(st.sampled_from(["", "busy"]))))
        for _ in range(data.draw(st.integers(0, 5))):
            rig.step(dies=data.draw(st.booleans()) and data.draw(st.booleans()))
    rig.want(wanted_of(history[-1], final=True))
    rig.settle()
    assert all(part.row.state in (DeliveryState.SENT, DeliveryState.SKIPPED) for part in rig.parts.values())
    standing = {part.row.platform_id: part.content.body.text for part in rig.parts.values() if part.row.platform_id}
    for platform_id, (_, text) in rig.platform.shown.items():
        if platform_id in standing:
            assert text == standing[platform_id]
    mine = [part for part in rig.parts.values() if part.row.platform_id and not part.row.gone]
    order = [
        int(part.row.platform_id or 0) for part in sorted(mine, key=lambda p: p.row.place) if part.row.bubble == "b"
    ]
    assert len(order) == len(history[-1])
    if ability is not Ability.NONE:
        assert sorted(rig.texts) == sorted(history[-1]), "nothing is there twice, nothing is missing"


GROWTH = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=6)


@MANY
@given(GROWTH, st.booleans(), st.booleans(), st.integers(0, 2**32), st.data())
def test_what_grows_ends_in_the_final_text(
    pieces: list[str],
    extends: bool,
    more_streams: bool,
    seed: int,
    data: st.DataObject,
) -> None:
    rig = Rig(Platform(Ability.LOOK_UP, random.Random(seed)), streams=True)
    text = ""
    for number, piece in enumerate(pieces):
        text = text + piece if extends or number % 2 else piece
        rig.want(wanted_of([text], final=False, status=data.draw(st.sampled_from(["", "busy"]))))
        for _ in range(data.draw(st.integers(0, 5))):
            rig.step(dies=data.draw(st.booleans()) and data.draw(st.booleans()))
        rig.streams = rig.streams and (more_streams or number < 2)
    rig.want(wanted_of([text], final=True))
    rig.settle()
    assert not rig.platform.growing, "nothing is left open"
    assert [one.rstrip(".") for one in rig.texts] == [text]
    assert all(part.row.state in (DeliveryState.SENT, DeliveryState.SKIPPED) for part in rig.parts.values())
    assert not any(part.grows for part in rig.parts.values() if not part.row.gone)


def test_of_several_tries_nobody_knows_which_one_is_shown() -> None:
    rig = Rig(Platform(Ability.LOOK_UP, random.Random(0), faults=0))
    rig.want(wanted_of(["a"], final=True))
    (first,) = rig.parts.values()
    once = begun(first, 0, repeated=False)
    sent = Create(once, repeated=True, look_up=True)
    assert sent_by(sent, Ability.LOOK_UP, rig.traits) == first.content
    twice = begun(once, 0, repeated=True)
    assert sent_by(replace(sent, part=twice), Ability.LOOK_UP, rig.traits) is None


@pytest.mark.parametrize("ability", [Ability.KEYED, Ability.LOOK_UP])
def test_what_an_earlier_process_sent_is_found_and_then_edited(ability: Ability) -> None:
    """Its call had an unknown outcome, more was said since, and the first try of this process came to nothing."""
    part = plan({}, wanted_of(["there."], final=False), "s", "t", 1)[0]
    row = begun(part, 5, repeated=False).row
    part = loaded(Part(row, part.content))
    part = plan({part.name: part}, wanted_of(["there. is more"], final=True), "s", "t", 2)[0]
    for outcome in (None, "b1"):
        step = next_step([part], ability, dict.fromkeys(Urgency, 0), 10)
        assert isinstance(step, Create)
        part = begun(step.part, 10, repeated=step.repeated)
        if outcome is None:
            refused = CallFailed(Fate.TOO_FAST, "too fast")
            part = failed(part, refused, ability, creating=True, now=11, share=0.0)[0]
            part = replace(part, row=replace(part.row, retry_at=None))
        else:
            sent = sent_by(step, ability, Traits(drafts=False))
            part = settled(part, outcome, sent, ability, 12)
    assert part.row.state is DeliveryState.WANTED, "it shows what was there before"
    assert isinstance(next_step([part], ability, dict.fromkeys(Urgency, 0), 20), Edit)


def test_what_grows_is_never_edited_if_nothing_goes_wrong() -> None:
    rig = Rig(Platform(Ability.LOOK_UP, random.Random(0), faults=0), streams=True)
    for text, final in (("a", False), ("ab", False), ("abc", True)):
        rig.want(wanted_of([text], final=final))
        rig.settle()
        assert rig.texts == [text + ("." if final else "")]
    assert rig.platform.made == 1


def test_the_same_text_that_has_become_final_is_finished() -> None:
    rig = Rig(Platform(Ability.LOOK_UP, random.Random(0), faults=0), streams=True)
    rig.want(wanted_of(["a"], final=False))
    rig.settle()
    assert rig.platform.growing
    rig.want(wanted_of(["a"], final=True))
    rig.settle()
    assert not rig.platform.growing
    assert rig.texts == ["a."]


@MANY
@given(TEXTS, st.integers(0, 2**32))
def test_without_means_a_double_is_always_labelled(texts: list[str], seed: int) -> None:
    rig = Rig(Platform(Ability.NONE, random.Random(seed)))
    rig.want(wanted_of(texts, final=True))
    rig.settle()
    by_key: dict[str, list[str]] = {}
    for platform_id, (key, _) in rig.platform.shown.items():
        by_key.setdefault(key, []).append(platform_id)
    for ids in by_key.values():
        assert sum(one not in rig.platform.labelled for one in ids) <= 1


@MANY
@given(st.lists(TEXTS, min_size=2, max_size=4), st.sampled_from(Ability), st.integers(0, 2**32))
def test_turns_come_one_after_the_other(turns: list[list[str]], ability: Ability, seed: int) -> None:
    rig = Rig(Platform(ability, random.Random(seed)))
    for number, texts in enumerate(turns):
        rig.want(
            [
                replace(w, content=content(f"{number}:{i}:{texts[i]}"))
                for i, w in enumerate(wanted_of(texts, final=True))
            ],
            f"t{number}",
        )
    rig.settle()
    first_seen = list(dict.fromkeys(rig.texts))
    assert first_seen == [f"{n}:{i}:{t}" for n, texts in enumerate(turns) for i, t in enumerate(texts)]


def test_the_status_is_always_last_and_goes() -> None:
    rig = Rig(Platform(Ability.KEYED, random.Random(0), faults=0))
    rig.want(wanted_of([], final=False, status="busy"))
    rig.settle()
    assert rig.texts == ["busy"]
    rig.want(wanted_of(["a"], final=True, status="busier"))
    rig.settle()
    assert rig.texts == ["a", "busier"]
    rig.want(wanted_of(["a"], final=True))
    rig.settle()
    assert rig.texts == ["a"]


def test_an_edited_part_keeps_its_identity() -> None:
    rig = Rig(Platform(Ability.NONE, random.Random(0), faults=0))
    for text in ("a", "ab", "abc"):
        rig.want(wanted_of([text], final=text == "abc"))
        rig.settle()
    assert rig.texts == ["abc"]
    assert rig.platform.made == 1


@pytest.mark.parametrize(
    ("cause", "state"),
    [
        (Cause.BLOCKED, DeliveryState.FAILED),
        (Cause.NO_RIGHTS, DeliveryState.FAILED),
        (Cause.FILE, DeliveryState.FAILED),
        (Cause.NOT_LET_IN, DeliveryState.WANTED),
        (Cause.MOVED, DeliveryState.WANTED),
        (Cause.NO_THREAD, DeliveryState.WANTED),
    ],
)
def test_what_is_refused_for_good_fails_with_its_cause(cause: Cause, state: DeliveryState) -> None:
    rig = Rig(Platform(Ability.NONE, random.Random(0), faults=0))
    rig.want(wanted_of(["a"], final=True))
    part = begun(next(iter(rig.parts.values())), 0, repeated=False)
    error = CallFailed(Fate.REFUSED, "the platform's words", cause=cause)
    (after,) = failed(part, error, Ability.NONE, creating=True, now=0, share=0)
    assert after.row.state is state
    assert after.row.cause in ("the platform's words", cause.value)


def test_a_refused_form_goes_plain_once() -> None:
    rig = Rig(Platform(Ability.NONE, random.Random(0), faults=0))
    rig.want(wanted_of(["a"], final=True))
    error = CallFailed(Fate.REFUSED, "can't parse", cause=Cause.FORM)
    (once,) = failed(
        begun(next(iter(rig.parts.values())), 0, repeated=False), error, Ability.NONE, creating=True, now=0, share=0
    )
    assert once.row.plain
    assert once.row.state is DeliveryState.WANTED
    (twice,) = failed(begun(once, 0, repeated=False), error, Ability.NONE, creating=True, now=0, share=0)
    assert twice.row.state is DeliveryState.FAILED


def test_what_must_be_seen_goes_before_cosmetics() -> None:
    rig = Rig(Platform(Ability.NONE, random.Random(0), faults=0))
    rig.want([WantedPart("a", 0, content("x"), final=False)])
    rig.settle()
    rig.want(
        [
            WantedPart("a", 0, content("xy"), final=False),
            WantedPart("n", 0, content("notice", ContentKind.NOTICE), final=True),
        ]
    )
    step = next_step(rig.parts.values(), Ability.NONE, FREE, 0)
    assert isinstance(step, Create)
    assert step.part.content.body.text == "notice"


def test_a_final_waits_for_its_gate_and_cosmetics_do_not_slip_by() -> None:
    rig = Rig(Platform(Ability.NONE, random.Random(0), faults=0))
    rig.want(wanted_of(["a"], final=True))
    step = next_step(rig.parts.values(), Ability.NONE, dict.fromkeys(Urgency, 700), 0)
    assert step == LookLater(700)


def test_a_status_that_is_over_goes_before_what_is_said_instead() -> None:
    status = new_part(WantedPart("status", 0, Content(ContentKind.STATUS, Styled("⏳")), final=False), "s", "t", 0)
    status = replace(status, row=replace(status.row, platform_id="1", gone=True))
    said = new_part(WantedPart("a", 0, Content(ContentKind.TEXT, Styled("It is done.")), final=True), "s", "t", 1)
    waits = {Urgency.COSMETIC: 5_000, Urgency.STATUS: 5_000, Urgency.FINAL: 0}
    assert isinstance(next_step([said, status], Ability.NONE, waits, 0), Delete)


def test_a_status_that_comes_back_is_another_message_than_the_one_that_went() -> None:
    rig = Rig(Platform(Ability.KEYED, random.Random(0), faults=0))
    for words in ("busy", "busier", "busiest"):
        rig.want(wanted_of([], final=False, status=words))
        rig.settle()
        rig.want(wanted_of(["a"], final=False))
        rig.settle()
        rig.want(wanted_of([], final=False))
        rig.settle()
    numbers = sorted(name[2] for name in rig.parts if name[1] == "status")
    assert numbers == list(range(3))
    keys = [part.row.key for name, part in rig.parts.items() if name[1] == "status"]
    assert len(set(keys)) == 3, "a platform that knows keys would take it for the old one"


def test_what_cannot_grow_here_is_created_as_if_it_had_never_been_tried() -> None:
    rig = Rig(Platform(Ability.NONE, random.Random(0), faults=0))
    rig.want(wanted_of(["a"], final=True))
    (part,) = rig.parts.values()
    tried = begun(part, 5, repeated=False)
    back = ungrown(replace(tried, row=replace(tried.row, retry_at=9)))
    assert (back.row.state, back.row.retry_at, back.row.attempt, back.tried) == (DeliveryState.WANTED, None, 0, None)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.booleans(), st.sampled_from(Ability))
def test_a_try_once_more_is_of_when_it_was_tried_first_and_what_is_there_has_its_label_only_where_it_may_be_there_twice(
    first: int, later: int, repeated: bool, ability: Ability
) -> None:
    part = plan({}, wanted_of(["a"], final=True), "s", "t", 1)[0]
    tried = begun(part, first, repeated=False)
    again = begun(tried, first + later, repeated=repeated)
    assert tried.row.sending_at == first
    assert again.row.sending_at == (first if repeated else first + later)
    done = settled(again, "m", again.content, ability, first + later)
    assert done.row.labelled == (repeated and ability is Ability.NONE)


def asked(**more: object) -> Part:
    """A question that stands in chat 5, and is part of chat -9 by now."""
    buttons = (Button("Approve", "approve:t1:x"),)
    question = replace(content("may I?", ContentKind.APPROVAL), buttons=buttons)
    part = new_part(WantedPart("b", 0, question, final=True), "telegram/1/5/", "t1", 1)
    row = replace(part.row, state=DeliveryState.SENT, platform_id="3", surface="telegram/1/-9/")
    return replace(part, row=replace(row, **more))


def step_of(part: Part) -> object:
    return next_step([part], Ability.NONE, FREE, 0)


def test_no_message_of_the_chat_that_was_is_changed_in_the_chat_that_is() -> None:
    stands = asked()
    assert (
        plan({stands.name: stands}, [WantedPart("b", 0, stands.content, final=True)], "telegram/1/-9/", "t1", 2) == []
    )
    for text, state in (("approved", DeliveryState.WANTED), ("", DeliveryState.SKIPPED)):
        wanted = [WantedPart("b", 0, content(text, ContentKind.APPROVAL), final=True)] if text else []
        (changed,) = plan({stands.name: stands}, wanted, "telegram/1/-9/", "t1", 2)
        step = step_of(changed)
        assert step == Delete(changed, leave=True), "message 3 is another one there"
        left = removed(changed, 0)
        assert (left.row.state, left.row.platform_id) == (state, None)
        assert left.row.key == "telegram/1/-9//t1/b/0"
        if text:
            assert step_of(left) == Create(left)
            sent = settled(begun(left, 0, repeated=False), "3", left.content, Ability.NONE, 0)
            (again,) = plan(
                {sent.name: sent},
                [WantedPart("b", 0, content("more", ContentKind.APPROVAL), final=True)],
                "telegram/1/-9/",
                "t1",
                2,
            )
            assert step_of(again) == Edit(again), "this message 3 is ours"


def test_what_is_sent_has_a_key_of_the_chat_that_it_is_sent_to() -> None:
    waits = asked(state=DeliveryState.WANTED, platform_id=None)
    assert begun(waits, 0, repeated=False).row.key == "telegram/1/-9//t1/b/0"


def test_nothing_replies_to_a_number_of_the_chat_that_was_and_what_a_message_replies_to_is_no_change() -> None:
    reply = replace(content("said"), reply_to="2")
    waits = new_part(WantedPart("b", 0, reply, final=True), "telegram/1/5/", "t1", 1)
    assert moved(waits, "telegram/1/-9/").content.reply_to == ""
    stored = replace(waits, row=replace(waits.row, surface="telegram/1/-9/"))
    assert loaded(stored).content.reply_to == "", "the next process sends it"
    assert loaded(waits).content.reply_to == "2"
    both = joined(loaded(stored), replace(waits, content=replace(reply, body=Styled("more"))))
    assert (both.content.reply_to, both.content.body.text) == ("", "more")
    stands = replace(waits, row=replace(waits.row, state=DeliveryState.SENT, platform_id="3"))
    there = moved(stands, "telegram/1/-9/")
    assert plan({there.name: there}, [WantedPart("b", 0, content("said"), final=True)], "telegram/1/-9/", "t1", 2) == []
    (changed,) = plan({there.name: there}, [WantedPart("b", 0, content("more"), final=True)], "telegram/1/-9/", "t1", 2)
    anew = removed(changed, 0)
    assert (anew.content.reply_to, decode(anew.row.want).reply_to, anew.content.body.text) == ("", "", "more")


def test_what_waits_for_an_answer_is_asked_anew_where_the_chat_is_now() -> None:
    assert loaded(asked()).row.state is DeliveryState.WANTED
    told = asked()
    decided = replace(told, content=replace(told.content, buttons=()))
    here = replace(told, row=replace(told.row, surface="telegram/1/5/"))
    for stands in (decided, asked(gone=True), here):
        assert loaded(stands).row.state is DeliveryState.SENT


def test_what_is_below_others_stays_and_goes_with_the_part_at_their_top_however_deep_it_is() -> None:
    """A part that was sent in more parts, of which one was refused for its length once more."""
    surface, top = "telegram/1/5/", WantedPart("b", 0, content("long"), final=True)
    names = ("b", 0), ("b>0", 1), ("b>0>1", 2), ("b>0>1>2", 3)
    parts = [new_part(replace(top, bubble=bubble, part=number), surface, "t1", 1) for bubble, number in names]
    there = {
        one.name: replace(one, row=replace(one.row, state=DeliveryState.SENT, platform_id=str(number)))
        for number, one in enumerate(parts)
    }
    assert plan(there, [top], surface, "t1", 2) == []
    changed = plan(there, [replace(top, content=content("other"))], surface, "t1", 2)
    assert {one.name[1:]: one.row.gone for one in changed} == {name: name != ("b", 0) for name in names}
