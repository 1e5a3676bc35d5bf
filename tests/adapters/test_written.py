"""What the model writes, as the page is told it: in pieces that are made once, and sent once."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import MessageState, TurnSight
from adapters.http.web import wire
from adapters.http.written import texts
from adapters.http.written.colours import work
from adapters.http.written.nodes import UNBROKEN
from adapters.http.written.patches import patch, patched
from adapters.http.written.texts import MOST_NODES, Growing, whole
from adapters.http.written.told import PageTold
from agent_core.jsonvalue import Json
from agent_core.turn.state import ThoughtText
from agent_core.turn.view import Bubble, BubbleKind, View

PIECES = (
    "*", "**", "_", "`", "```\n", "```py\n", "~~", "[", "](", ")", "!", "> ", "- ", "1. ", "- [x] ", "|", "|-|\n", "\n", "\n\n", "  ", "# ", "http://a ",
    "w", "x", " ", "$", "\\(", "\\)", "$$", "[k]: http://k\n", "[k]", "word ", "\r\n", "    ", "<b>",
)  # fmt: skip
TEXT = st.lists(st.sampled_from(PIECES), max_size=120).map("".join)
ANSWER = """# Title

Some **bold** text with [a link][k] and $x_1 + y$.

- one
- [x] done
  ```python
  def f():
      return 1
  ```
- three

| a | b |
|---|--:|
| 1 | 2 |

> quoted
> again

1. first
2. second

