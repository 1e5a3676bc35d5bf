"""Exports of journals: what comes back is what went out, and a redacted one holds nobody's words and is decided alike."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures.exits import ExitCode
from agent_core.failures.known import Known
from agent_core.failures.remedies import Remedy
from agent_core.journal.export import Head, Letters, UnreadableExport, _Redacting, dump, load, redacted
from agent_core.journal.replay import replay
from agent_core.journal.rows import decode, encode
from agent_core.messages import InputMessage
from agent_core.rules.consents import Kind
from agent_core.rules.replies import arguments_state
from agent_core.settings import Route
from agent_core.turn.effects import EndTurn
from agent_core.turn.events import (
    CallBroke,
    LoopFound,
    OverlapFound,
    RemedyChosen,
    TakenOver,
    TextArrived,
    ToolCallNamed,
    ToolReturned,
    TurnEnded,
)
from agent_core.turn.state import Phase
from tests import examples
from tests.agent_core.journals import Writer, journals, rows_of
from tests.agent_core.test_journal import EXAMPLES
from tests.agent_core.turns import SETTINGS, Rig, opened
from tests.examples import MANY

BASE = replace(SETTINGS, routes=(Route("m1", "h", "k1"), Route("m2", "h2", "k2")), max_steps=5)
KEY = b"0123456789abcdef"
keys = st.binary(min_size=16, max_size=16)
HEAD = Head("t1", "1.0", "answered")


@examples.MANY
@given(journals(BASE))
def test_an_export_comes_back_as_it_was(writer: Writer):
    rows = writer.rows()
    head, back = load(dump(HEAD, rows))
    assert head == HEAD
    assert back == rows


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "does not say"),
        ("{}\n", "does not say"),
        ('{"outspoken_journal": 1}\n', "lacks turn"),
        ("not json", "Line 1 is not valid JSON"),
        (dump(HEAD, []) + "[]\n", "Line 2 is no JSON object"),
        (dump(HEAD, []) + '{"seq": 0}\n', "Line 2 lacks seq"),
    ],
)
def test_what_is_no_export_is_refused_in_words(text: str, words: str):
    with pytest.raises(UnreadableExport, match=words):
        load(text)


@MANY
@given(journals(BASE), keys)
def test_a_redacted_export_is_decided_alike_or_says_where_it_is_not(writer: Writer, key: bytes):
    rows = writer.rows()
    made, parts_at = redacted(rows, key)
    found = replay(made, redacted=True)
    if parts_at < 0:
        assert found.differences == []
        assert found.turn.exit is not None
        assert writer.turn.exit is not None
        assert found.turn.exit.code is writer.turn.exit.code
    elif not any(isinstance(event, ToolReturned) for event in writer.events):  # else results without an order count
        announcing = ("dispatching", "prüfe", "检查")
        said = "".join(e.text for e in writer.events if isinstance(e, TextArrived))
        went_on = any(  # what is said twice then is told by its letters
            isinstance(e, TakenOver) or (isinstance(e, RemedyChosen) and e.remedy is Remedy.CONTINUE)
            for e in writer.events
        )
        # What is repeated from the middle of a word on has other letters there.
        overlapping = any(isinstance(e, OverlapFound) for e in writer.events)
        assert went_on or overlapping or any(word in said for word in announcing)


SECRETS = (
    "was not found", "example.org", "Dear Ann", "Hello there", "quota", "dispatching", "现在检查", "nonsense", "notes/ann", "Größe",
)  # fmt: skip


@examples.MANY
@given(journals(BASE), keys)
def test_a_redacted_export_holds_nobodys_words(writer: Writer, key: bytes):
    made, _ = redacted(writer.rows(), key)
    text = dump(Head("t1", "1"), made)
    assert not [secret for secret in SECRETS if secret in text]


def test_what_nothing_is_decided_by_is_left_out():
    first = replace(
        opened(BASE),
        input=(
            InputMessage(
                [{"type": "image_url", "image_url": {"url": "data:private"}}, {"type": "text", "text": "Ann"}]
            ),
        ),
        own_history=({"role": "user", "content": "earlier words"},),
        request={"user": "ann@example.org"},
        client_tools=({"type": "function", "function": {"name": "x", "description": "private"}},),
        surface="telegram/bot/4711/",
        consents=(Kind("write_file", (("path", "divorce/…"),)),),
    )
    text = dump(HEAD, redacted(rows_of([first]), KEY)[0])
    assert not [word for word in ("private", "Ann", "earlier", "ann@", "4711", "divorce") if word in text]
    assert "telegram" in text


MARK = "Qxanadu"
STAY = frozenset({
    "ApprovalAsked.call", "CallSettled.call", "ChangeShown.call", "LoopFound.call", "ReplyJudged.handed", "ToolCallNamed.call", "ToolReturned.call", "ToolStarted.call", "ApprovalAnswered.call",
    "DriverFailed.reference", "DriverFailed.why", "ReplyFinished.reason", "ReplyJudged.sign", "TurnEnded.answer",
    "TurnOpened.agent", "TurnOpened.key", "TurnOpened.language",
    "ApprovalAsked.sources", "CallSettled.sources", "TurnOpened.foreign", "ReplyJudged.solved", "TurnBegun.withheld", "LoopFound.words", "CallSettled.words", "ReplyJudged.words",
})  # fmt: skip
"""Ids of calls, names that an operator has given, and what the gateway itself says and names."""


def test_of_an_event_nothing_stays_but_names_ids_and_the_gateways_own_words() -> None:
    stay: set[str] = set()
    for event in EXAMPLES:
        for one in fields(event):
            words = {"str": f"of/{MARK}", "tuple[str, ...]": (MARK,)}.get(str(one.type))
            if words is not None:
                (made,) = _Redacting(Letters(KEY)).all([replace(event, **{one.name: words})])
                if MARK.encode() in encode(made).body:
                    stay.add(f"{type(event).__name__}.{one.name}")
    assert stay == STAY


def test_who_asks_and_what_their_conversation_is_called_is_nobodys_business() -> None:
    first = replace(opened(BASE), asker="telegram/bot/4711", known=Known(conversation="telegram/bot/4711/person"))
    assert "4711" not in dump(HEAD, redacted(rows_of([first]), KEY)[0])


@given(st.text(), keys)
def test_letters_are_replaced_one_by_one(text: str, key: bytes):
    made = Letters(key).text(text)
    assert len(made) == len(text)
    assert [c for c in made if not c.isalnum()] == [c for c in text if not c.isalnum()]
    assert [c.isspace() for c in made] == [c.isspace() for c in text]
    assert Letters(key).text(text) == made


def test_another_key_gives_other_letters() -> None:
    said = "what nobody else is to know, in so many words 123456789"
    assert len({Letters(bytes([number]) * 32).text(said) for number in range(9)} | {said}) == 10


@given(st.text("abcXYZ 019", min_size=1), st.text("abcXYZ 019", min_size=1), keys)
def test_words_stay_equal_or_different_and_common_beginnings_stay(one: str, other: str, key: bytes):
    letters = Letters(key)
    first, second = letters.text(one), letters.text(other)
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    assert first[:common] == second[:common]
    assert (first == second) == (one == other)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)


@MANY
@given(VALUES, st.booleans(), st.data(), keys)
def test_arguments_stay_as_whole_or_as_cut_as_they_were(
    value: object, ascii_only: bool, data: st.DataObject, key: bytes
):
    whole = json.dumps(value, ensure_ascii=ascii_only)
    text = whole[: data.draw(st.integers(0, len(whole)))]
    made = Letters(key).arguments(text)
    assert len(made) == len(text)
    assert arguments_state(made) is arguments_state(text)


def test_letters_that_are_spelt_as_escapes_are_letters():
    made = Letters(KEY).arguments('{"a": "\\u6f22\\u5b57 \\ud83d\\ude00 \\n"}')
    assert "6f22" not in made
    assert "5b57" not in made
    assert "de00" not in made
    assert json.loads(made)


def test_an_announcement_stays_one():
    rig = Rig(BASE)
    rig.says("I read your file, Ann. Now dispatching task 5 for Ann:")
    while rig.turn.exit is None:
        rig.says("Now dispatching task 5 for Ann:")
    assert rig.code is ExitCode.PROMISED_WITHOUT_ACTING
    rows = rows_of([*rig.fed, TurnEnded(at=rig.now, exit=rig.exit)])
    made, parts_at = redacted(rows, KEY)
    assert parts_at == -1
    assert replay(made, redacted=True).differences == []
    assert "dispatching" not in dump(HEAD, made)


# Answers in languages whose forms are known and not, promises that are long and short, what may be one; after tools and without.
ENDINGS = (
    "There is **nothing** in them.", "It is in the second one.", "Kaikki tiedostot ovat nyt kunnossa.", "Here it is:", "我现在检查文件。", "Now dispatching task 5:",
    "Let me check the logs.", "Is that what you want?", "One moment, please…", "Step 1:\n- read\n- write", "Working on all of the files...",
)  # fmt: skip


@MANY
@given(st.lists(st.sampled_from(ENDINGS), min_size=3, max_size=6), st.booleans(), st.booleans(), keys)
def test_how_a_reply_ends_is_not_read_from_other_letters(said: list[str], tools: bool, asked: bool, key: bytes):
    rig = Rig(replace(BASE, ladder=replace(BASE.ladder, promise_question=int(asked))))
    if tools:
        rig.calls_tool("read", text="Let me see.")
        rig.returns("nothing")
    for text in said:
        if rig.turn.exit is None and rig.turn.phase is Phase.CALLING:
            rig.says(text)
    ended = [TurnEnded(at=rig.now, exit=one.exit, answer=one.answer) for one in rig.wanted if isinstance(one, EndTurn)]
    rows = rows_of([*rig.fed, *ended])
    assert replay(rows).differences == []
    made, parts_at = redacted(rows, key)
    assert parts_at == -1
    assert replay(made, redacted=True).differences == []


def test_a_judgement_that_does_not_follow_is_found_in_a_redacted_export_as_well():
    rig = Rig(BASE)
    rig.says("Now dispatching task 5 for Ann:")
    made, _ = redacted(rows_of(rig.fed), KEY)
    at = next(i for i, row in enumerate(made) if row.kind == "RungClimbed")
    chosen = decode(made[at].kind, made[at].body)
    assert isinstance(chosen, RemedyChosen)
    (made[at],) = (replace(row, seq=at) for row in rows_of([replace(chosen, remedy=Remedy.RETRY)]))
    assert replay(made, redacted=True).differences


def test_a_repetition_that_was_removed_is_removed_again():
    rig = Rig(BASE)
    rig.text("The quick brown fox jumps over the la")
    rig.feed(CallBroke(at=rig.tick(), cause=BreakCause.DROPPED))
    rig.says("jumps over the lazy dog, and that is that.")
    text = replay(rows_of(rig.fed)).view.text
    assert text == "The quick brown fox jumps over the lazy dog, and that is that."
    made, parts_at = redacted(rows_of(rig.fed), KEY)
    assert parts_at == -1
    assert len(replay(made, redacted=True).view.text) == len(text)


def test_results_that_count_as_the_same_still_do():
    rig = Rig(BASE)
    for second in range(4):
        rig.calls_tool("read")
        rig.returns(f"took {second} ms at 10:31:0{second}, id 123e4567-e89b-12d3-a456-42661417400{second}")
    made, parts_at = redacted(rows_of(rig.fed), KEY)
    assert parts_at == -1
    results = {e.text for row in made if isinstance(e := decode(row.kind, row.body), ToolReturned)}
    assert len(results) == 1


def test_a_turn_that_ended_in_circles_ends_alike_when_its_words_are_gone():
    rig = Rig(SETTINGS)
    while rig.turn.exit is None:
        for tool, result in (("read", "nothing new"), ("write", "as it was")):
            if rig.turn.exit is None:
                rig.calls_tool(tool, '{"path": "a"}')
                rig.returns(result)
        if rig.turn.closing is not None and rig.turn.exit is None:
            rig.says("I went round and round.")
    assert rig.code is ExitCode.GOING_IN_CIRCLES
    rows = rows_of([*rig.fed, TurnEnded(at=rig.now, exit=rig.exit)])
    assert replay(rows).differences == []
    made, parts_at = redacted(rows, KEY)
    assert parts_at == -1
    assert replay(made, redacted=True).differences == []
    ended = decode(made[-1].kind, made[-1].body)
    assert isinstance(ended, TurnEnded)
    assert set(ended.exit.tool.split(", ")) == {"read", "write"}


def test_a_name_that_looks_like_the_new_name_of_another_stays_another():
    one = Letters(KEY).text("search")  # what `search` becomes is the name of a second tool
    rig = Rig(SETTINGS)
    rig.begins_call("search", "{}")
    rig.begins_call(one, "{}")
    found = LoopFound(
        at=rig.now,
        call="c",
        code=ExitCode.FAILING_TOOL,
        tool="search",
        count=3,
        words=f"search, {one}; research",
        stop=False,
    )
    made, _ = redacted(rows_of([*rig.fed]), KEY)
    names = [event.name for row in made if isinstance(event := decode(row.kind, row.body), ToolCallNamed)]
    told = redacted([*rows_of(rig.fed), *rows_of([found])], KEY)[0][-1]
    event = decode(told.kind, told.body)
    assert isinstance(event, LoopFound)
    assert event.words == f"{names[0]}, {names[1]}; research"
