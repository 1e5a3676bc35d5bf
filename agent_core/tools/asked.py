"""What a person is asked to agree to: a call's arguments so that nothing decisive is hidden. Pure.

Each argument has a line of its own, its value stands in quotes, and what cannot be seen is written out, so that no value can pass for another
argument, for the question or for nothing. What says where something happens (a path, an address, a command) is whole; when all of it is too
long for one message of a chat, the longest others are cut, in their middle, and the line says by how much. Where what decides would have to be cut
itself, nobody is asked (`unasked`): two calls that look the same are not to be told apart by what is left out. The host of an address is named as
it is called.

Where it is known what a call makes of a file, that stands below as a diff (`changed`), in the place of the arguments that it shows.

Laws (tests/agent_core/test_asked.py): every argument is named, and none twice; each has one line; it all fits into `MOST`; a value that is not
cut can be read back; a line that is cut says so before its value; of what is asked, everything decisive can be read back.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from agent_core.jsonvalue import Json
from agent_core.text.diffs import FileChange
from agent_core.text.shown import middle, plain
from agent_core.text.tongue import number, speak, speak_many, speaking, spoken_now
from agent_core.tools.arguments import parsed

MOST = 850
"""Characters of all lines: escaped for a chat they may be twice as many."""
DECISIVE = frozenset({"path", "url", "command", "host", "to", "name", "pattern"})
"""What says where something happens."""
DECISIVE_MOST = 500
LONGEST_HOST = 253
SHORTEST = 40
"""No value is cut to less."""
MOST_LINES = 12
LEAST_CHANGE = 300
"""Characters that a change has at least, however long the rest is."""


def question(tool: str, arguments: str, change: FileChange | None = None) -> str:
    """What is asked about a call, in lines; what stands in its `change` stands there alone."""
    return _question(tool, arguments, change, spoken_now())


def changed(tool: str, arguments: str, change: FileChange | None) -> str:
    """What the call makes of a file, in lines: as many as there is room for beside the question. Empty where that is not known."""
    return _changed(tool, arguments, change, spoken_now()) if change is not None else ""


def whole(tool: str, arguments: str, change: FileChange | None = None) -> str:
    """Both without a bound, and every argument; empty if nothing was left out."""
    return _whole(tool, arguments, change, spoken_now())


@functools.lru_cache(16)
def _question(tool: str, arguments: str, change: FileChange | None, language: str) -> str:
    with speaking(language):
        return _asked(tool, arguments, MOST, _CHANGED.get(tool, frozenset()) if change is not None else frozenset())


@functools.lru_cache(16)
def _changed(tool: str, arguments: str, change: FileChange, language: str) -> str:
    with speaking(language):
        lines, left_out = change.shown(_room(question(tool, arguments, change)))
        counted = f"+{number(change.added)} −{number(change.removed)}"
        more = speak_many("… and {count} more line of the change", "… and {count} more lines of the change", left_out)
        return "\n".join(filter(None, (counted, lines, more if left_out else "")))


@functools.lru_cache(4)
def _whole(tool: str, arguments: str, change: FileChange | None, language: str) -> str:
    with speaking(language):
        found, shown = _asked(tool, arguments, None), question(tool, arguments, change)
        if change is None:
            return found if found != shown else ""
        cut = change.shown(_room(shown))[1] or shown != _asked(tool, arguments, None, _CHANGED.get(tool, frozenset()))
        return f"{found}\n\n{change.diff}" if cut else ""


def _room(shown: str) -> int:
    """For the lines of a change, beneath these."""
    return max(LEAST_CHANGE, MOST - len(shown))


def unasked(arguments: str) -> str:
    """Which argument decides and is too long to be shown whole, in words for the model; empty if a person can be asked."""
    found = parsed(arguments)
    if isinstance(found, str):
        return ""
    shown = _shown(found)
    caps = _caps(shown, MOST)
    hidden = [name for name in found if name in DECISIVE and (name not in shown or shown[name] > caps[name])]
    if not hidden:
        return ""
    names = " and ".join(hidden)
    return f"its {names} cannot be shown whole to the person who has to agree. Use at most {DECISIVE_MOST - 2 * SHORTEST} characters"


def deed(tool: str, arguments: str) -> str:
    """What a call does, in a few words that follow "May I"; empty if that is known of its arguments alone. All that decides stands below it."""
    wanted, found = _DEEDS.get(tool), parsed(arguments)
    return wanted(found) if wanted is not None and not isinstance(found, str) and found else ""


def _name(value: Json) -> str:
    """A value as a part of a sentence."""
    return middle(plain(json.dumps(value, ensure_ascii=False)), SHORTEST * 2)


def _lines_of(value: Json) -> int:
    return len(value.splitlines()) if isinstance(value, str) else 0


_DEEDS: Mapping[str, Callable[[Mapping[str, Json]], str]] = {
    "write_file": lambda found: speak_many(
        "write {name} ({count} line)", "write {name} ({count} lines)", _lines_of(found.get("content")),
        name=_name(found.get("path")),
    ),
    "append_file": lambda found: speak("add to {name}", name=_name(found.get("path"))),
    "edit_file": lambda found: speak("change {name}", name=_name(found.get("path"))),
    "delete_file": lambda found: speak("delete {name}", name=_name(found.get("path"))),
    "send_message": lambda found: speak("send a message to {name}", name=_name(found.get("to"))),
    "run_command": lambda _: speak("run this command"),
    "fetch_url": lambda found: speak("call an address of {name}", name=_host(found.get("url")) or "?"),
    "start_task": lambda found: speak("begin the background task {name}", name=_name(found.get("title"))),
}  # fmt: skip
"""By the names of the gateway's own tools."""
_CHANGED: Mapping[str, frozenset[str]] = {
    "write_file": frozenset({"content"}),
    "append_file": frozenset({"content"}),
    "edit_file": frozenset({"old", "new"}),
}
"""What of their arguments a change shows."""


