"""The end of a reply: what is taken for a promise, which sentence is given, what stays unclear, and what it costs. How well it is told in each
language is measured by tests/corpora/test_endings.py.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.rules.promises import ANSWERED, READ_CHARS, SENTENCE_CHARS, Ending, PromiseSign, Reading, read_ending
from agent_core.rules.promising.language import languages
from agent_core.rules.promising.tongue import likely_languages
from agent_core.rules.promising.underway import keeps_time
from tests.corpora.endings import endings

ENDINGS = [ending.text for half in ("development", "held_out") for ending in endings(half)]
PROMISING = [ending.text for ending in endings("development") if ending.announces and "`" not in ending.text]


def promised(text: str) -> str | None:
    ending = read_ending(text)
    return ending.sentence if ending.reading is Reading.PROMISE else None


def test_the_promising_sentence_is_given_and_nothing_else() -> None:
    assert promised("Task 4 went well.\n\nIt took 3 s. **Now dispatching task 5:**\n") == "Now dispatching task 5:"
    assert promised("I’ll check main.py now. One moment please.") == "I’ll check main.py now."
    assert promised("完成。让我检查一下文件。") == "让我检查一下文件。"


def test_each_language_has_its_row_once_and_its_patterns_are_of_something() -> None:
    codes = [language.code for language in languages()]
    assert len(set(codes)) == len(codes) >= 34
    for language in languages():
        assert all((*language.acts, *language.apart, language.asks, language.waits, language.goes_on, language.when)), (
            "an empty pattern would be found anywhere"
        )


@pytest.mark.parametrize(
    "content", ["\n\n```sh\nls\n```", "\n\n- one\n- two", "\n\n| a |\n|---|", "\n\nIt is empty.", " It is empty."]
)
@pytest.mark.parametrize(
    "promising", ["Now dispatching task 5:", "Let me check the file.", "我现在运行测试：", "Voy a revisar el archivo."]
)
def test_a_promise_that_is_followed_by_content_is_not_kept_from_being_the_answer(promising: str, content: str) -> None:
    assert promised(promising) is not None
    assert promised(promising + content) is None


@pytest.mark.parametrize(
    "text",
    [
        "I'm looking forward to your feedback!",
        "If you like, I can translate the rest as well.",
        "Shall I go on with the second one?",
        "Ich freue mich auf Ihre Rückmeldung.",
        "Je suis à votre disposition pour toute question.",
        "Quedo atento a sus comentarios.",
        "ご返信をお待ちしております。",
        "期待您的反馈。",
        "Nos vemos mañana.",
        'He wrote: "I will send it now."',
    ],
)
def test_a_polite_end_an_offer_a_question_and_a_quotation_promise_nothing(text: str) -> None:
    answer = "The invoice is from March 3rd and amounts to 412 euros. " * 20
    assert read_ending(text) == ANSWERED
    assert read_ending(answer + text) == ANSWERED


@pytest.mark.parametrize(
    "text", ["Sada provjeravam datoteku:", "Ara comprovo el fitxer:", "Kini mo ń ṣe báyìí:", "ახლა ვამოწმებ ფაილს:"]
)
def test_a_colon_with_nothing_behind_it_leads_on_in_whatever_language(text: str) -> None:
    assert read_ending(text).reading is Reading.PROMISE


@pytest.mark.parametrize(
    "data",
    [
        '{"status": "ok"}',
        '{"next": "I will look at the file now."}',
        ' {"n": 36, "city": "Paris"}\n',
        '["Let me check:"]',
    ],
)
def test_data_promises_nothing_whatever_its_values_say(data: str) -> None:
    assert read_ending(data) == ANSWERED


def test_a_reminder_that_is_promised_counts_unless_a_tool_that_can_keep_it_ran() -> None:
    text = "Sure! I'll remind you at 5 to call the bank."
    assert read_ending(text) == Ending(Reading.PROMISE, PromiseSign.ACT, "I'll remind you at 5 to call the bank.")
    assert read_ending(text, ["read_file"]).reading is Reading.PROMISE
    assert read_ending(text, ["read_file", "create_reminder"]) == ANSWERED
    later = "I'll get back to you when it's done."
    assert read_ending(later).reading is Reading.PROMISE
    assert read_ending(later, ["schedule_job"]) == ANSWERED
    assert read_ending("I'll read the file now.", ["schedule_job"]).reading is Reading.PROMISE
    assert read_ending("The reminder is set; I'll ping you at 5.").sign is PromiseSign.CLAIMED


def test_tools_that_can_keep_a_reminder_are_known_by_their_names() -> None:
    assert all(keeps_time(name) for name in ("create_reminder", "calendar.add", "cron", "ScheduleTask", "set_alarm"))
    assert not any(keeps_time(name) for name in ("read_file", "remember", "web_search", "send_file"))
    assert not any(
        keeps_time(name) for name in ("list_scheduled", "cancel_scheduled", "set_timezone", "cal__delete_event")
    )


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("Loading the rest…", PromiseSign.ACT),
        ("The rest of it…", PromiseSign.TRAILS_OFF),
        ("I'll now take these steps:\n\n1. read\n2. write", PromiseSign.STEPS),
        ("I'll check the logs now. It is a big file.", PromiseSign.ASIDE),
        ("Could you have a look at these two:", PromiseSign.LEADS_ON),
    ],
)
def test_what_its_words_do_not_settle_is_said_to_be_unclear_or_told_by_its_form(text: str, sign: PromiseSign) -> None:
    ending = read_ending(text)
    assert ending.sign is sign
    assert (ending.reading is Reading.PROMISE) is (sign is PromiseSign.ACT)


@pytest.mark.parametrize(
    "text", ["ok: hello", "ok hallo", "dhello", "done: gusto", "Es: tomato", "No: espresso", "tomato."]
)
def test_a_word_that_ends_like_a_verb_is_no_promise(text: str) -> None:
    assert read_ending(text).reading is not Reading.PROMISE


def test_words_with_capitals_may_be_a_promise_where_nouns_have_them_and_are_a_name_elsewhere() -> None:
    assert promised("Danach tue ich das Letzte.") == "Danach tue ich das Letzte."
    assert promised("The painter is the one whom you mean. Leonardo da Vinci.") is None


def test_little_text_after_tools_in_an_unknown_language_is_unclear() -> None:
    text = "Ghabhaim buíochas leat xyzzy qwerty plugh frobnicate wibble wobble zork mudlark"
    assert likely_languages(text, text) == () or read_ending(text, ["read_file"]).reading is not Reading.PROMISE


@given(st.text(), st.sampled_from(PROMISING))
def test_what_stands_in_earlier_paragraphs_makes_no_promise_of_an_answer(before: str, promising: str) -> None:
    before = before.replace("`", "")
    assert read_ending(f"{before}\n\nIt is done.").reading is not Reading.PROMISE
    sentence = read_ending(f"{before}\n\n{promising}").sentence
    assert sentence in promising, "what stands before may tell the language, and no more"


@given(st.sampled_from(ENDINGS), st.text(alphabet=" \t\n\r\u00a0\u2003\u3000", max_size=2000))
def test_white_space_behind_it_does_not_matter(ending: str, space: str) -> None:
    assert read_ending(ending + space) == read_ending(ending)


@given(st.lists(st.sampled_from(ENDINGS) | st.text(max_size=8), min_size=1, max_size=6), st.integers(0, 300))
def test_pieces_of_endings_never_raise_and_give_a_part_of_themselves(pieces: list[str], cut: int) -> None:
    text = "".join(pieces)[cut:]
    ending = read_ending(text)
    assert (ending.reading is Reading.ANSWER) is (ending.sentence == "")
    assert ending.sentence in text
    assert len(ending.sentence) <= SENTENCE_CHARS


@given(st.text(max_size=900), st.lists(st.text(max_size=12), max_size=3))
def test_any_text_gives_a_part_of_itself_or_nothing(text: str, tools: list[str]) -> None:
    sentence = read_ending(text, tools).sentence
    assert sentence in text
    assert len(sentence) <= SENTENCE_CHARS


UNITS = [
    "word ", "to ", "ok, ", "now ", "let me ", "ik ", "je vais ", "я ", "我", "Now. ", "`", "a: ", "，", "सा ", "سأ ", "겠습니다",
    "voy a ", "ok: ", "\u0301", "ich ", "und, ", "и ", "se si ", "jag ", "я сейчас ", "می ", "ni ", "先", "て", "จะ", "1. ", "e, ", "ах", "to o ",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_a_long_text_takes_no_longer_than_its_end(unit: str) -> None:
    text = unit * (2_000_000 // len(unit))
    begin = time.process_time()
    read_ending(text)
    read_ending(text[: SENTENCE_CHARS - 1])
    read_ending(text[:READ_CHARS])
    read_ending(text[: SENTENCE_CHARS - 2] + ":")
    seconds = time.process_time() - begin
    print(f"{unit!r}: {seconds * 1000:.1f} ms")
    # Some milliseconds; looking at the whole text, or among many ways through a pattern, would take far longer
    assert seconds < 2
