"""The places that configuration comes from, which know where each value stands.

Each source gives its tables when it is called, and says `at` which line or in which variable a key was set, so that every complaint
can name the place. None of them decides what a key means; gateway/config/reading.py does.

Known to be weak: keys inside inline tables have no line of their own (the line of the table is named).
"""

from __future__ import annotations

import re
import stat
from collections.abc import Container, Mapping
from io import StringIO
from pathlib import Path
from typing import cast

from agent_core.records import dataclass
from agent_core.text.patterns import late
from gateway.config.keys import describe
from gateway.config.sections import schema
from gateway.config.types import NamedTables, named_tables

MAX_FILE_BYTES = 1_000_000
"""A configuration file, a key or a prompt that is larger than this is taken for the wrong file."""

Key = tuple[str, str]
"""Section and key."""
TomlPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """Something about the configuration that somebody must mend."""

    where: str
    """``file:line``, or the name of an environment variable."""
    what: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}{f' {self.fix}' if self.fix else ''}"


class UnreadableSource(Exception):
    """A source could not be read. Carries the problem in words."""

    def __init__(self, where: str, what: str, fix: str = "") -> None:
        self.problem = ConfigProblem(where, what, fix)
        super().__init__(str(self.problem))


def is_there(path: Path) -> bool:
    """Whether something is to be read, if only a link that leads nowhere. What this user may not look for may be there: that is
    `UnreadableSource`, and no "no"."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        raise _unreadable(path, error) from None
    return True


def _unreadable(path: Path, error: OSError) -> UnreadableSource:
    fix = "Let this user read it, and enter the directories above it." if isinstance(error, PermissionError) else ""
    return UnreadableSource(str(path), f"cannot be read: {(error.strerror or type(error).__name__).lower()}.", fix)


def read_text(path: Path) -> str:
    """The text of a small file; `UnreadableSource` in words."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise UnreadableSource(str(path), "does not exist.", "Create it, or correct the name.") from None
    except ValueError:
        raise UnreadableSource(repr(str(path)), "cannot be the name of a file.", "Correct the name.") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(raw) > MAX_FILE_BYTES:
        raise UnreadableSource(str(path), f"is larger than {MAX_FILE_BYTES} bytes, so it is hardly the right file.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UnreadableSource(f"{path}:{line}", "is not UTF-8 text.", "Save the file as UTF-8.") from None


def read_value_file(path: Path) -> str:
    """What stands in a file that holds one value: its text without white space around it. `UnreadableSource` if there is none."""
    text = read_text(path).strip()
    if not text:
        raise UnreadableSource(str(path), "is empty.", "Write the value into it.")
    return text


def readable_by_all(path: Path) -> bool:
    """True if every user of this machine may read the file. False where that cannot be told."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and bool(mode & stat.S_IROTH)


# --- variables ---


class Variables:
    """The variables of one place: not the process's own, but those that are handed over, by every name that a key has.

    Empty ones count as not set, because container tools set variables that way which nobody filled in.
    """

    def __init__(self, values: Mapping[str, str], places: Mapping[str, str] | None = None) -> None:
        self.values = values
        self._places = places or {}
        """In words, where each stands, if that is a file."""
        self._names: dict[Key, str] = {
            (doc.section, doc.key): name
            for doc in describe()
            if (name := next((name for name in doc.env if values.get(name, "").strip()), ""))
        }

    def __call__(self) -> dict[str, object]:
        """What they say, by section and key; all of it is text."""
        said: dict[str, dict[str, object]] = {}
        for (section, key), name in self._names.items():
            said.setdefault(section, {})[key] = self.values[name].strip()
        return {**said}

    def where(self, name: str) -> str:
        """The variable in words: its name, and ``file:line`` if it comes from a file."""
        return self._places.get(name, f"{name} (environment)")

    def at(self, *path: str | int) -> str:
        """The variable that sets a key, or what is in it, in words."""
        section, key = path[:2]
        return self.where(self._names[str(section), str(key)])


def read_dotenv(path: Path, *, hidden: Container[str] = ()) -> tuple[Variables, list[ConfigProblem]]:
    """The variables of a ``.env`` file: ``NAME=value`` lines, comments, quotes, ``export``. ``$NAME`` is not expanded.

    A line that is none of these is a problem, and the others count. Line by line, because `setup` changes such files by lines.
    """
    from dotenv.parser import parse_stream  # most have no such file

    values: dict[str, str] = {}
    places: dict[str, str] = {}
    problems: list[ConfigProblem] = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        for found in parse_stream(StringIO(line)):
            if found.key is not None and found.value is not None:
                if found.key in hidden:
                    continue
                values[found.key] = found.value
                places[found.key] = f"{found.key} ({path}:{number})"
            elif found.error or found.key is not None:
                fix = "Write NAME=value, with quotes around a value that holds # or spaces at its ends."
                problems.append(ConfigProblem(f"{path}:{number}", "is no assignment.", fix))
    return Variables(values, places), problems


# --- TOML ---


class TomlFile:
    """What a TOML file says, and on which line. Raises `UnreadableSource` with line and column of a mistake."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[TomlPath, int] = {}
        self.headers: dict[TomlPath, str] = {}
        """Of tables with a name of their own, by where they stand in the configuration: as they are written."""
        self._values = self._read()

    def _read(self) -> dict[str, object]:
        import tomllib

        text = read_text(self.path)
        try:
            values: dict[str, object] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            words = str(error)
            found = _POSITION.search(words)
            line, column = (found.group(1), found.group(2)) if found else (None, None)
            place = f"{self.path}:{line}:{column}" if line else f"{self.path}:{text.count(chr(10)) + 1}"
            what = f"is not valid TOML: {_POSITION.sub('', words)}."
            twice = words.startswith("Cannot")  # overwrite, declare, mutate: what stands further up
            fix = (
                "Say each section, and in it each key, once."
                if twice
                else 'Texts need quotation marks: name = "gpt-5".'
            )
            raise UnreadableSource(place, what, fix) from None
        except RecursionError:
            raise UnreadableSource(str(self.path), "is nested too deeply.") from None
        self._lines = toml_lines(text)
        for section, key in _sections_of_tables().items():
            for name, place in _put_in_list(section, key, values).items():
                self.headers[section, key, place] = f"[{section}.{name}]"
                self._move((section, name), (section, key, place))
        return values

    def _move(self, old: TomlPath, new: TomlPath) -> None:
        """What stands below `old` in the file stands below `new` in the configuration."""
        below = {path: line for path, line in self._lines.items() if path[: len(old)] == old}
        for path, line in below.items():
            del self._lines[path]
            self._lines.setdefault(new[:2], line)
            self._lines[*new, *path[len(old) :]] = line

    def __call__(self) -> dict[str, object]:
        """In the order of the file, in which problems are told."""
        return self._values

    def at(self, *path: str | int) -> str:
        """``file:line`` of a key, or of the nearest thing around it."""
        for length in range(len(path), 0, -1):
            if (line := self._lines.get(path[:length])) is not None:
                return f"{self.path}:{line}"
        return str(self.path)


def _sections_of_tables() -> Mapping[str, str]:
    """Sections in which people write tables with a name each, ``[section.NAME]``, and the key that holds all of these."""
    kinds = ((section, field.annotation) for section, field in schema().model_fields.items())
    return {section: kind.tables for section, kind in kinds if isinstance(kind, type) and issubclass(kind, NamedTables)}


def _put_in_list(section: str, key: str, values: dict[str, object]) -> Mapping[str, int]:
    """Put the named tables of a section into the list of them, with their names. Returns their places in it."""
    table = values.get(section)
    if not isinstance(table, dict):
        return {}
    here = cast("dict[str, object]", table)
    tables = {name: one for name, one in here.items() if name != key}
    named = {name: cast("dict[str, object]", one) for name, one in tables.items() if isinstance(one, dict)}
    listed = named_tables(here.get(key, []))
    if not named or not isinstance(listed, list):
        return {}
    every = cast("list[object]", listed)
    rest = {name: one for name, one in here.items() if name not in named}
    values[section] = rest | {key: [*every, *({"name": name, **one} for name, one in named.items())]}
    return {name: len(every) + number for number, name in enumerate(named)}


_POSITION = late(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)\s*$")
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_BEGINNING = late(rf"\s*(?:(\[\[?)\s*({_DOTTED})\s*\]|({_DOTTED})\s*=)")
_TEXT = late(r'''""".*?(?<!\\)(?:\\\\)*"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|\#[^\n]*''', re.DOTALL)


def toml_lines(text: str) -> dict[TomlPath, int]:
    """The line (from 1) of each table and key of a valid TOML text.

    tomllib does not tell positions, and a second parser only for error messages would be one too many: this looks at the
    beginnings of lines outside texts of several lines. Keys inside inline tables are not found.
    """
    lines: dict[TomlPath, int] = {}
    arrays: dict[TomlPath, int] = {}
    table: TomlPath = ()
    for number, line in enumerate(_TEXT.sub(_in_one_piece, text).split("\n"), 1):
        found = _BEGINNING.match(line)
        if found is None:
            continue
        brackets, header, key = found.groups()
        path: TomlPath = () if header else table
        for part in re.findall(_PART, header or key):
            path = (*path, arrays[path]) if header and path in arrays else path
            path = (*path, part.strip("\"'"))
            if key:
                lines.setdefault(path, number)
        if header:
            if brackets == "[[":
                arrays[path] = arrays.get(path, -1) + 1
                path = (*path, arrays[path])
            table = path
            lines.setdefault(table, number)
    return lines


def _in_one_piece(found: re.Match[str]) -> str:
    """A text of several lines as so many empty lines; other texts, which may be keys, as they are."""
    words = found.group()
    return "\n" * words.count("\n") if words[0] == "#" or words[:3] in {'"""', "'" * 3} else words
