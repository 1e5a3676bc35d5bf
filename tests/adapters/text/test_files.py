"""Long code as files."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.text.codefile import CodeFile
from adapters.text.document import BulletList, CodeBlock, Item, Paragraph, Quote, Text
from adapters.text.files import extension, lift_long_code
from adapters.text.parse import parse
from tests.adapters.text.strategies import markdowns

LONG = "x\n" * 79 + "x"


def test_long_code_becomes_a_file() -> None:
    blocks, files = lift_long_code(parse(f"a\n\n```python\n{LONG}\n```\n\nb"))
    assert files == (CodeFile("code-1.py", "python", LONG + "\n"),)
    assert blocks[1] == Paragraph((Text("(code: code-1.py, 80 lines: see below)"),))
    assert len(blocks) == 3


def test_one_long_line_becomes_a_file() -> None:
    _, files = lift_long_code((CodeBlock("", "x" * 3001),))
    assert [file.name for file in files] == ["code-1.txt"]


def test_short_code_stays() -> None:
    blocks = parse("```\na\n```")
    assert lift_long_code(blocks) == (blocks, ())


def test_code_in_quotes_and_lists_is_found() -> None:
    code = CodeBlock("js", LONG)
    blocks, files = lift_long_code((Quote((code,)), BulletList((Item((code,)),))))
    assert [file.name for file in files] == ["code-1.js", "code-2.js"]
    assert "x\n" not in repr(blocks)


NAMES = {
    "# file: foo.py": "foo.py",
    "// src/foo.ts": "foo.ts",
    "/* a/b.css */": "b.css",
    "<!-- index.html -->": "index.html",
    "-- filename: q.sql": "q.sql",
    "# ../../etc/passwd.txt": "code-1.py",
    "# file: ..": "code-1.py",
    "# .bashrc": "code-1.py",
    "# /etc/x.conf": "code-1.py",
    "# con.txt": "code-1.py",
    "# C:\\x.txt": "code-1.py",
    "# a\u202egpj.exe": "code-1.py",
    "# a comment": "code-1.py",
    "#!/usr/bin/env": "code-1.py",
    "foo.py": "code-1.py",
}


@pytest.mark.parametrize("line", NAMES)
def test_names_from_the_first_line(line: str) -> None:
    _, files = lift_long_code((CodeBlock("py", f"{line}\n{LONG}"),))
    assert files[0].name == NAMES[line]


def test_names_are_unique_whatever_their_case() -> None:
    _, files = lift_long_code([CodeBlock("py", f"# {name}\n{LONG}") for name in ("a.py", "A.py", "a-2.py", "a.py")])
    assert [file.name for file in files] == ["a.py", "A-2.py", "a-2-2.py", "a-3.py"]


@pytest.mark.parametrize(
    ("language", "end"), [("Python", "py"), ("c++", "cpp"), ("rust", "rs"), ("", "txt"), ("../x", "txt")]
)
def test_extensions(language: str, end: str) -> None:
    assert extension(language) == end


@given(markdowns, st.integers(0, 3), st.integers(0, 20))
def test_code_is_in_the_text_or_a_file(markdown: str, lines: int, chars: int) -> None:
    blocks = parse(markdown)
    rest, files = lift_long_code(blocks, lines, chars)
    assert len(rest) == len(blocks)
    assert len({file.name.lower() for file in files}) == len(files)
    assert all(re.fullmatch(r"[\w][\w.-]*\.\w+", file.name, re.ASCII) for file in files)
    before = [block.text for block in blocks if isinstance(block, CodeBlock)]
    names = {f"code: {file.name}": file.text for file in files}
    after = [_code(block, names) for old, block in zip(blocks, rest, strict=True) if isinstance(old, CodeBlock)]
    assert after == before


def _code(block: object, names: dict[str, str]) -> str:
    if isinstance(block, CodeBlock):
        return block.text
    assert isinstance(block, Paragraph)
    text = block.children[0]
    assert isinstance(text, Text)
    return names[text.text.removeprefix("(").partition(",")[0]].removesuffix("\n")
