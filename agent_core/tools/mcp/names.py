"""Under which names the tools of servers are offered: such as every provider takes, each only once. Pure.

Laws (tests/mcp/test_names.py): every tool has a name, no two have one, none has a name that was taken before, and each is one that
providers take; a name does not depend on the order of its server's list; a tool that can keep its own name behind the prefix keeps it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

MOST_CHARS = 64
"""OpenAI's limit; others' are the same or wider."""
MARK_CHARS = 8
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def offered_names(server: str, prefix: str, tools: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """The name of each tool of a server, beside those that are `taken`."""
    tools = sorted(set(tools))
    whole = {tool: f"{prefix}{tool}" for tool in tools}
    names = {tool: name for tool, name in whole.items() if _usable(name) and name not in taken}
    used = {*taken, *names.values()}
    for tool in tools:
        if tool in names:
            continue
        turn = 0
        while (name := _marked(whole[tool], f"{server}\0{tool}\0{turn}")) in used:
            turn += 1
        names[tool] = name
        used.add(name)
    return names


def _usable(name: str) -> bool:
    return 0 < len(name) <= MOST_CHARS and _OTHER.search(name) is None


def _marked(name: str, of: str) -> str:
    """A name that can be used, told from others that would look alike by a digest of what it stands for."""
    mark = hashlib.blake2b(of.encode("utf-8", "replace"), digest_size=MARK_CHARS // 2).hexdigest()
    return f"{_OTHER.sub('_', name)[: MOST_CHARS - MARK_CHARS - 1]}_{mark}"