[k]: https://example.org
"""


def letters(nodes: Json) -> str:
    if isinstance(nodes, str):
        return nodes
    assert isinstance(nodes, list)
    return "".join(letters(one) for one in nodes[2:])


def shown(nodes: list[Json]) -> str:
    return "".join(map(letters, nodes))


def count(nodes: list[Json]) -> int:
    return sum(1 + (count(one[2:]) if isinstance(one, list) else 0) for one in nodes)


def runs(node: Json) -> int:
    """The longest run of characters without a place to break."""
    if isinstance(node, str):
        return max(map(len, node.split()), default=0)
    assert isinstance(node, list)
    return 0 if node[0] == "plain" else max((runs(one) for one in node[2:]), default=0)


@given(TEXT, st.lists(st.integers(1, 12), max_size=60))
def test_however_a_text_was_cut_it_is_shown_as_if_it_had_come_at_once(text: str, cuts: list[int]):
    growing, nodes, at = Growing(), list[Json](), 0
    for size in cuts:
        at += size
        now = growing.nodes(text[:at])
        assert patched(nodes, patch(nodes, now)) == now
        nodes = now
    last = whole(text)
    assert patched(nodes, patch(nodes, last)) == last


@given(TEXT)
def test_what_is_settled_is_what_the_whole_text_says(text: str):
    """But for addresses that are defined later."""
    text = text.replace("[k]: http://k", "[k] http://k")
    growing = Growing()
    for at in range(0, len(text), 5):
        growing.nodes(text[:at])
    assert growing.nodes(text + "\n\n\n\n") == Growing().nodes(text + "\n\n\n\n")


@given(TEXT)
def test_no_letter_is_missing_and_no_run_is_long(text: str):
    nodes = whole(text)
    assert shown(nodes).count("w") >= text.count("w") - text.count("```")
    assert count(nodes) <= 3 * MOST_NODES
    assert all(runs(one) <= UNBROKEN + 1 for one in nodes)
    json.dumps(nodes)


@pytest.mark.parametrize(
    "head", ["", "> " * 40 + "w\n\n", "[k]: http://k\n\n"], ids=["plain", "deep", "with an address"]
)
def test_of_a_text_with_too_much_in_it_no_word_is_missing_and_none_is_shown_twice(
    monkeypatch: pytest.MonkeyPatch, head: str
):
    monkeypatch.setattr(texts, "NOTHING", dataclasses.replace(texts.NOTHING, room=20))
    text = head + "w\n\n" * 30
    assert shown(whole(text)).count("w") == text.count("w")


def test_what_a_model_writes_most_is_shown_as_it_is_meant():
    nodes = whole(ANSWER)
    assert nodes[0] == ["h1", None, "Title"]
    assert nodes[1] == ["p", None, "Some ", ["strong", None, "bold"], " text with ", ["a", {"href": "https://example.org"}, "a link"], " and ",
                        ["formula", {"display": False}, "x_1 + y"], "."]  # fmt: skip
    code: Json = ["pre", {"language": "python"}, "def f():\n    return 1"]
    assert nodes[2] == [
        "ul",
        None,
        ["li", None, "one"],
        ["li", None, ["box", {"on": True}], "done", code],
        ["li", None, "three"],
    ]
    assert nodes[3] == ["table", None, ["thead", None, ["tr", None, ["th", None, "a"], ["th", {"align": "right"}, "b"]]],
                        ["tbody", None, ["tr", None, ["td", None, "1"], ["td", {"align": "right"}, "2"]]]]  # fmt: skip
    assert nodes[5] == ["ol", {"start": 1}, ["li", None, "first"], ["li", None, "second"]]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("[x](javascript:alert(1))", [["p", None, "x", " (javascript:alert(1))"]]),
        ("<img src=x onerror=alert(1)>", [["p", None, "<img src=x onerror=alert(1)>"]]),
        ("![cat](https://a.example/c.png)", [["p", None, ["picture", {"href": "https://a.example/c.png", "alt": "cat"}]]]),
        ("![cat](data:image/png;base64,AA)", [["p", None, "cat"]]),
        ("see https://a.example/b.", [["p", None, "see ", ["a", {"href": "https://a.example/b"}, "https://a.example/b"], "."]]),
        ("it costs $5 or $6", [["p", None, "it costs $5 or $6"]]),
        ("\\[\nx = 1\n\\]", [["p", None, ["formula", {"display": True}, "x = 1"]]]),
    ],
)  # fmt: skip
def test_nothing_runs_and_nothing_is_fetched(text: str, nodes: list[Json]):
    assert whole(text) == nodes


def text(said: str, *, final: bool = False, key: str = "s1") -> Bubble:
    return Bubble(key, BubbleKind.ANSWER if final else BubbleKind.PARTIAL, said, final)


def sight(*bubbles: Bubble, key: str = "m:1", state: MessageState = MessageState.OPEN, person: str = "hi") -> TurnSight:
    return TurnSight(key, 1, state, person, "t_1", view=View(bubbles, open=state is MessageState.OPEN))


NEW: dict[str, Any] = {}


class Page:
    """What a page makes of what it is told, as `webpage/turns.js` does."""

    def __init__(self) -> None:
        self.told = PageTold(wire, thinking=True)
        self.messages: dict[str, dict[str, Any]] = {}
        self.sizes: list[int] = []

    def hears(self, one: TurnSight) -> None:
        data = self.told.news([one])
        self.sizes.append(len(data))
        for came in json.loads(data):
            before = self.messages.get(came["key"], {"bubbles": []})
            bubbles: list[dict[str, Any]] = []
            for news in came["bubbles"]:
                was: dict[str, Any] = next((b for b in before["bubbles"] if b["key"] == news["key"]), NEW)
                change = news.pop("patch", None)
                now: dict[str, Any] = {**(news if "kind" in news else was)}
                nodes = was.get("nodes", [])
                now["nodes"] = patched(nodes, change) if change else nodes
                bubbles.append(now)
            self.messages[came["key"]] = {**before, **came, "bubbles": bubbles}

    def has(self, one: TurnSight) -> None:
        mine = self.messages[one.key]
        wanted = json.loads(json.dumps(wire(one)))
        for bubble, said in zip(mine["bubbles"], wanted["bubbles"], strict=True):
            nodes = bubble["nodes"]
            assert {name: value for name, value in bubble.items() if name != "nodes"} == (
                said if said["final"] else {**said, "text": ""}
            )
            if said["final"]:
                assert nodes == whole(said["text"])
        assert {**mine, "bubbles": []} == {**wanted, "bubbles": []}


def test_a_page_has_each_time_what_is_to_be_seen():
    page, chance = Page(), random.Random(3)
    for seed in range(20):
        for size in [*sorted(chance.choices(range(len(ANSWER)), k=12)), len(ANSWER)]:
            now = sight(text(ANSWER[:size]), key=f"m:{seed}")
            page.hears(now)
            page.has(now)
        last = sight(text(ANSWER, final=True), key=f"m:{seed}", state=MessageState.CLOSED)
        page.hears(last)
        page.has(last)
        undone = dataclasses.replace(last, undone=True)
        page.hears(undone)
        page.has(undone)


def test_a_text_that_is_taken_back_and_comes_again_is_whole():
    page = Page()
    for one in (sight(text("one two")), sight(), sight(text("three")), sight(text("three four", final=True))):
        page.hears(one)
        page.has(one)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("(see https://a.example/Foo_(bar))", "https://a.example/Foo_(bar)"),
        ("https://a.example/f(x(y))/z, and", "https://a.example/f(x(y))/z"),
        ("(https://a.example)(https://b.example)", "https://a.example"),
        ("https://a.example/(not closed", "https://a.example/"),
        ("https://a.example/b)))))", "https://a.example/b"),
        ("详见https://a.example/文档，谢谢。", "https://a.example/文档"),
        ("（https://a.example/b）", "https://a.example/b"),
        ("「https://a.example/b」です", "https://a.example/b"),
        ("“https://a.example/b”", "https://a.example/b"),
    ],
)
def test_an_address_in_a_text_ends_where_a_reader_sees_it_end(text: str, address: str):
    words: list[Any] = cast("Any", whole(text))[0][2:]
    links: list[Any] = [one for one in words if one[0] == "a"]
    assert links[0][1] == {"href": address}
    assert len(links) == text.count("://")
    assert "".join(one if isinstance(one, str) else one[2] for one in words) == text


@pytest.mark.parametrize(
    ("answer", "most"),
    [
        ("\n\n".join(f"Paragraph {n} with **some** words, `code` and more." for n in range(100)), 1_000),
        ("```python\n" + "".join(f"value_{n} = compute({n})\n" for n in range(600)) + "```\n", 1_000),
        ("- item of a list\n" * 150, 1_000),
        ("| a | b |\n|---|---|\n" + "| cell | another |\n" * 100, 1_000),
    ],
    ids=["paragraphs", "code", "list", "table"],
)
def test_what_a_page_is_told_of_a_long_answer_is_short(answer: str, most: int):
    page = Page()
    for at in range(40, len(answer), 60):
        page.hears(sight(text(answer[:at]), person="a question " * 1_000))
    assert sorted(page.sizes)[-5] < 5 * most  # code that becomes long is told once more, in parts
    assert sum(page.sizes[1:]) / len(page.sizes) < most


def test_what_colours_code_knows_languages_and_loses_no_character():
    code = "# a note\ndef f(x):\n    return 'ä😀' + str(1)\n"
    found = work({"language": "python"}, code.encode())
    assert isinstance(found, list)
    runs_of = [cast("tuple[str, int]", run) for run in found]
    assert {"comment", "keyword", "string", "number", "name"} <= {kind for kind, _ in runs_of}
    assert sum(chars for _, chars in runs_of) == len(code)
    assert work({"language": "no such language"}, code.encode()) == []


def test_what_was_thought_is_told_once_and_only_to_a_page_that_is_shown_it():
    thought, pages = ThoughtText(), [PageTold(wire, thinking=True), PageTold(wire, thinking=False)]
    heard = ["", ""]
    for piece in ("First ", "", "this. ", "Then that."):
        if piece:
            thought.add(piece)
        now = dataclasses.replace(sight(text("x")), thought=thought, thought_chars=thought.chars)
        for number, page in enumerate(pages):
            (told,) = json.loads(page.news([now]))
            heard[number] += "".join(words for _, words in told.get("thought", []))
            assert ("thought" in told) is bool(piece and not number)
    assert heard == ["First this. Then that.", ""]


def test_what_was_thought_is_told_once_though_a_look_in_between_knows_nothing_of_it():
    thought, page = ThoughtText(), PageTold(wire, thinking=True)
    thought.add("Only once.")
    known = dataclasses.replace(sight(text("x")), thought=thought, thought_chars=thought.chars)
    looks = [json.loads(page.news([one]))[0].get("thought") for one in (known, sight(text("xy")), known)]
    assert looks == [[["", "Only once."]], None, None]


def test_a_text_that_grows_is_formatted_up_to_a_bound_as_it_is_in_the_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(texts, "MOST_CHARS", 200)
    growing, said, nodes = Growing(), "", list[Json]()
    for number in range(100):
        said += f"**word {number}**\n\n"
        nodes = growing.nodes(said)
        assert sum("strong" in str(one) for one in nodes) <= 200 // len("**word 0**")
    assert sum("strong" in str(one) for one in nodes) == sum("strong" in str(one) for one in whole(said))
