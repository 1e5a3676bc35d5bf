"""Long code as files: a chat is no place to read, or to copy, hundreds of lines. So is code that a chat cannot show as it is.

Theory. A code block over the limits is taken out of the text, and a paragraph that names the file stands in its place. The
file's name is the one that the code gives itself in its first line, if that is harmless; else a number.

Laws (tests hold them): names are unique and safe on every system (no separators, no leading dot, nothing reserved); each
code block is either in the text or a file, in the same order; other blocks stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import assert_never

from adapters.text import document as doc
from adapters.text.codefile import CodeFile
from agent_core.records import dataclass
from agent_core.text.patterns import late

LINES = 60
CHARS = 3000

_EXTENSIONS = {
    "ada": "adb", "asm": "asm", "awk": "awk", "bash": "sh", "bat": "bat", "c": "c", "c#": "cs", "c++": "cpp",
    "clojure": "clj", "cmake": "cmake", "console": "txt", "cpp": "cpp", "cs": "cs", "csharp": "cs", "css": "css",
    "csv": "csv", "cuda": "cu", "d": "d", "dart": "dart", "diff": "diff", "dockerfile": "dockerfile", "elixir": "ex",
    "erlang": "erl", "fortran": "f90", "fsharp": "fs", "go": "go", "golang": "go", "graphql": "graphql",
    "groovy": "groovy", "haskell": "hs", "hcl": "tf", "html": "html", "ini": "ini", "java": "java",
    "javascript": "js", "js": "js", "json": "json", "jsonc": "json", "jsonl": "jsonl", "jsx": "jsx", "julia": "jl",
    "kotlin": "kt", "latex": "tex", "less": "less", "lisp": "lisp", "lua": "lua", "makefile": "mk", "markdown": "md",
    "matlab": "m", "md": "md", "nim": "nim", "nix": "nix", "objective-c": "m", "ocaml": "ml", "patch": "diff",
    "perl": "pl", "php": "php", "powershell": "ps1", "prolog": "pl", "proto": "proto", "protobuf": "proto",
    "ps1": "ps1", "py": "py", "python": "py", "python3": "py", "r": "r", "rb": "rb", "rs": "rs", "ruby": "rb",
    "rust": "rs", "sass": "sass", "scala": "scala", "scheme": "scm", "scss": "scss", "sh": "sh", "shell": "sh",
    "solidity": "sol", "sql": "sql", "svelte": "svelte", "svg": "svg", "swift": "swift", "tcl": "tcl",
    "terraform": "tf", "tex": "tex", "text": "txt", "toml": "toml", "ts": "ts", "tsx": "tsx", "txt": "txt",
    "typescript": "ts", "verilog": "v", "vhdl": "vhd", "vim": "vim", "vue": "vue", "xml": "xml", "yaml": "yaml",
    "yml": "yaml", "zig": "zig", "zsh": "zsh",
}  # fmt: skip
_COMMENT = late(r"(?:#|//|--|;|%|/\*|<!--)\s*(?:file(?:name)?\s*:\s*)?(\S{1,200})\s*(?:\*/|-->)?\s*", re.IGNORECASE)
_SAFE_PATH = late(r"(?:[\w-][\w.-]{0,63}/){0,8}([A-Za-z0-9_][\w.-]{0,63}\.[A-Za-z0-9]{1,10})", re.ASCII)
_RESERVED = late(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


@dataclass(slots=True)
class _Lift:
    lines: int
    chars: int
    fits: Callable[[str], bool]
    files: list[CodeFile] = field(default_factory=list[CodeFile])
    names: set[str] = field(default_factory=set[str])


def lift_long_code(
    blocks: Sequence[doc.Block],
    lines: int = LINES,
    chars: int = CHARS,
    fits: Callable[[str], bool] = lambda _: True,
) -> tuple[tuple[doc.Block, ...], tuple[CodeFile, ...]]:
    """The blocks with a note in place of each code block of more lines or characters, or that does not fit, and the files."""
    lift = _Lift(lines, chars, fits)
    return _blocks(lift, blocks), tuple(lift.files)


def extension(language: str) -> str:
    """What files of a language end with; `txt` if that is not known."""
    return _EXTENSIONS.get(language.lower(), "txt")


def _blocks(lift: _Lift, blocks: Sequence[doc.Block]) -> tuple[doc.Block, ...]:
    return tuple(_block(lift, block) for block in blocks)


def _block(lift: _Lift, block: doc.Block) -> doc.Block:
    match block:
        case doc.CodeBlock():
            return _code(lift, block)
        case doc.Quote(inside):
            return doc.Quote(_blocks(lift, inside))
        case doc.BulletList(items) | doc.OrderedList(_, items):
            return replace(block, items=tuple(replace(item, blocks=_blocks(lift, item.blocks)) for item in items))
        case doc.Paragraph() | doc.Heading() | doc.Table() | doc.Rule():
            return block
        case _:
            assert_never(block)


def _code(lift: _Lift, block: doc.CodeBlock) -> doc.Block:
    count = block.text.count("\n") + 1
    if count <= lift.lines and len(block.text) <= lift.chars and lift.fits(block.text):
        return block
    number = len(lift.files) + 1
    name = _unique(_own_name(block.text) or f"code-{number}.{extension(block.language)}", lift.names)
    lift.names.add(name.lower())
    lift.files.append(CodeFile(name, block.language, block.text + "\n"))
    return doc.Paragraph((doc.Text(f"(code: {name}, {count} {'line' if count == 1 else 'lines'}: see below)"),))


def _own_name(text: str) -> str:
    """The name that the code's first line gives it, without folders; empty if there is none, or it is not safe."""
    comment = _COMMENT.fullmatch(text.partition("\n")[0].strip())
    path = _SAFE_PATH.fullmatch(comment.group(1)) if comment else None
    if path is None or _RESERVED.fullmatch(path.group(1)):
        return ""
    return path.group(1)


def _unique(name: str, taken: set[str]) -> str:
    stem, dot, end = name.rpartition(".")
    number = 1
    found = name
    while found.lower() in taken:
        number += 1
        found = f"{stem}-{number}{dot}{end}"
    return found
