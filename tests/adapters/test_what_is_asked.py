"""Small decisions about requests of programs and of the page: under which id one goes, what an end amounts to for whom, and what stands in a list."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import orjson
import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import LeftOpen, SessionKey, Ticket
from adapters.contract.callers import ANYBODY, Caller
from adapters.contract.sessions import ARCHIVED, SHARED, SUGGESTED, TITLE, SessionSight, SessionTurn
from adapters.http.api.answering import failure
from adapters.http.api.spelling import ApiJob
from adapters.http.api.taking import KEYED, TRACING, platform_key_of, request_id_of
from adapters.http.common import CALLER
from adapters.http.errorsas import ErrorsAs
from adapters.http.sessions import pagelist
from adapters.http.sessions.pagelist import (
    FOUND_CHARS,
    PINNED,
    PageConversations,
    around,
    listed_conversation,
    said_in,
    stands_in,
)
from adapters.http.web import BROWSER
from agent_core.failures.exits import ExitCode
from agent_core.messages import InputMessage
from agent_core.records import changed
from agent_core.turn.view import View
from tests.adapters.scripted import CountedIds, ended, example, text
from tests.adapters.test_beside_an_answer import ASKED

# ---------------------------------------------------------------------- ids


@pytest.mark.parametrize("given_", [(), (TRACING[0],), (TRACING[1],), TRACING, (KEYED,), (KEYED, *TRACING)])
def test_a_request_is_called_as_its_client_calls_it_and_a_key_counts_before_what_traces_it(
    given_: tuple[str, ...],
) -> None:
    request = make_mocked_request("POST", "/", headers={name: f"by {name}" for name in given_})
    first = next((name for name in (KEYED, *TRACING) if name in given_), "")
    name = request_id_of(request, CountedIds())
    assert name == (f"by {first}" if first else "req_1")
    key = platform_key_of(request, changed(ASKED, digest="d1", session="s"), name)
    other = platform_key_of(request, changed(ASKED, digest="d2", session="s"), name)
    elsewhere = platform_key_of(request, changed(ASKED, digest="d1", session="t"), name)
    assert (key == other) is (first in ("", KEYED)), "a key stands for the request, a trace only with what it says"
    assert (key == elsewhere) is (not first)


# ---------------------------------------------------------------------- what an end amounts to


@pytest.mark.parametrize("errors", [ErrorsAs.STATUS, ErrorsAs.WORDS])
@pytest.mark.parametrize("background", [True, False])
def test_what_runs_in_the_background_is_no_error_of_its_request_whatever_becomes_of_it(
    errors: ErrorsAs, *, background: bool
) -> None:
    asked = changed(ASKED, background=background)
    job = ApiJob(asked, Ticket(1, "s", duplicate=False), "r", 0, {}, keyed=False, errors=errors)
    sights = [*(ended(example(code)) for code in ExitCode), LeftOpen("t", View((), open=True)), None]
    found = [failure(job, sight) for sight in sights]
    assert any(found) is not background
    assert found[-1] is None
    assert (found[-2] is not None) is (not background and errors is ErrorsAs.STATUS)


# ---------------------------------------------------------------------- the page's list


def sight(
    name: str = "c-1",
    *,
    turns: int = 3,
    last_at: int = 60_000,
    created_at: int = 1,
    metadata: dict[str, str] | None = None,
) -> SessionSight:
    return SessionSight(
        f"s_{name}", SessionKey("web", "page", name), created_at, last_at, turns=turns, title="How it begins",
        metadata=metadata or {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("metadata", "title", "named"),
    [
        ({}, "How it begins", False),
        ({SUGGESTED: "Apples"}, "Apples", False),
        ({SUGGESTED: "Apples", TITLE: "Pears"}, "Pears", True),
        ({TITLE: "Pears"}, "Pears", True),
    ],
)
def test_a_conversation_is_called_as_its_person_calls_it_else_as_was_suggested_else_as_it_begins(
    metadata: dict[str, str], title: str, *, named: bool
) -> None:
    listed = listed_conversation(sight(metadata=metadata))
    assert (listed["title"], listed["named"]) == (title, named)
    assert (listed["pinned"], listed["archived"], listed["shared"]) == (False, False, False)
    assert listed_conversation(sight(metadata={**metadata, PINNED: "yes", SHARED: "x"})) == {
        **listed, "pinned": True, "shared": True,
    }  # fmt: skip


@pytest.mark.parametrize(("turns", "last_at", "archived"), [(3, 60_000, True), (4, 60_000, False), (3, 120_000, False)])
def test_what_was_put_aside_is_back_as_soon_as_something_happens_there(
    turns: int, last_at: int, *, archived: bool
) -> None:
    one = sight(turns=turns, last_at=last_at, metadata={ARCHIVED: "3 60000"})
    assert listed_conversation(one)["archived"] is archived


@given(
    st.lists(st.sampled_from(["apple", "pear", "ÄPFEL", "straße"]), max_size=3),
    st.lists(st.sampled_from(["an apple", "Pear", "äpfel", "STRASSE"]), max_size=4),
)
def test_all_words_have_to_stand_in_one_text_however_they_are_written(words: list[str], texts: list[str]) -> None:
    folded, whole = [word.casefold() for word in words], " ".join(texts)
    assert stands_in(folded, whole) == all(word in whole.casefold() for word in folded)


@given(st.integers(0, 400), st.integers(0, 400))
def test_what_is_shown_of_a_find_has_the_word_in_it_on_one_line_and_is_short(before: int, after: int) -> None:
    text_ = f"{'a ' * before}\n\n NEEDLE\t{' b' * after}"
    shown = around("needle", text_)
    assert "NEEDLE" in shown
    assert "\n" not in shown
    assert len(shown.strip("… ")) <= FOUND_CHARS
    assert shown.startswith("… ") is (2 * before > FOUND_CHARS // 3)
    assert shown.endswith(" …") is (len(shown.removesuffix(" …")) >= FOUND_CHARS and shown.endswith(" …"))


@pytest.mark.parametrize("removed", ["", "no longer kept"])
def test_what_was_removed_is_found_no_more(removed: str) -> None:
    turn = SessionTurn(
        "t", 1, 5, 6, told=True, removed=removed, asked=() if removed else (InputMessage("asked"),),
        seen=ended(example(ExitCode.ANSWERED), text("a", "said", final=True)),
    )  # fmt: skip
    assert [one for one in said_in(turn) if one] == ([] if removed else ["asked", "said"])


class Access:
    """The page's conversations in memory; each has these texts."""

    def __init__(self, *sights: SessionSight, texts: dict[str, list[str]] | None = None) -> None:
        self.sights, self.texts = sights, texts or {}
        self.described: list[dict[str, str]] = []

    async def latest(self, realm: str, limit: int, *, aside: bool) -> list[SessionSight]:
        assert realm
        found = [one for one in self.sights if (ARCHIVED in one.metadata) is aside]
        return sorted(found, key=lambda one: -one.last_at)[:limit]

    async def turns(self, one: SessionSight, number: int, limit: int, *, newest_first: bool) -> list[SessionTurn]:
        assert newest_first
        texts = self.texts.get(one.name, [])
        every = [SessionTurn("t", n, 5, 6, told=True, asked=(InputMessage(said),)) for n, said in enumerate(texts, 1)]
        return [each for each in reversed(every) if each.number < number][:limit]

    async def find(self, realm: str, name: str) -> SessionSight | None:
        return next((one for one in self.sights if one.name == name), None) if realm else None

    async def describe(self, one: SessionSight, metadata: dict[str, str]) -> SessionSight:
        self.described.append(metadata)
        return replace(one, metadata=metadata)


