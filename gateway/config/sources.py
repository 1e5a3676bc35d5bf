"""Reads the places that configuration comes from: a TOML file, a ``.env`` file, small files with one secret each.

Each reader gives plain values together with where they stand, so that every complaint can name a file and a line. None of
them decides what a key means; gateway/config/reading.py does.
"""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAX_FILE_BYTES = 1_000_000
"""A configuration file, a key or a prompt that is larger than this is taken for the wrong file."""

TomlPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about the configuration that somebody must mend."""

    where: str
    """``file:line``, or the name of an environment variable."""
    what: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}{f' {self.fix}' if self.fix else ''}"


class Unreadable(Exception):
    """A source could not be read. Carries the problem in words."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def read_text(path: Path) -> str:
    """The text of a small file; `Unreadable` in words."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise Unreadable(Problem(str(path), "there is no such file.", "Create it, or correct the name.")) from None
    except ValueError:
        raise Unreadable(Problem(repr(str(path)), "cannot be the name of a file.", "Correct the name.")) from None
    except OSError as error:
        words = (error.strerror or type(error).__name__).lower()
        raise Unreadable(Problem(str(path), f"cannot be read: {words}.")) from None
    if len(raw) > MAX_FILE_BYTES:
        raise Unreadable(Problem(str(path), f"is larger than {MAX_FILE_BYTES} bytes, so it is hardly the right file."))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(Problem(f"{path}:{line}", "is not UTF-8 text.", "Save the file as UTF-8.")) from None


# --- TOML ---


@dataclass(frozen=True, slots=True)
class TomlFile:
    """What a TOML file says, and on which line."""

    path: Path
    values: Mapping[str, object]
    lines: Mapping[TomlPath, int] = field(default_factory=dict[TomlPath, int])

    def where(self, *path: str | int) -> str:
        """``file:line`` of a key, or of the nearest thing around it."""
        for length in range(len(path), 0, -1):
            if (line := self.lines.get(path[:length])) is not None:
                return f"{self.path}:{line}"
        return str(self.path)


_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)\s*$")


def read_toml(path: Path) -> TomlFile:
    """A TOML file with the line of each key; `Unreadable` with line and column of a mistake."""
    text = read_text(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        words = str(error)
        found = _POSITION.search(words)
        line, column = (found.group(1), found.group(2)) if found else (None, None)
        place = f"{path}:{line}:{column}" if line else f"{path}:{text.count(chr(10)) + 1}"
        what = f"is not valid TOML: {_POSITION.sub('', words)}."
        raise Unreadable(Problem(place, what, 'Texts need quotation marks: name = "gpt-5".')) from None
    except RecursionError:
        raise Unreadable(Problem(str(path), "is nested too deeply.")) from None
    return TomlFile(path, values, toml_lines(text))


_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=(.*)", re.DOTALL)
_MULTILINE = re.compile(r'"""|' + r"'''")


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


def toml_lines(text: str) -> dict[TomlPath, int]:
    """The line (from 1) of each table and key of a valid TOML text.

    tomllib does not tell positions before Python 3.14, and a second parser only for error messages would be one too many: this
    looks at the beginnings of lines outside multi-line strings. Keys inside inline tables are not found; `TomlFile.where` then
    names the line of the table.
    """
    lines: dict[TomlPath, int] = {}
    arrays: dict[TomlPath, int] = {}
    table: TomlPath = ()
    inside = ""  # the quotes of the multi-line string that this line begins in
    for number, line in enumerate(text.split("\n"), 1):
        rest = line
        if inside:
            _, closed, rest = line.partition(inside)
            if not closed:
                continue
            inside = ""
        elif header := _HEADER.match(line):
            table = _with_indexes(_parts(header.group(2)), arrays)
            if header.group(1) == "[[":
                arrays[table] = arrays.get(table, -1) + 1
                table = (*table, arrays[table])
            lines.setdefault(table, number)
            rest = ""
        elif key := _KEY.match(line):
            path = table
            for part in _parts(key.group(1)):
                path = (*path, part)
                lines.setdefault(path, number)
            rest = key.group(2)
        inside = _left_open(rest)
    return lines


def _with_indexes(parts: tuple[str, ...], arrays: Mapping[TomlPath, int]) -> TomlPath:
    """The path of a table header, in which a part that is an array of tables means its latest table."""
    path: TomlPath = ()
    for index, part in enumerate(parts):
        path = (*path, part)
        if index < len(parts) - 1 and path in arrays:
            path = (*path, arrays[path])
    return path


def _left_open(rest: str) -> str:
    """The quotes of a multi-line string that begins on a line and does not end there."""
    inside = ""
    for found in _MULTILINE.finditer(rest):
        if not inside:
            inside = found.group()
        elif inside == found.group():
            inside = ""
    return inside


# --- .env ---


@dataclass(frozen=True, slots=True)
class Variables:
    """Environment variables from one place."""

    values: Mapping[str, str] = field(repr=False)
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where each stands, if that is a file."""

    def where(self, name: str) -> str:
        """The variable in words: its name, and ``file:line`` if it comes from a file."""
        place = self.places.get(name)
        return f"{name} ({place})" if place else f"environment variable {name}"


_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def _dotenv_value(raw: str) -> str | None:
    """The value behind ``=``; None if its quotes do not close."""
    if raw[:1] in {'"', "'"}:
        found = re.fullmatch(
            r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?' if raw[0] == '"' else r"'([^']*)'\s*(?:#.*)?", raw, re.DOTALL
        )
        if found is None:
            return None
        if raw[0] == "'":
            return found.group(1)
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape.group(1), escape.group(1)), found.group(1))
    return re.sub(r"(?:^|\s+)#.*", "", raw, flags=re.DOTALL).strip()


def read_dotenv(path: Path) -> tuple[Variables, list[Problem]]:
    """The variables of a ``.env`` file: ``NAME=value`` lines, comments, quotes, ``export``. ``$NAME`` is not expanded.

    A line that is none of these is a problem, and the others count.
    """
    values: dict[str, str] = {}
    places: dict[str, str] = {}
    problems: list[Problem] = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        found = _ASSIGNMENT.fullmatch(stripped)
        value = _dotenv_value(found.group(2)) if found else None
        if found is None or value is None:
            fix = "Write NAME=value, with quotes around a value that holds # or spaces at its ends."
            problems.append(Problem(f"{path}:{number}", "is no assignment.", fix))
            continue
        values[found.group(1)] = value
        places[found.group(1)] = f"{path}:{number}"
    return Variables(values, places), problems


# --- small files ---


def read_value_file(path: Path) -> str:
    """What stands in a file that holds one value: its text without white space around it. `Unreadable` if there is none."""
    text = read_text(path).strip()
    if not text:
        raise Unreadable(Problem(str(path), "is empty.", "Write the value into it."))
    return text


def readable_by_all(path: Path) -> bool:
    """True if every user of this machine may read the file. False where that cannot be told."""
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & stat.S_IROTH)
    except (OSError, ValueError):
        return False