def _asked(tool: str, arguments: str, most: int | None, without: frozenset[str] = frozenset()) -> str:
    found = parsed(arguments)
    tool = middle(plain(tool), 100)
    if isinstance(found, str):  # it would not run; shown all the same
        asked = speak("May {tool} run with these arguments?", tool=tool)
        return f"{asked}\n{_cut(arguments, most or len(arguments))}"
    what = deed(tool, arguments)
    if not found:
        return speak("May {tool} run?", tool=tool)
    head = speak("May I {what}? ({tool})", what=what, tool=tool) if what else speak("May {tool} run with:", tool=tool)
    return "\n".join((head, *_lines({name: value for name, value in found.items() if name not in without}, most)))


def _lines(found: Mapping[str, Json], most: int | None) -> list[str]:
    if most is None:
        return [_line(name, value, None) for name, value in found.items()]
    sizes = _shown(found)
    caps = _caps(sizes, most)
    lines = [_line(name, found[name], caps[name] if size > caps[name] else None) for name, size in sizes.items()]
    if len(found) > len(sizes):
        lines.append(speak("and {count} more arguments, which are not shown here", count=len(found) - len(sizes)))
    return lines


def _shown(found: Mapping[str, Json]) -> dict[str, int]:
    """How long the line of each argument would be that has one."""
    with speaking(""):  # what is shown whole is the same in each language
        return {name: len(_line(name, value, None)) for name, value in list(found.items())[:MOST_LINES]}


def _caps(sizes: Mapping[str, int], most: int) -> dict[str, int]:
    """How long each line may be: all as they are if that fits; else the decisive ones come first, and the longest give."""
    caps = {name: min(size, DECISIVE_MOST) if name in DECISIVE else size for name, size in sizes.items()}
    for giving in ([name for name in sizes if name not in DECISIVE], list(sizes)):
        room = max(0, most - sum(caps[name] for name in sizes if name not in giving))
        level = _level([caps[name] for name in giving], room)
        caps.update({name: min(caps[name], max(SHORTEST, level)) for name in giving})
        if sum(caps.values()) <= most:
            break
    return caps


def _level(sizes: list[int], room: int) -> int:
    """The height at which everything longer is cut so that all of it fits."""
    left = sorted(sizes)
    while left:
        level = room // len(left)
        if left[0] > level:
            return level
        room -= left.pop(0)
    return max(sizes, default=0)


def _line(name: str, value: Json, most: int | None) -> str:
    """An argument on its line, of about `most` characters."""
    text = json.dumps(value, ensure_ascii=False)
    host = _host(value) if name == "url" else ""
    about = speak(" (of the host {host})", host=host) if host else ""
    label = middle(plain(name), SHORTEST)
    if most is None:
        return f"{label}: {plain(text)}{about}"
    keep = most
    while True:
        cut = _cut(text, keep)
        line = speak(
            "{label} ({count} characters, not all of them shown): {cut}{about}",
            label=label,
            count=number(len(text)),
            cut=cut,
            about=about,
        )
        if len(line) <= most + 2 * SHORTEST or keep <= SHORTEST // 2:
            return line
        keep = keep * 3 // 4


def _cut(text: str, most: int) -> str:
    """Cut before what cannot be seen is written out, so that no number is cut."""
    if len(text) <= most:
        return plain(text)
    head, tail = -(-most * 2 // 3), most // 3
    return speak(
        "{before} […{count} characters are left out here…] {behind}",
        before=plain(text[:head]),
        count=number(len(text) - head - tail),
        behind=plain(text[len(text) - tail :]),
    )


def _host(value: Json) -> str:
    """What an address calls, in the letters of its name on the wire."""
    try:
        host = urlsplit(value.strip()).hostname if isinstance(value, str) else None
        if host and len(host) > LONGEST_HOST:
            return speak("that is too long for a name")
        return plain(host.encode("idna").decode()) if host else ""
    except (ValueError, UnicodeError):
        return speak("that cannot be read")
