"""The source of the house, read once a process however many tests look at it."""

from __future__ import annotations

import ast
from functools import cache


@cache
def tree(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """Everything that a module consists of."""
    return tuple(ast.walk(tree(source)))
