"""Where tools in Python come from: the files of a folder, and the packages that declare some.

A package declares a module with tools, a function, or a list of functions:

    [project.entry-points."outspoken.tools"]
    weather = "my_weather.tools"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_core.jsonvalue import Json
from agent_core.packages import declared
from agent_core.records import dataclass

GROUP = "outspoken.tools"


@dataclass(frozen=True, slots=True)
class ToolSource:
    """A file, or what a package declares. One of the two is empty."""

    name: str
    """For people."""
    file: str = ""
    entry: str = ""

    def asked(self) -> Mapping[str, Json]:
        """For the worker."""
        return {"name": self.name, "file": self.file, "entry": self.entry}


def sources(folder: Path | None) -> Sequence[ToolSource]:
    """All of them, in the order of their names. Raises `OSError` if the folder cannot be read."""
    files = [] if folder is None else [one for one in folder.iterdir() if _holds_tools(one)]
    return (
        *(ToolSource(one.name, file=str(one.absolute())) for one in sorted(files)),
        *(ToolSource(f"{one.value} ({GROUP})", entry=one.value) for one in declared(GROUP)),
    )


def _holds_tools(file: Path) -> bool:
    """What begins with `_` is for the others to import, and what begins with a dot is an editor's."""
    return file.suffix == ".py" and not file.name.startswith(("_", ".")) and file.is_file()
