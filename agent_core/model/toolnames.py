"""Which tool a model means that writes a name otherwise than it was offered. Pure.

Models and the servers before them put a namespace before a name, or let a token of their template stand behind it: ``functions.read_file``,
``default_api:read_file``, ``mcp__files__read_file``, ``read_file<|channel|>commentary``, ``functions.read_file:0``. Such a name is the tool if exactly
one that is offered is left when the addition is taken away; a name that is offered is never read otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_SEPARATOR = re.compile(r"__|[.:/]")
_BEHIND = re.compile(r"<\|.*|\s.*|[(:]\d*\)?$", re.DOTALL)


def meant(name: str, offered: Collection[str]) -> str:
    """The offered tool that `name` means, or `name`."""
    if not offered or name in offered:
        return name
    bare = _BEHIND.sub("", name.strip())
    tails = {bare, *(bare[found.end() :] for found in _SEPARATOR.finditer(bare))}
    fitting = tails & set(offered)
    return fitting.pop() if len(fitting) == 1 else name