async def asked(
    access: Access, route: str, query: str = "", body: bytes = b"", caller: Caller = ANYBODY
) -> dict[str, Any]:
    handler = next(one for each, one in PageConversations(cast("Any", access)).routes().items() if each.name == route)
    request: Any = make_mocked_request(
        "GET", f"/?{query}", headers={BROWSER: "browser-number-one"}, match_info={"session": "c-1"}
    )
    request[CALLER] = caller

    async def read() -> bytes:
        return body

    request.read = read
    answer: Any = await handler(request)
    return orjson.loads(answer.body)


class Earlier(Access):
    """One that was made before conversations had lists, by nobody that a key names."""

    async def find(self, realm: str, name: str) -> SessionSight | None:
        return None if realm else sight(name)


@pytest.mark.parametrize(
    ("caller", "found"), [(ANYBODY, ["c0ffee00"]), (Caller("laptop", "ada"), []), (Caller("laptop"), [])]
)
async def test_what_was_begun_before_there_were_lists_is_found_without_a_key_alone(
    caller: Caller, found: list[str]
) -> None:
    told = await asked(Earlier(), "PAGE_LIST", "also=c0ffee00", caller=caller)
    assert [one["id"] for one in told["conversations"]] == found


async def test_what_is_pinned_comes_first_and_then_the_latest() -> None:
    access = Access(
        sight("c-old", last_at=1), sight("c-new", last_at=9), sight("c-pin", last_at=0, metadata={PINNED: "yes"}),
        sight("c-born", last_at=9, created_at=7),
    )  # fmt: skip
    told = await asked(access, "PAGE_LIST")
    assert [one["id"] for one in told["conversations"]] == ["c-pin", "c-born", "c-new", "c-old"]
    assert told["whole"] is True


