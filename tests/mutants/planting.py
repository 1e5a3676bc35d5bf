"""Plants a mutant in the running process: the functions whose code it changes get the other code.

Nothing is imported anew, so that a process which has imported and collected everything is forked for each mutant, which then costs no more than
the tests that are asked. What is run as a module is imported (constants, defaults) cannot be planted like this; such a mutant is tried in a copy.
"""

from __future__ import annotations

import ast
import functools
import gc
from collections import defaultdict
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

PRODUCT = ("agent_core.", "adapters.", "gateway.")


class NotPlanted(Exception):
    """It changes what cannot be changed in a running process."""


class Planter:
    """Knows all functions of the program; made once, as to look at every object takes seconds where memory is shared with a fork."""

    def __init__(self) -> None:
        self._functions: dict[str, list[FunctionType]] = defaultdict(list)
        """By file."""
        self._caches: list[Any] = []
        for one in gc.get_objects():
            if type(one) is FunctionType:
                self._functions[one.__code__.co_filename].append(one)
            elif isinstance(one, functools._lru_cache_wrapper) and str(one.__module__).startswith(PRODUCT):
                self._caches.append(one)

    def plant(self, root: Path, path: str, tree: ast.Module) -> None:
        """Plant it, everywhere where the module's functions are used."""
        file = root / path
        before = compile(file.read_text("utf-8"), str(file), "exec", dont_inherit=True)
        after = compile(tree, str(file), "exec", dont_inherit=True)
        changed = dict(_changed(before, after))
        planted = 0
        for one in self._functions[str(file)]:
            other = changed.get(one.__code__)
            if other is not None:
                planted += 1
                try:
                    one.__code__ = other
                except ValueError as failure:  # it uses other variables of its surroundings
                    raise NotPlanted(path) from failure
        if not planted:
            raise NotPlanted(path)
        for cache in self._caches:  # what was asked while the tests were collected
            cache.cache_clear()


def _changed(before: CodeType, after: CodeType) -> list[tuple[CodeType, CodeType]]:
    """The outermost functions that differ, in pairs."""
    pairs: list[tuple[CodeType, CodeType]] = []
    ours = [one for one in before.co_consts if isinstance(one, CodeType)]
    theirs = [one for one in after.co_consts if isinstance(one, CodeType)]
    if len(ours) != len(theirs):
        raise NotPlanted(before.co_name)
    for one, other in zip(ours, theirs, strict=True):
        if one == other:
            continue
        if one.co_flags & 2:  # CO_NEWLOCALS: a function; a class has none
            pairs.append((one, other))
        else:
            pairs += _changed(one, other)
    return pairs
