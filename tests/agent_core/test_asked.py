"""What a person is asked to agree to: nothing decisive is hidden, nothing passes for something else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import Traits
from adapters.delivery.parts import picture
from adapters.discord.pieces import LIMIT_UNITS as DISCORD_UNITS
from adapters.slack.blocks import SECTION_CHARS
from adapters.text.markup import DISCORD, SLACK, escaped_within
from adapters.text.styled import Styled, units
from agent_core.tools.asked import DECISIVE, DECISIVE_MOST, MOST, MOST_LINES, question, unasked, whole
from agent_core.turn.view import Bubble, BubbleKind, View
from tests.agent_core.test_shown import UNSEEN, odd

values = odd | st.integers() | st.booleans() | st.none() | st.lists(odd, max_size=3)
names = st.sampled_from(["path", "url", "content", "old", "new", "everywhere"]) | odd.filter(bool)
some = st.dictionaries(names, values, max_size=6)


def lines(arguments: dict[str, Any], tool: str = "write_file") -> list[str]:
    return question(tool, json.dumps(arguments)).split("\n")


@given(some)
def test_every_argument_has_one_line_of_characters_that_are_seen(arguments: dict[str, Any]):
    found = lines(arguments)
    assert len(found) == 1 + len(arguments)
    assert found[0].startswith("May I write " if arguments else "May write_file run?")
    assert found[0].endswith(" (write_file)" if arguments else "?")
    assert not set("".join(found)) & set(UNSEEN)


@given(st.text(UNSEEN, min_size=1, max_size=3), st.integers(0, 6_000), st.sampled_from(["content", "path", "other"]))
def test_however_long_it_is_nothing_of_it_is_unseen(unseen: str, chars: int, name: str):
    """A long one is cut, and what is left of it is at its beginning and its end."""
    found = lines({name: unseen + "x" * chars + unseen, "more": "y" * 2_000})
    assert not set("".join(found)) & set(UNSEEN)
    assert not set("".join(lines({}, unseen + "x" * chars + unseen))) & set(UNSEEN)


@given(st.dictionaries(st.sampled_from(["path", "url", "content"]), st.text('ab"\\\n{}:?, …\u202e', max_size=60)))
def test_a_value_that_is_not_cut_can_be_read_back(arguments: dict[str, str]):
    for name, line in zip(arguments, lines(arguments)[1:], strict=True):
        shown = line.removeprefix(f"{name}: ")
        if name == "url":
            shown = re.sub(r" \(of the host [^()]*\)$", "", shown)
        assert json.loads(shown) == arguments[name]


@given(st.dictionaries(names, st.integers(0, 5_000).map(lambda n: "x" * n) | values, max_size=8))
def test_it_fits_and_a_line_that_is_cut_says_so_before_its_value(arguments: dict[str, Any]):
    text = question("write_file", json.dumps(arguments))
    assert len(text) <= 2 * MOST
    for name, line in zip(arguments, text.split("\n")[1:], strict=True):
        if len(json.dumps(arguments[name])) > 1_000 and "characters are left out here" in line.partition(": ")[2]:
            assert re.search(r"\([\d,]+ characters, not all of them shown\): ", line)
            assert whole("write_file", json.dumps(arguments))


@pytest.mark.parametrize("name", sorted(DECISIVE))
@pytest.mark.parametrize("before", [0, 1, MOST_LINES - 1, MOST_LINES, MOST_LINES + 5])
def test_nobody_is_asked_about_a_call_of_which_what_decides_has_no_line(name: str, before: int):
    arguments = json.dumps({**{f"a{number}": number for number in range(before)}, name: "x"})
    said = [line for line in question("send", arguments).splitlines() if line.startswith(f"{name}: ")]
    why = unasked(arguments)
    assert bool(said) is (not why) is (before < MOST_LINES)
    assert name in why or not why


long = st.tuples(odd, st.integers(0, 400)).map(lambda some: some[0] * some[1])


@given(st.dictionaries(st.sampled_from([*sorted(DECISIVE), *map(str, range(12)), "content"]), odd | long, max_size=16))
def test_where_something_decisive_would_be_left_out_nobody_is_asked(arguments: dict[str, str]):
    found = lines(arguments)[1:]
    shown = {name for name in arguments if any(one.startswith(f"{name}: ") for one in found)}
    hidden = [name for name in arguments if name in DECISIVE and name not in shown]
    why = unasked(json.dumps(arguments))
    assert bool(why) == bool(hidden)
    assert all(name in why for name in hidden)


@given(odd.filter(lambda text: len(json.dumps(text)) <= DECISIVE_MOST // 2), st.text(max_size=3000))
def test_about_a_path_of_the_usual_length_a_person_is_asked(path: str, content: str):
    assert not unasked(json.dumps({"path": path, "content": content}))


@pytest.mark.parametrize("big", ["content", "old", "aaa", "zzz"])
def test_a_path_behind_a_long_text_is_whole(big: str):
    path = "/".join(["notes", "x" * 200, "y" * 200, "today.txt"])
    shown = question("write_file", json.dumps({big: "lorem " * 5_000, "path": path, "note": "short"}))
    assert f'path: "{path}"' in shown
    assert 'note: "short"' in shown
    assert "30,002 characters, not all of them shown" in shown
    assert whole("write_file", json.dumps({big: "lorem " * 5_000, "path": path})).count("lorem") == 5_000


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://good.example/x", "good.example"),
        (f"https://good.example{'.a' * 5}@evil.example/", "evil.example"),
        (f"https://{'good.example-' * 60}:x@evil.example/", "evil.example"),
        ("https://gооd.example/", "xn--gd-fmca.example"),
        ("https://GOOD。example/", "good.example"),
    ],
)  # fmt: skip
def test_the_host_of_an_address_is_named_as_it_is_called(url: str, host: str):
    assert f"(of the host {host})" in question("fetch_url", json.dumps({"url": url}))


@pytest.mark.parametrize(
    "value",
    [
        "x\n(60 s left to decide)", 'x"\npath: "harmless.txt', "x\r\rpath: harmless", "\u202egnp.exe", "a\u2028path: b", "a b (c) d",
        "x" * 60 + "\u200b" * 2_000 + "rm -rf /", "\x1b[2Jclean", "@everyone <@1> <!channel> *b* _i_ ~s~ `c` [l](http://e) # h",
        "\U000e0041\U000e0042", "left to decide)",
    ],
)  # fmt: skip
def test_no_value_passes_for_something_else(value: str):
    found = lines({"path": value, "content": "y"})
    assert len(found) == 3
    assert found[1].startswith('path: "') or found[1].startswith("path (")
    assert found[2] == 'content: "y"'


def test_a_name_that_comes_twice_is_shown_as_it_will_be_run():
    assert question("write_file", '{"path": "a", "path": "b"}').split("\n")[1:] == ['path: "b"']


def test_more_arguments_than_can_be_shown_are_counted():
    found = lines({f"n{i}": i for i in range(100)})
    assert found[-1] == f"and {100 - MOST_LINES} more arguments, which are not shown here"


TRAITS = Traits(drafts=False)
LIMIT = "(Decide within 10 min.)"


def no_pieces(_text: str, _growing: bool) -> tuple[Styled, ...]:
    return ()


def part(text: str) -> Styled:
    bubble = Bubble("a", BubbleKind.APPROVAL, text, final=False, tool="t", call="c", limit=LIMIT, left="(9 s left)")
    (wanted,) = picture(View((bubble,), open=True), "t_1", no_pieces, traits=TRAITS, reply_to="").wanted
    return wanted.content.body


@given(st.dictionaries(names, st.integers(0, 3_000).map(lambda n: "_*<&" * n) | values, max_size=8))
def test_a_chat_shows_all_of_the_question_whatever_its_escapes_cost(arguments: dict[str, Any]):
    text = question("write_file", json.dumps(arguments))
    body = part(text)
    assert body.text == f"🔐 {text}\n{LIMIT}"
    assert units(escaped_within(body.text, DISCORD, DISCORD_UNITS)) <= DISCORD_UNITS
    assert len(escaped_within(body.text, SLACK, SECTION_CHARS)) <= SECTION_CHARS


def test_words_in_brackets_hide_nothing_that_comes_after_them():
    shown = part(question("write_file", json.dumps({"content": "a (b) c", "path": "secret.txt"})))
    assert 'path: "secret.txt"' in shown.text


@pytest.mark.parametrize(
    ("marks", "bad"), [(DISCORD, ("<@1>", "**b**", "[l](http")), (SLACK, ("<@1>", "<!channel>", "<http"))]
)
def test_nothing_in_it_is_markup_or_a_mention(marks: Any, bad: tuple[str, ...]):
    body = part(question("write_file", json.dumps({"path": "<@1> <!channel> <http://e|x> **b** [l](http://e)"})))
    shown = escaped_within(body.text, marks, 2_000)
    assert not [piece for piece in bad if piece in shown]
    assert [body.text[span.start : span.end].startswith("path") for span in body.spans] == [True], (
        "Telegram makes no mentions of code"
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("write_file", {"path": "notes.md", "content": "a\nb\nc\n"}, 'May I write "notes.md" (3 lines)? (write_file)'),
        ("send_message", {"to": "ops", "text": "hello"}, 'May I send a message to "ops"? (send_message)'),
        ("run_command", {"command": "make test"}, "May I run this command? (run_command)"),
        ("delete_file", {"path": "a"}, 'May I delete "a"? (delete_file)'),
        ("fetch_url", {"url": "https://a.example/x"}, "May I call an address of a.example? (fetch_url)"),
        ("tracker__create_issue", {"title": "x"}, "May tracker__create_issue run with:"),
    ],
)
def test_it_says_in_words_what_the_call_will_do(tool: str, arguments: dict[str, str], words: str):
    assert question(tool, json.dumps(arguments)).partition("\n")[0] == words
