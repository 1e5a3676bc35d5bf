"""Plants a mutant in the running process: the functions whose code it changes get the other code.

Nothing is imported anew, so that a process which has imported and collected everything is forked for each mutant, which then costs no more than
the tests that are asked. What is run as a module is imported (constants, defaults) cannot be planted like this; such a mutant is tried in a copy.
"""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path
from types import CodeType, FunctionType

PRODUCT = ("agent_core.", "adapters.", "gateway.")


class NotPlanted(Exception):
    """It changes what cannot be changed in a running process."""


def plant(root: Path, path: str, tree: ast.Module) -> None:
    """Plant it, everywhere where the module's functions are used."""
    file = root / path
    before = compile(file.read_text("utf-8"), str(file), "exec", dont_inherit=True)
    after = compile(tree, str(file), "exec", dont_inherit=True)
    changed = dict(_changed(before, after))
    if not changed:
        raise NotPlanted(path)
    every = gc.get_objects()
    functions = [one for one in every if type(one) is FunctionType and one.__code__.co_filename == str(file)]
    planted: set[CodeType] = set()
    for one in functions:
        other = changed.get(one.__code__)
        if other is not None:
            planted.add(one.__code__)
            try:
                one.__code__ = other
            except ValueError as failure:  # it uses other variables of its surroundings
                raise NotPlanted(path) from failure
    if not planted:
        raise NotPlanted(path)
    for one in every:
        if isinstance(one, functools._lru_cache_wrapper) and str(one.__module__).startswith(PRODUCT):
            one.cache_clear()


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
