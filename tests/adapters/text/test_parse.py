"""Markdown to a tree, whole and growing."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.text.document import (
    Align,
    Block,
    Bold,
    BulletList,
    Code,
    CodeBlock,
    Heading,
    Image,
    Italic,
    Item,
    LineBreak,
    Link,
    OrderedList,
    Paragraph,
    Quote,
    Rule,
    SoftBreak,
    Strike,
    Table,
    Text,
    inline_text,
)
from adapters.text.flatten import flatten
from adapters.text.parse import parse
from adapters.text.styled import Style, is_visible
from tests.adapters.text.seen import letters
from tests.adapters.text.strategies import SAMPLES, markdowns


def para(text: str) -> Paragraph:
    return Paragraph((Text(text),))


WHOLE: dict[str, tuple[Block, ...]] = {
    "": (),
    " \n\n": (),
    "a *b **c*** ~~d~~ `e`": (
        Paragraph(
            (
                Text("a "),
                Italic((Text("b "), Bold((Text("c"),)))),
                Text(" "),
                Strike((Text("d"),)),
                Text(" "),
                Code("e"),
            )
        ),
    ),
    "a\nb  \nc": (Paragraph((Text("a"), SoftBreak(), Text("b"), LineBreak(), Text("c"))),),
    "## Two\n\n---": (Heading(2, (Text("Two"),)), Rule()),
    "```py x\n a\n\n```": (CodeBlock("py", " a"),),
    "    code\n": (CodeBlock("", "code"),),
    "> a\n> > b": (Quote((para("a"), Quote((para("b"),)))),),
    "- [x] a\n- [ ] **b**\n- [] c": (
        BulletList(
            (
                Item((para("a"),), checked=True),
                Item((Paragraph((Bold((Text("b"),)),)),), checked=False),
                Item((para("[] c"),)),
            )
        ),
    ),
    "3. a\n\n4. b": (OrderedList(3, (Item((para("a"),)), Item((para("b"),))), tight=False),),
    "|a|b|\n|:-|-:|\n|1|": (Table(((Text("a"),), (Text("b"),)), (Align.LEFT, Align.RIGHT), (((Text("1"),), ()),)),),
    "[l](http://a.b) ![i](c)": (Paragraph((Link("http://a.b", (Text("l"),)), Text(" "), Image("c", "i"))),),
    "<b>no</b> <!-- x -->\n\n<div>\n": (para("<b>no</b> <!-- x -->"), para("<div>")),
    "a [b]\n\n[b]: http://c.de\n[^1]: http://d.de": (
        Paragraph((Text("a "), Link("http://c.de", (Text("b"),)))),
        Paragraph((Text("¹ "), Link("http://d.de", (Text("http://d.de"),)))),
    ),
    "2*3*4 and a**2 + b**2, (a+b)*c*(d), x[1]*y*z": (para("2*3*4 and a**2 + b**2, (a+b)*c*(d), x[1]*y*z"),),
    "**2*3*4** and *one*s": (Paragraph((Bold((Text("2*3*4"),)), Text(" and "), Italic((Text("one"),)), Text("s"))),),
    "这是*重点*的": (Paragraph((Text("这是"), Italic((Text("重点"),)), Text("的"))),),
    "a\ud800b": (para("a\ufffdb"),),
    "a\x00b\x07c\r\nd": (Paragraph((Text("abc"), SoftBreak(), Text("d"))),),
}


@pytest.mark.parametrize("markdown", WHOLE)
def test_whole_texts(markdown: str) -> None:
    assert parse(markdown) == WHOLE[markdown]


GROWING: dict[str, tuple[Block, ...]] = {
    "**bold wi": (Paragraph((Bold((Text("bold wi"),)),)),),
    "**bold*": (Paragraph((Bold((Text("bold"),)),)),),
    "a **": (para("a"),),
    "a `": (para("a"),),
    "a `b": (Paragraph((Text("a "), Code("b"))),),
    "``a`": (Paragraph((Code("a"),)),),
    "~~a": (Paragraph((Strike((Text("a"),)),)),),
    "see [label](http://exa": (para("see label"),),
    "see [**label**](http://exa": (Paragraph((Text("see "), Bold((Text("label"),)))),),
    "see [lab": (para("see lab"),),
    "see ![alt](http:": (para("see alt"),),
    "see <http://ex": (para("see"),),
    "a &am": (para("a"),),
    "```py\nx = 1": (CodeBlock("py", "x = 1"),),
    "```py\nx = 1\n``": (CodeBlock("py", "x = 1"),),
    "text\n-": (para("text"),),
    "text\n---": (para("text"),),
    "text\n==": (para("text"),),
    "- a\n- ": (BulletList((Item((para("a"),)),)),),
    "- a\n- [x": (BulletList((Item((para("a"),)),)),),
    "- a\n  1.": (BulletList((Item((para("a"),)),)),),
    "| a | b": (),
    "text\n| a | b |\n|--": (para("text"),),
    "| a | b |\n|--|--|": (),
    "> | a |\n> |-": (),
    "a\n\n##": (para("a"),),
    "> ": (),
    "Hello!": (para("Hello!"),),
    "2*3": (para("2*3"),),
    "2*3*4": (para("2*3*4"),),
    "**2*3": (Paragraph((Bold((Text("2*3"),)),)),),
    "# a [b]\n": (Heading(1, (Text("a [b]"),)),),
    "**over\n\nnext *one": (para("**over"), Paragraph((Text("next "), Italic((Text("one"),))))),
}


@pytest.mark.parametrize("markdown", GROWING)
def test_growing_texts(markdown: str) -> None:
    assert parse(markdown, growing=True) == GROWING[markdown]


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_a_growing_text_shows_is_a_beginning_of_what_it_shows_in_the_end(sample: str) -> None:
    final = letters(parse(sample))
    for end in range(len(sample) + 1):
        shown = letters(parse(sample[:end], growing=True))
        assert final.startswith(shown), (sample[:end], shown)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_growing_text_is_not_held_back_for_long(sample: str) -> None:
    for end in range(len(sample) + 1):
        prefix = sample[:end]
        behind = len(letters(parse(prefix))) - len(letters(parse(prefix, growing=True)))
        assert behind <= 2 * max(map(len, sample.split("\n")))


@given(markdowns | st.text())
def test_nothing_raises(markdown: str) -> None:
    parse(markdown)
    parse(markdown, growing=True)


@given(st.lists(st.text(st.sampled_from("abcdeäß你𝔘"), min_size=1, max_size=8), max_size=30))
def test_every_letter_of_a_text_without_markup_is_in_the_tree(words: list[str]) -> None:
    assert letters(parse(" ".join(words))) == "".join(words)


@pytest.mark.parametrize(
    "deep", ["> " * 300 + "end", "- " * 300 + "end", "".join("  " * i + "- x\n" for i in range(99))]
)
def test_deep_nesting_loses_nothing(deep: str) -> None:
    assert letters(parse(deep)).endswith(deep.strip()[-1])
    assert letters(parse(deep, growing=True)).endswith(deep.strip()[-1])


def test_deep_emphasis_is_flat() -> None:
    blocks = parse("*a " * 3000 + "b* " * 3000)
    assert letters(blocks).startswith("a" * 3000)


PATHOLOGICAL = {
    "brackets": "[a](",
    "glued": "[a](b[",
    "titles": '[a](b "',
    "angles": "<a",
    "stars": "*a ",
    "crossed": "*a _b ",
    "ticks": "`a ",
    "escapes": "\\",
    "bars": "|a",
    "quotes": "> ",
    "dashes": "- ",
    "blanks": " ",
    "references": "[a][",
    "hashes": "# #",
    "entities": "&a",
    "pictures": "![",
    "formulas": "\\(a",
    "prices": "$a",
    "dollars": "$",
}


@pytest.mark.parametrize("unit", PATHOLOGICAL.values(), ids=PATHOLOGICAL.keys())
def test_time_grows_with_the_length_alone(unit: str) -> None:
    def spent(count: int) -> float:
        begin = time.process_time()
        parse(unit * count + "x", growing=True)
        return time.process_time() - begin

    spent(10)
    small, large = spent(500), spent(4000)
    assert large < 40 * max(small, 0.004)  # 8 times the text; were it quadratic, 64 times the time


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (r"So \(x\,dx\), \[\{a\}_1\] and $$a_b$$.", r"So x\,dx, \{a\}_1 and a_b."),
        ("\\[\na \\\\\n  b\n\\]", r"a \\ b"),
        (r"$\int x\,dx$ for $5 and $6", r"$\int x\,dx$ for $5 and $6"),
        (r"It is \[sic\] \(c\) and $**5** or 5$", "It is [sic] (c) and $5 or 5$"),
        (r"set $HOME_DIR/$PATH and \$A", "set $HOME_DIR/$PATH and $A"),
    ],
)
def test_a_formula_is_shown_as_it_was_written(said: str, shown: str) -> None:
    """Its backslashes are TeX's, not Markdown's."""
    assert flatten(parse(said)).text == shown


def test_what_stands_between_marks_of_formulas_is_code() -> None:
    assert [(span.style, span.start, span.end) for span in flatten(parse(r"\(a_*b*\)")).spans] == [(Style.CODE, 0, 5)]


def test_footnotes_are_raised_numbers_and_what_is_none_stays() -> None:
    said = "Term[^1] and more[^12], `[^1]`, [^note], [^0-9].\n\n[^1]: The first.\n[^12]: The second."
    assert parse(said) == (
        Paragraph(
            (Text("Term¹ and more¹², "), Code("[^1]"), Text(", [^note], [^0-9]."))
        ),
        Paragraph((Text("¹ The first."), SoftBreak(), Text("¹² The second."))),
    )  # fmt: skip


def test_a_footnote_with_a_name_is_the_name_in_brackets_and_a_pattern_stays() -> None:
    said = "A term[^note] and an end.[^the-end]\n\n[^note]: What it says.\n[^the-end]: That."
    assert parse(said) == (
        Paragraph((Text("A term[note] and an end.[the-end]"),)),
        Paragraph((Text("[note] What it says."), SoftBreak(), Text("[the-end] That."))),
    )
    assert letters(parse("So[^1].\n\n[^1]: Ibid.\n")) == "So¹.¹Ibid."
    for pattern in ("a [^abc] b", "^[^abc]+$", "ab[^cd]ef", "ab[^cd]*", "x[^ab] c"):
        assert parse(pattern) == (Paragraph((Text(pattern),)),)


@pytest.mark.parametrize("said", ["A term[^1] goes on.\n\n[^1]: So.", "A term[^note] goes on.\n\n[^note]: So."])
def test_a_footnote_that_is_half_written_is_not_shown(said: str) -> None:
    whole = letters(parse(said))
    for end in range(len(said)):
        assert whole.startswith(letters(parse(said[:end], growing=True)))


def test_a_footnote_that_is_an_address_is_a_link() -> None:
    link = Link("https://example.org/a", (Text("²"),))
    assert parse("See[^2].\n\n[^2]: https://example.org/a") == (Paragraph((Text("See"), link, Text("."))),)
    assert parse("[^3]: https://example.org/b")[0] == Paragraph(
        (Text("³ "), Link("https://example.org/b", (Text("https://example.org/b"),)))
    )


NOTHING_TO_SEE = [
    "> ",
    ">\n>\n> >",
    "#",
    "## ",
    "```\n```",
    "```only info\n```",
    "&nbsp;",
    "&#8203;",
    "![]()",
    "> ```\n> ```",
]


@pytest.mark.parametrize("markdown", NOTHING_TO_SEE)
def test_what_its_blocks_do_not_show_is_shown_as_it_was_written(markdown: str) -> None:
    said = "\n".join(doc_text(block) for block in parse(markdown))
    assert said.replace("\n", "").split() == markdown.replace("\n", "").split()
    assert is_visible(flatten(parse(markdown)).text)
    assert not parse(markdown, growing=True) or is_visible(markdown)


def doc_text(block: Block) -> str:
    assert isinstance(block, Paragraph)
    return inline_text(block.children, "\n")


def test_what_is_no_address_defines_nothing_and_stays_where_it_stands() -> None:
    assert flatten(parse("Log:\n\n[INFO]: started\n[WARN]: config.yaml\n\nend [INFO]")).text == (
        "Log:\n\n[INFO]: started\n[WARN]: config.yaml\n\nend [INFO]"
    )
    twice = flatten(parse("[Docs]: http://a.bc\n[docs]: http://d.ef\n\nRead them.")).text
    assert twice == "docs: http://d.ef\n\nRead them."  # a link to the first one
    assert flatten(parse("[Some Docs]: http://a.bc\n\nRead.")).text == "Read.\n\n[Some Docs]: http://a.bc"


@pytest.mark.parametrize(
    "markdown", ["[1]: https://a.bc\n\nx", "[INFO]: started\n\nx", "x\n\n[N]: mailto:a@b.cd", "> [a]: tg://x"]
)
def test_what_may_become_a_definition_is_not_shown_before_it_is_none(markdown: str) -> None:
    whole = flatten(parse(markdown)).text
    for length in range(markdown.index("]") + 1, len(markdown)):
        assert whole.startswith(flatten(parse(markdown[:length], growing=True)).text)


@pytest.mark.parametrize("before", ["", "> ", "- x\n\n  "])
def test_a_row_loses_none_of_its_cells(before: str) -> None:
    rest = "\n" + ("> " if before == "> " else "  " if before else "")
    table = before + rest.join(
        ["| a | b |", "|---|---|", "| 1 | 2 | three | four |", "| `x|y` | z |", "|5|", "|6|7| |"]
    )
    shown = flatten(parse(table), width=200).text
    assert "1  | 2 | three | four" in shown
    assert "`x | y` | z" in shown
    assert "7 |" not in shown


@pytest.mark.parametrize(
    ("markdown", "numbers"),
    [
        ("1. a\n1. b\n1. c", [1, 2, 3]),
        ("2. a\n4. b\n9. c\n10. d", [2, 4, 9, 10]),
        ("3. a\n2. b\n1. c", [3, 2, 1]),
        ("1. a\n1. b\n\n5. c\n6. d\n\n0. e", [1, 2, 5, 6, 0]),
    ],
)
def test_a_list_has_the_numbers_that_were_written(markdown: str, numbers: list[int]) -> None:
    lines = [line for line in flatten(parse(markdown)).text.split("\n") if line]
    assert [int(line.split(".")[0]) for line in lines] == numbers


@pytest.mark.parametrize("signs", [*itertools.permutations(["**", "_", "~~"])])
@pytest.mark.parametrize("many", [2, 3])
def test_emphasis_that_crosses_others_leaves_no_sign_behind_while_the_text_grows(
    signs: tuple[str, ...], many: int
) -> None:
    outer, *inner = signs[:many]
    markdown = f"{outer}one {' '.join(f'{sign}two' for sign in inner)}{outer} three and more"
    assert flatten(parse(markdown, growing=True)).text == flatten(parse(markdown)).text


@pytest.mark.parametrize(
    "line", ["Use `a | b` and then", "`ls | wc` counts", "- say `x|y` or `y|x` there", "a \\| b c"]
)
def test_a_line_with_a_bar_that_cannot_end_a_cell_is_shown_as_it_grows(line: str) -> None:
    assert flatten(parse(line, growing=True)).text == flatten(parse(line)).text


@pytest.mark.parametrize("markdown", ['(_"so it is"_) he said', '"_(so)_" and on', "(_so it is_) he said"])
def test_emphasis_that_begins_behind_a_bracket_or_a_quotation_mark_is_seen_as_it_grows(markdown: str) -> None:
    whole = flatten(parse(markdown)).text
    assert "_" not in whole
    for length in range(len(markdown)):
        assert whole.startswith(flatten(parse(markdown[:length], growing=True)).text)
