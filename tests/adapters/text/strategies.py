"""Texts as models write them, and worse."""

from __future__ import annotations

from hypothesis import strategies as st

FRAGMENTS = (
    *("**", "*", "_", "__", "~~", "`", "``", "```\n", "```py\n", "~~~\n", "[", "](", ")", "![", "<", ">", "> ", "> > "),
    *("- ", "  - ", "    - ", "- [ ] ", "- [x] ", "* ", "1. ", "12) ", "# ", "### ", " #", "---\n", "***\n", "===\n"),
    *(
        "| a | b |\n|---|:-:|\n",
        "| c | d |\n",
        "|",
        "|--",
        "\\",
        "&amp;",
        "&nbsp;",
        "&",
        "&#0;",
        "<b>",
        "</b>",
        "<!-- ",
    ),
    *(
        "[x](https://example.com/a)",
        "[`c`](http://a.org)",
        "[x](javascript:a)",
        "![p](http://x.de/p.png)",
        "<http://a.b>",
    ),
    *(
        "**bold** ",
        "*it* ",
        "`code` ",
        "~~no~~ ",
        "[r]: http://a.de\n",
        "[r]",
        "***both*** ",
        "https://example.com/x?a=b ",
    ),
    *(
        "👨‍👩‍👧‍👦",
        "👍🏽",
        "🇩🇪🇫🇷",
        "e\u0301",
        "नि",
        "שלום ",
        "مرحبا ",
        "你好。再见。",
        "𝔘𝔫𝔦",
        "\u200b",
        "\u3164",
        "\ufe0f",
        "\u0301",
    ),
    *("\x00", "\x07", "\x1f", "\u2028", "\u00a0", "\r\n", "\r", "\t", "\ud800", "\ufffe"),
    *(
        "word ",
        "A sentence. ",
        "Another one! ",
        "x" * 50,
        "lorem ipsum " * 8,
        " ",
        "  ",
        "    ",
        "\n",
        "\n\n",
        "\n    ",
    ),
)

_fragment = st.sampled_from(FRAGMENTS) | st.text(max_size=6)
markdowns = (st.lists(_fragment, max_size=12) | st.lists(_fragment, min_size=12, max_size=40)).map("".join)
"""Any text, most of them with much markup."""

words = st.text(st.sampled_from("abcdefghijkl äßé𝔘你👍🏽\u0301\u200d🇩🇪.!\n"), max_size=60)

SAMPLES = (
    "Plain words, over two lines\nand one more paragraph.\n\nThe end",
    "# Title\n\nSome **bold words**, *italic ones*, ***both***, ~~gone~~ and `some code`.\n\n## Next *one*\n\nEnd",
    "Title\n=====\n\nText\n\nOther\n---\n\nText",
    "Before\n\n```python\ndef f(x):\n    return x\n```\n\nAfter\n\n~~~\nmore\n~~~\n",
    "- one\n- two **bold**\n  - inner `code`\n  - inner two\n- three\n\n1. first\n2. second\n10. last",
    "- [ ] to do\n- [x] done with *style*\n- [X] done",
    "> quoted **text**\n> goes on\n>\n> > inner\n\nAfter",
    'Look at [the **page**](https://example.com/a_b?c=d "title") and <https://example.org/x> or ![a cat](http://c.de/c.png).',
    "| name | value |\n|------|------:|\n| one | **two** |\n| `three` | four |\n\nAfter the table",
    "Intro\n\na | b\n--|--\n1 | 2\n",
    "para\n\n***\n\npara\n\n---\n\nlast &amp; *least*",
    "> - a\n> - b\n>\n> ```js\n> let x\n> ```\n\n1. x\n\n   para\n\n2. y",
    "__under__ and _score_ snake_case_word and **nested *deep ~~er~~* end**",
    "你好**粗体**世界，*斜体*。👍🏽 **fett 👨‍👩‍👧** 🇩🇪",
    "``code with ` tick`` and `` `x` `` done",
    "Line one  \nline two\\\nline three **over\ntwo lines** end",
    "Use `a | b` in a shell, then `c || d` too.\nMore.",
    "Escaped \\*stars\\* and \\_scores\\_ \\[no link\\] done",
    "So \\(x_{1}\\) and $\\frac{a}{b}\\,dx$:\n\\[\nE = mc^2 \\; \\{*x*\\}\n\\]\nor $$\\sum_i i$$ **for $5** and $6 \\[sic\\] and \\(c\\)",
)
"""Good Markdown, in which no marker is meant to be seen."""
