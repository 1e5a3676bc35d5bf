"""Mutants of a module: one small change each, made by rule from its syntax tree. Pure: source in, sources out.

What is changed: comparisons and their ends, conditions, numbers, truth values, statements left out (calls, raises, returns, assignments to
what outlives the function), two awaited statements in each other's place, exceptions that catch more, and checks of ownership (lease, fence,
owner) that always pass. Annotations, docstrings, logs and words are left alone: no test is to hold those.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

CHECKS = ("lease_ok", "may_send", "must_live", "owned", "everybodys")
"""Whoever is asked this may be told no; a mutant never is."""
QUIET = ("log.", "self._say", "structlog", "assert_never")
"""What is only said, or can never happen."""
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv}


@dataclass(eq=False)
class Mutant:
    """One change of one module."""

    path: str
    line: int
    kind: str
    before: str
    after: str
    build: Callable[[], ast.Module]
    within: str = ""
    """The outermost function whose body it changes, with its classes: `Turn.feed`; empty for what is run as the module is imported."""

    @cached_property
    def tree(self) -> ast.Module:
        """The whole module, changed; made when it is asked for, as there are thousands and few are tried."""
        return self.build()

    @property
    def source(self) -> str:
        return ast.unparse(self.tree)

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: {self.before} → {self.after}"


def mutants(path: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    tree = ast.parse(source)
    found: list[Mutant] = []
    places = [node for node in ast.walk(tree) if hasattr(node, "lineno")]
    skipped, within = _skipped(tree), _within(tree)
    for place, node in enumerate(places):
        if id(node) in skipped:
            continue
        for kind, made in _changes(node):
            build = partial(_with, tree, place, made)
            found.append(
                Mutant(
                    path, getattr(node, "lineno", 0), kind, _short(node), _short(made), build, within.get(id(node), "")
                )
            )
    return sorted(found, key=lambda one: (one.line, one.kind, one.before))


def _with(tree: ast.Module, place: int, made: ast.AST) -> ast.Module:
    """The module with another node in this place."""
    other = copy.deepcopy(tree)
    target = [node for node in ast.walk(other) if hasattr(node, "lineno")][place]

    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return ast.copy_location(made, node) if node is target else self.generic_visit(node)

    Put().visit(other)
    return ast.fix_missing_locations(other)


def _within(tree: ast.Module) -> dict[int, str]:
    """The outermost function of each node that stands in the body of one."""
    found: dict[int, str] = {}

    def look(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                look(child, f"{outer}{child.name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{outer}{child.name}"
                inside = [one for statement in child.body for one in ast.walk(statement)]
                found.update({id(one): name for one in (child, *inside)})
            else:
                look(child, outer)

    look(tree, "")
    return found


def outermost(tree: ast.Module, line: int) -> str:
    """The outermost function that has this line."""
    names = _within(tree)
    every = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return next((names[id(one)] for one in every if one.lineno <= line <= (one.end_lineno or 0)), "")


def _short(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:70]


def _skipped(tree: ast.Module) -> set[int]:
    """Annotations, docstrings, decorators, defaults of dataclasses' words, and what is only logged."""
    found: set[int] = set()

    def all_of(node: ast.AST | None) -> None:
        if node is not None:
            found.update(id(one) for one in ast.walk(node))

    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            all_of(node.returns)
            for one in (*node.args.args, *node.args.kwonlyargs):
                all_of(one.annotation)
            for one in node.decorator_list:
                all_of(one)
        elif isinstance(node, ast.ClassDef):
            for one in node.decorator_list:
                all_of(one)
        elif isinstance(node, ast.AnnAssign):
            all_of(node.annotation)
        elif (
            (isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant) or _is_quiet(node.value)))
            or isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert)
            or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        ):
            all_of(node)
    return found


def _is_quiet(node: ast.AST) -> bool:
    called = node.value if isinstance(node, ast.Await) else node
    return isinstance(called, ast.Call) and ast.unparse(called.func).startswith(QUIET)


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(left=left, ops=[op, *rest], comparators=others) if type(op) in _COMPARED:
            yield "comparison", ast.Compare(left, [_COMPARED[type(op)](), *rest], others)
        case ast.BoolOp(op=op, values=values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "condition", ast.BoolOp(other, values)
            yield "condition left out", values[0] if len(values) == 2 else ast.BoolOp(op, values[:-1])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not left out", operand
        case ast.Constant(value=bool() as value):
            yield "truth", ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield "number", ast.Constant(value + 1)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COUNTED:
            yield "arithmetic", ast.BinOp(left, _COUNTED[type(op)](), right)
        case ast.If(body=body, orelse=orelse):
            yield "always", ast.If(ast.Constant(True), body, orelse)
            yield "never", ast.If(ast.Constant(False), body, orelse)
        case ast.Call(func=ast.Attribute(attr=name)) if name in CHECKS and name in ("lease_ok", "may_send"):
            yield "check left out", ast.Constant(True)
        case ast.ExceptHandler(type=kind, name=name, body=body) if kind is not None:
            if ast.unparse(kind) != "Exception":
                yield "except widened", ast.ExceptHandler(ast.Name("Exception", ast.Load()), name, body)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield "statement left out", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign():
            yield "statement left out", ast.Pass()
        case ast.AsyncFunctionDef(body=body) | ast.FunctionDef(body=body):
            for first, (one, other) in enumerate(pairwise(body)):
                if _does(one) and _does(other):
                    swapped = [*body[:first], other, one, *body[first + 2 :]]
                    made = copy.copy(node)
                    made.body = swapped
                    yield f"lines {one.lineno} and {other.lineno} swapped", made
        case _:
            return


def _does(node: ast.stmt) -> bool:
    """A statement that has an effect, and gives nothing that the next one names."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await) and not _is_quiet(node.value)
