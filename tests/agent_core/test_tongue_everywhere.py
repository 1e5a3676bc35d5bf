"""No sentence that a person reads goes past the catalogues: in a language in which each one is marked, nothing of ours is without its mark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC

import pytest
from hypothesis import HealthCheck, given, settings

from agent_core.explain.why import Asked, Occasion, StoryCase, story, story_of, told, turn_lines
from agent_core.failures.exits import EXITS, ExitCode, read
from agent_core.failures.notices import NotStarted
from agent_core.failures.remedies import Remedy
from agent_core.limits.retention import Keep
from agent_core.rules.promises import PromiseSign, sign_words
from agent_core.settings import Route
from agent_core.store.deliveries.rows import AdapterStateRow, DeliveryRow, DeliveryState
from agent_core.store.inbox.rows import InboxState
from agent_core.store.turns.rows import FORGOTTEN, TurnRow, TurnState
from agent_core.text import tongue
from agent_core.text.tongue import Catalogue, known_sentence, speak, speaking
from tests.agent_core.journals import Writer, journals
from tests.agent_core.turns import SETTINGS
from tests.examples import MANY

OPEN, SHUT = "⟦", "⟧"
_INNERMOST = re.compile(f"{OPEN}[^{OPEN}{SHUT}]*{SHUT}")
_OURS = re.compile(r"[a-z]{3,} [a-z]{2,}")
"""Two words of a sentence."""


class Marked(Catalogue):
    """A language in which every sentence stands in brackets."""

    def gettext(self, message: str) -> str:
        return message if message.startswith(OPEN) else f"{OPEN}{message}{SHUT}"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(tongue._LOADED, "xx", Marked())
    with speaking("xx"):
        yield


def unmarked(words: str) -> str:
    """What stands in no bracket."""
    while (less := _INNERMOST.sub("", words)) != words:
        words = less
    return words


def test_what_is_not_marked_is_found() -> None:
    assert _OURS.search(unmarked(f"{OPEN}All {OPEN}of it{SHUT}.{SHUT}")) is None
    assert _OURS.search(unmarked(f"{OPEN}All.{SHUT} but not this"))


@pytest.mark.parametrize("code", list(ExitCode))
@pytest.mark.parametrize(
    "more",
    [{}, {"text_shown": True, "tools_unsure": ["send"], "attempts": 3, "retry_after_seconds": 600, "alone": True}],
)
def test_every_notice_is_of_sentences_of_the_catalogues(code: ExitCode, more: dict[str, object]) -> None:
    facts: dict[str, object] = {
        **EXITS[code].example,
        **more,
        "pattern": "",
        "detail": "",
        "announced": "",
        "tried": (),
    }
    notice = read({"code": code.value, "facts": facts}).notice()
    assert notice is None or not _OURS.search(unmarked(notice.text)), notice.text


@pytest.mark.parametrize("why", list(NotStarted))
def test_every_reason_not_to_begin_is_one(why: NotStarted) -> None:
    assert not _OURS.search(unmarked(why.said(3)))


@pytest.mark.parametrize("remedy", list(Remedy))
def test_what_was_mended_is_one(remedy: Remedy) -> None:
    assert not _OURS.search(unmarked(speak(remedy.recipe.mended, model="m")))


# ---------------------------------------------------------------------- what `/why` tells


@settings(parent=MANY, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(journals(replace(SETTINGS, routes=(Route("m1", "h", "k1"), Route("m2", "h2", "k2")), max_steps=5)))
def test_what_a_turn_did_is_told_in_sentences_of_the_catalogues(writer: Writer) -> None:
    for words in (*story(writer.events)[:1], *(line.words for line in turn_lines(writer.events, show_text=False))):
        assert not _OURS.search(unmarked(words)), words


PLACE = "telegram/1/7/"


def asked(number: int, **more: object) -> Asked:
    made = Asked(number=number, key="7:1", where=PLACE, lane="normal", state=InboxState.DONE, at=1_000, chars=12)
    return replace(made, **more)


def delivery(state: DeliveryState, **more: object) -> DeliveryRow:
    made = DeliveryRow(PLACE, "t_1", "text-1", 0, 1, b"{}", "h", "k", state=state, at=5_000)
    return replace(made, **more)


TURN = TurnRow("t_2", "s_1", 2, TurnState.CLOSED, "answered", 9_000, 9_500, 60_000)
CASES = {
    "a request": StoryCase(now=10_000, messages=(asked(1, request=True),), turn=TURN),
    "behind others": StoryCase(now=10_000, messages=(asked(1),), turn=TURN, before=(replace(TURN, turn="t_1", exit="rate_limited"),)),
    "pieces": StoryCase(now=10_000, messages=tuple(asked(n) for n in range(1, 10)), turn=TURN),
    "a gateway that was busy": StoryCase(now=10_000, messages=(asked(1, where="api"),), turn=TURN),
    "a schedule's prompt": StoryCase(now=10_000, messages=(asked(1, occasion=Occasion(kind="", schedule="morning")),), turn=TURN),
    "many parts": StoryCase(now=10_000, deliveries=tuple(delivery(DeliveryState.SENT, part=n, platform_id=str(n)) for n in range(9))),
    "what waits": StoryCase(
        now=10_000,
        deliveries=(delivery(DeliveryState.WANTED, failures=3, trouble="Telegram did not answer in time", retry_at=70_000, labelled=True, plain=True),),
        adapters=(AdapterStateRow("telegram/1", 1_000, "down", "No line to it. Look at the network."),),
    ),
    **{state.value: StoryCase(now=10_000, deliveries=(delivery(state, platform_id="9"), delivery(state))) for state in DeliveryState},
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_was_asked_and_delivered_is_told_in_them_too(name: str) -> None:
    case = CASES[name]
    for line in story_of(case):
        assert not _OURS.search(unmarked(line.words)), line.words
    for words in told("", story_of(case), UTC):
        assert not _OURS.search(unmarked(words)), words


@pytest.mark.parametrize("sign", list(PromiseSign))
def test_why_a_reply_was_a_promise_is_said_in_them(sign: PromiseSign) -> None:
    assert not _OURS.search(unmarked(sign_words(sign)))


def test_what_was_kept_in_english_is_said_in_the_language_of_whoever_reads_it() -> None:
    kept = "no longer kept: [retention] journals_days = 90"
    assert Keep().words("journals_days") == kept
    with speaking("de"):
        assert known_sentence(kept) == "nicht mehr aufbewahrt: [retention] journals_days = 90"
        assert known_sentence("no longer kept: a secret") == "no longer kept: a secret"
    assert known_sentence(FORGOTTEN) == f"{OPEN}{FORGOTTEN}{SHUT}"
