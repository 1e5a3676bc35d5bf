"""No sentence that a person reads goes past the catalogues: in a language in which each one is marked, nothing of ours is without its mark."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from agent_core.failures.exits import EXITS, ExitCode, read
from agent_core.failures.notices import NotStarted
from agent_core.failures.remedies import Remedy
from agent_core.text import tongue
from agent_core.text.tongue import Catalogue, speak, speaking

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
