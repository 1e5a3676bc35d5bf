"""What somebody may send to hold the gateway up: patterns, pages, answers in Markdown. Made by code, the same each time.

A pattern is searched in lines that make it costly; a page is bytes with headers; an answer is Markdown with a word at its beginning and one
at its end, by which it is seen that nothing of it is lost.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

# ---------------------------------------------------------------------- patterns

LINES = "\n".join(
    (
        "a" * 1_900 + "!", "ab" * 900 + "c", "x" * 30 + " " * 1_800, "1" * 1_900 + "z", "a," * 900, "((((" * 400, "\\" * 1_900, '"' * 1_901,
        "á" * 900, "\u202e" * 300, "<a " * 600, "foo bar baz " * 150, "aaaa@aaaa." * 180, "\t" * 1_900, "e\u0301" * 600, "0.0.0." * 300,
    )
)  # fmt: skip
"""What is searched, again and again."""

_NESTED = [
    "(a|a)*$", "(a+)+$", "(a*)*b", "(a|aa)+$", "(a|b|ab)*c", "([a-z]+)*[0-9]", "(.*a){12}", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(x+x+)+y", "((a+)+)+$", "(a?){40}a{40}", "(a{1,40}){1,20}$", "^(a+)*(b+)*(c+)*$", r"(\w+\s?)*$", r"(\w*\w*)*!", r"^(\d+)+$",
    r"(\s*\w*)*;", "(.+)+,(.+)+,(.+)+", "(a|a|a|a|a|a|a|a)*$", "([^,]*,)*$", "(?:a|b?)*c", r"(\\?.)*\"$", "(a*?)*?b", "(?i)(A+)+$",
    "(?s)(.*?)*b", "(?m)^(a+)+$", "((a|b)*c|(a|b)*d)*e", r"^(\S+\s+)*\S+$", "([ab]*)*([bc]*)*d",
]  # fmt: skip
_LARGE = [
    "a{1000}", "(a{100}){100}", "((a{100}){100}){100}", "(((a{1000}){1000}){1000}){1000}", "[a-z]{1,1000}x{1,1000}", "(.{1,500}){2}",
    "|".join(f"w{n}" for n in range(100)), "(" * 120 + "a" + ")" * 120, "(" * 240 + ")" * 240, "a?" * 120 + "a" * 120, ".*" * 200 + "x",
    r"\pL{1,300}\pN", r"[^\x00-\x{10FFFF}]", "[[:alpha:]]{1,900}", "(?:" * 100 + "a" + "*)" * 100, "x*" * 240, "(|a)+" * 40, ".{0,900}$.{0,900}^",
]  # fmt: skip
_UNKNOWN = [
    r"(a)\1", "(?=a)a", "(?!a)b", "(?<=a)b", "(?<!a)b", "(?>a+)b", "a++b", "(?P=x)", r"\Ga", r"(?(1)a|b)", r"\u0041", "(?#c)a", r"a\Z",
]  # fmt: skip
_BROKEN = [
    "(",
    "[",
    "*",
    "a{2,1}",
    "\\",
    "[z-a]",
    "(?P<a>",
    "(?x",
    "[[:none:]]",
    "\ud800",
    "\0",
    "(?P<a>b)(?P<a>c)",
    r"\p{None}",
    ")",
]
PATTERNS: tuple[str, ...] = (*_NESTED, *_LARGE, *_UNKNOWN, *_BROKEN)

# ---------------------------------------------------------------------- pages

SIZE = 400_000
HTML = "text/html"


@dataclass(frozen=True, slots=True)
class Page:
    """What a server answers."""

    name: str
    body: bytes
    kind: str = HTML
    packed: str = ""
    headers: tuple[tuple[str, str], ...] = ()


def _filled(unit: str, size: int = SIZE) -> bytes:
    return (unit * (size // len(unit.encode()) + 1)).encode()[:size]


_UNITS = {
    "an attribute that never ends": '<a b="', "open tags": "<b>", "nested blocks": "<div>", "tables in tables": "<table><tr><td>",
    "links in links": "<a href=x>", "misnested": "<a><b></a>", "paragraphs with fonts": "<p><font color=a>", "comments": "<!--",
    "closed comments": "<!---->", "sections": "<![CDATA[", "options": "<select><option>", "angles": "<", "closing angles": ">",
    "drawings": "<svg><a>", "formulas": "<math><mi>", "templates": "<template>", "forms": "<form>", "scripts": "<script>",
    "raw text": "<textarea>", "items": "<li>", "terms": "<dd><dt>", "no break": "<nobr>", "ends only": "</p>", "breaks": "</br>",
    "entities": "&amp;", "half entities": "&notit;", "numbered entities": "&#x10FFFF;", "ampersands": "&", "foster parents": "<table>x<tr>",
    "headings": "<h1><h2>", "frames": "<frameset>", "declarations": "<!DOCTYPE html>", "processing": "<?x ", "quotes": "'\"",
    "words": "word ", "blank lines": "\n", "links": '<a href="//[::1">x</a>', "relative links": '<a href="../../../../a">x</a>',
    "long classes": '<i class="a b c d e f g">', "buttons": "<button>", "plain text": "<plaintext>", "ruby": "<ruby><rt>", "marquees": "<marquee>",
}  # fmt: skip

CHARSETS = (
    "punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "rot13", "zlib", "bz2", "base64", "hex", "uu", "quopri", "undefined",
    "mbcs", "utf-16", "utf-32", "utf-8-sig", "hz", "iso-2022-kr", "iso-2022-jp", "big5", "gb18030", "euc-kr", "shift_jis", "x-user-defined",
    "none-such", "a" * 5_000, "utf-8;" * 300, "\"", "..", "/etc/passwd", "__import__", "%s%s%s", "koi8-u", "macintosh",
)  # fmt: skip


def pages() -> Iterator[Page]:
    """All of them."""
    yield from (Page(name, _filled(unit)) for name, unit in _UNITS.items())
    body = _filled("a-", 300_000)
    yield from (Page(f"charset {charset[:30]}", body, f"text/plain; charset={charset}") for charset in CHARSETS)
    attributes = " ".join(f"x{n}=1" for n in range(30_000))
    yield Page("a tag with many attributes", f"<a {attributes}>".encode())
    yield Page(
        "formatting that is opened again", ("".join(f"<i x={n}>" for n in range(2_000)) + "<p>x</p>" * 20_000).encode()
    )
    yield Page("a declared charset", b"<meta charset=punycode>" + body)
    yield Page("a declaration without an end", b"<meta " + b"x" * 300_000 + b"charset=utf-8>")
    yield Page("a bomb", gzip.compress(bytes(60_000_000), 6), "text/plain", "gzip")
    yield Page("a bomb of markup", gzip.compress(b"<div>" * 8_000_000, 6), HTML, "gzip")
    yield Page("a bomb, deflated", zlib.compress(b" " * 60_000_000, 6), "text/plain", "deflate")
    yield Page("packed twice", gzip.compress(gzip.compress(b"x" * 50_000_000)), "text/plain", "gzip, gzip")
    yield Page("not packed, though it says so", b"x" * 300_000, "text/plain", "gzip")
    yield Page("packed in an unknown way", b"x" * 300_000, "text/plain", "br")
    yield Page("a torn archive", gzip.compress(b"word " * 100_000)[:-900], "text/plain", "gzip")
    yield Page("nothing", b"")
    yield Page("zeros", bytes(300_000), "text/plain")
    yield Page("half characters", b"\xff\xfe" + b"\x00\xd8" * 150_000, "text/plain")
    yield Page("a type of many parameters", b"x", "text/plain" + ";a=b" * 1_500)
    yield Page("a type of quotes", b"x", 'text/plain; charset="' + '\\"' * 3_000)
    yield Page(
        "many cookies",
        b"x",
        "text/plain",
        "",
        tuple(("Set-Cookie", f"a{n}={'b' * 100}; Path=/; " + ";" * 200) for n in range(60)),
    )
    yield Page("many links", b"x", "text/plain", "", (("Link", "<" + "a" * 3_000 + '>; rel="' + "x;" * 1_000),))
    yield Page("a far address", b"", "text/plain", "", (("Location", "/" + "../" * 2_500),))


# ---------------------------------------------------------------------- answers

FIRST, LAST = "Alphaword", "Omegaword"
LONG = 12_000
"""Several messages of every platform, and more than the loop formats by itself."""

_ANSWERS = {
    "images": "![", "links": "[a](", "label after label": "[a][", "brackets": "[", "closing brackets": "]", "quotes within quotes": "> ",
    "stars": "*", "bold": "**a ", "slanted and bold": "*a_b**c__", "mixed": "_a*", "words with stars": "a*b ", "ticks": "`",
    "ticks of two lengths": "a`b``", "tildes": "~~a ", "angles": "<", "addresses": "<http://a.b>", "tags": '<a b="', "entities": "&amp;",
    "numbered entities": "&#1;", "flags": "\U0001f1e9", "joined emoji": "\U0001f468\u200d", "accents": "\u0301", "blank lines": "\n",
    "bars": "|a", "tables": "|a|b|\n|-|-|\n|1|2|\n\n", "definitions": "[a]: x\n", "rules": "***\n", "backslashes": "\\", "numbered": "1. a\n",
    "headings": "# a\n", "fences": "```\n", "fences of tildes": "~~~~\n", "quoted lines": ">a\n", "underlined": "a\n=\n", "titles": "[a](b 'c",
    "brackets in links": "[a](((", "hard breaks": "a  \n", "a wide word": "漢", "a long word": "x", "spaces": " ", "tabs": "\t", "returns": "\r",
    "marks for direction": "\u202e", "half characters": "\ud800", "zero width": "\u200b", "indented code": "    a\n\n", "tasks": "- [ ] a\n",
    "nested quotes": ">" * 30 + "a\n", "nested lists": "".join("  " * n + "- a\n" for n in range(15)), "escaped": r"\*\_\[",
}  # fmt: skip


def answers() -> Iterator[tuple[str, str]]:
    """(name, Markdown)"""
    for name, unit in _ANSWERS.items():
        yield name, f"{FIRST}\n\n{unit * (LONG // len(unit) + 1)}"[:LONG] + f"\n\n{LAST}\n"
    yield "one line without an end", FIRST + " " + "word " * 20_000 + LAST
    yield "a deep quote", FIRST + "\n\n" + ">" * 10_000 + " x\n\n" + LAST
    yield "a deep list", FIRST + "\n\n" + "\n".join(" " * 2 * n + "- x" for n in range(200)) + "\n\n" + LAST
    yield (
        "a wide table",
        FIRST + "\n\n" + "|a" * 3_000 + "|\n" + "|-" * 3_000 + "|\n" + ("|b" * 3_000 + "|\n") * 5 + "\n" + LAST,
    )
    yield "a cell of flags", FIRST + "\n\n|a|\n|-|\n|" + "\U0001f1e9" * 20_000 + "|\n\n" + LAST
    yield "code that nobody closes", FIRST + "\n\n```python\n" + "x = 1\n" * 10_000 + LAST
    yield (
        "emphasis within emphasis",
        FIRST + "\n\n" + "".join("*_"[n % 2] * (n % 3 + 1) + "a" for n in range(15_000)) + "\n\n" + LAST,
    )
    yield (
        "a hundred thousand characters of ordinary text",
        FIRST + "\n\n" + "Some **words** with `code`, and [a link](https://example.org).\n\n" * 1_500 + LAST,
    )
