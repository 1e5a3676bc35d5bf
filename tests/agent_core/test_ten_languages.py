"""Whoever reads one of the ten languages meets no English sentence of ours, whatever goes wrong: each fault's words, in each language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC

import pytest

import adapters.refusing as refusing
from adapters.contract import files
from adapters.delivery import aftermath, substitutes
from agent_core.causes import BreakCause, cause_words
from agent_core.explain.why import exit_words, story_of, told
from agent_core.failures.exits import EXITS, ExitCode, read
from agent_core.failures.notices import NotStarted
from agent_core.failures.remedies import Remedy
from agent_core.judging import ends
from agent_core.model.reach import NO_ADDRESS, NO_PROXY, NO_TLS, NO_WAY
from agent_core.rules.promises import PromiseSign, sign_words
from agent_core.text.tongue import clause, known_sentence, speak, speaking
from gateway.chats import attachments, readout, unread, voice
from gateway.delivery import calls, outbox, troubles
from gateway.setaside import setaside
from tests.agent_core.test_tongue import SOURCE
from tests.agent_core.test_tongue_everywhere import CASES
from tests.catalogues import OTHERS, sources
from tests.english import english_in

VALUES: Mapping[str, str] = {
    "platform": "Telegram", "what": "502", "why": "…", "file": "x.pdf", "kind": "image/tiff", "place": "#1", "status": "403", "size": "20",
    "seconds": "7", "count": "3", "agent": "x", "url": "http://127.0.0.1/",
}  # fmt: skip
MORE: tuple[dict[str, object], ...] = (
    {},
    {"text_shown": True, "tools_unsure": ["send_mail"], "attempts": 3, "retry_after_seconds": 600, "alone": True},
)


def _notice(code: ExitCode, more: dict[str, object]) -> str:
    facts: dict[str, object] = {
        **EXITS[code].example,
        **more,
        "pattern": "",
        "detail": "",
        "announced": "",
        "tried": (),
    }
    notice = read({"code": code.value, "facts": facts}).notice()
    return notice.text if notice is not None else ""


def _constants(module: object) -> Mapping[str, str]:
    """The sentences that a module keeps in constants: those that the catalogues know."""
    known = {words for one in SOURCE for words in sources(one)}
    return {
        name: words for name, words in vars(module).items() if name.isupper() and isinstance(words, str) and words in known
    }  # fmt: skip


def _spoken(words: str) -> Callable[[], str]:
    return lambda: speak(words, **VALUES)


def _kept(words: str) -> Callable[[], str]:
    """What is stored in English, and said when somebody reads it."""
    return lambda: known_sentence(clause(words).format_map(VALUES))


def _stopped(words: str) -> Callable[[], str]:
    """What a turn was at when a person stopped it is kept in English, too."""
    facts: Mapping[str, object] = {"detail": words.format(tool="send_mail")}
    return lambda: read({"code": ExitCode.STOPPED.value, "facts": facts}).text()


def _not_reached(words: str) -> Callable[[], str]:
    return lambda: cause_words(BreakCause.UNREACHABLE, detail=words.format(what="0"))


NOT_REACHED = (NO_TLS, NO_WAY, NO_ADDRESS, NO_PROXY)
AT = (ends.WAITS_FOR_MODEL, ends.REPLY_ARRIVES, ends.CALL_ARRIVES, ends.NEXT_TRY, ends.SHORTENS, ends.MAKES_SURE)
FAULTS: Mapping[str, Callable[[], str]] = {
    **{f"{code.value} {n}": (lambda code=code, more=more: _notice(code, more)) for code in ExitCode for n, more in enumerate(MORE)},
    **{f"not started: {one.value}": (lambda one=one: one.said(3)) for one in NotStarted},
    **{f"stopped: {words}": _stopped(words) for words in AT},
    **{f"not reached: {words}": _not_reached(words) for words in NOT_REACHED},
    **{f"mended by {one.value}": (lambda one=one: speak(one.recipe.mended, model="m")) for one in Remedy},
    **{f"a promise, {one.value}": (lambda one=one: sign_words(one)) for one in PromiseSign},
    **{f"a story of {name}": (lambda case=case: "\n".join(told("", story_of(case), UTC))) for name, case in CASES.items()},
    **{f"refused, {name}": _kept(words) for name, words in _constants(refusing).items()},
    **{
        f"{module.__name__}.{name}": _spoken(words)
        for module in (files, aftermath, substitutes, attachments, readout, unread, voice, calls, outbox, troubles, setaside)
        for name, words in _constants(module).items()
    },
}  # fmt: skip


def test_there_are_fifty_and_more():
    assert len(FAULTS) >= 50


@pytest.mark.parametrize("language", OTHERS)
def test_no_fault_is_told_in_english(language: str):
    with speaking(language):
        found = {name: (said, english) for name, say in FAULTS.items() if (english := english_in(said := say()))}
    assert found == {}


@pytest.mark.parametrize("language", OTHERS)
def test_a_story_says_in_words_how_a_turn_ended_and_not_by_the_name_of_an_exit(language: str):
    with speaking(language):
        said = {code: exit_words(read({"code": code.value, "facts": {}}), "", show_text=False) for code in ExitCode}
    assert [code for code, words in said.items() if "_" in code.value and code.value in words] == []


def test_english_is_found():
    assert english_in("Fertig. The task is not finished.")
    assert english_in("⚠️ It is with you.")
    assert english_in("Das Modell gab nichts zurück: outspoken run") == []