@pytest.mark.parametrize("aside", [False, True])
@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_a_list_that_leaves_conversations_out_says_so_whether_they_are_put_aside_or_not(
    monkeypatch: pytest.MonkeyPatch, more: int, *, aside: bool
) -> None:
    monkeypatch.setattr(pagelist, "MOST_LISTED", 3)
    kept = {ARCHIVED: "3 60000"} if aside else {}
    told = await asked(Access(*(sight(f"c-{number}", metadata=kept) for number in range(3 + more))), "PAGE_LIST")
    assert (len(told["conversations"]), told["whole"]) == (min(3, 3 + more), more < 1)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("apple", ["c-2"]),
        ("apple tree", []),
        ("begins", ["c-1", "c-2", "c-3"]),
        ("pear APPLE", ["c-2"]),
        ("nothing", []),
    ],
)
async def test_a_search_finds_titles_and_texts_in_which_all_words_stand(words: str, found: list[str]) -> None:
    texts = {"c-1": ["a tree", "a pear"], "c-2": ["a pear and an apple", *["something else"] * 50], "c-3": []}
    access = Access(*(sight(name, last_at=-number) for number, name in enumerate(texts)), texts=texts)
    told = await asked(access, "PAGE_LIST", f"search={words.replace(' ', '+')}")
    assert [one["id"] for one in told["conversations"]] == found
    assert [bool(one["found"]) for one in told["conversations"]] == [words != "begins"] * len(found)


async def test_a_search_that_has_no_time_left_says_that_it_is_not_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.http.sessions.pagelist.SEARCH_SECONDS", 0.0)
    access = Access(sight("c-1"), sight("c-2"), texts={"c-1": ["apple"], "c-2": ["apple"]})
    told = await asked(access, "PAGE_LIST", "search=apple")
    assert (told["whole"], told["conversations"]) == (False, [])
    assert (await asked(access, "PAGE_LIST", "search=begins"))["whole"] is True, "titles are at hand"


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b'{"title": " A  name "}', {PINNED: "yes", "a": "b", TITLE: "A name"}),
        (b'{"pinned": false}', {"a": "b", TITLE: "Before"}),
        (b'{"archived": true}', {PINNED: "yes", "a": "b", TITLE: "Before", ARCHIVED: "3 60000"}),
        (b'{"archived": false}', {PINNED: "yes", "a": "b", TITLE: "Before"}),
        (b'{"title": ""}', {PINNED: "yes", "a": "b"}),
        (b"{}", {PINNED: "yes", "a": "b", TITLE: "Before"}),
    ],
)
@pytest.mark.parametrize("archived", [True, False])
async def test_a_change_changes_what_it_names_and_nothing_else(
    body: bytes, kept: dict[str, str], *, archived: bool
) -> None:
    aside = {ARCHIVED: "3 60000"} if archived else {}
    access = Access(sight(metadata={PINNED: "yes", "a": "b", TITLE: "Before", **aside}))
    await asked(access, "PAGE_CHANGE", body=body)
    assert access.described == [kept | (aside if b"archived" not in body else {})]


@pytest.mark.parametrize("body", [b'{"title": 7}', b'{"pinned": "yes"}', b'{"archived": 1}', b"[]"])
async def test_a_change_that_makes_no_sense_changes_nothing(body: bytes) -> None:
    access = Access(sight())
    assert "error" in await asked(access, "PAGE_CHANGE", body=body)
    assert access.described == []
