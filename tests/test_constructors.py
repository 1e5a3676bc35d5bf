"""Nothing is filled in later: what a class calls it is given when it is made, and nobody outside puts it there afterwards.

Read from the source, as an approximation: a collaborator is an attribute that is declared as something to call (a `Callable`, or an alias of
one, also in a mapping). State that others may move (what is shown, what runs) is none, and neither is what subscribes.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests import source
from tests.rooms import ROOT, modules

FLOORS = ("gateway", "adapters")
MADE = ("__init__", "__post_init__")
STATE = {
    "gateway.delivery.surfaces: Surfaces.account_added fills in _waiting": "what is to be done when an account comes, and is done once",
    "gateway.several.together fills in Portion.rates": "what counts here that another gateway has let through: each limit brings its own",
    "gateway.http.hooks fills in Portion.rates": "the same, of the doors of webhooks",
    "adapters.discord.client fills in BotClient.let_go": "the library's own way to close, which is kept under a name and replaced",
}
"""What looks like such a slot and is none, with the reason."""


def trees(root: Path = ROOT) -> dict[str, ast.Module]:
    return {name: source.tree(path.read_text()) for name, path in modules(root).items() if name.startswith(FLOORS)}


def callables(found: dict[str, ast.Module]) -> dict[str, set[str]]:
    """By module, the names that stand for something to call: `Callable`, and aliases of it, own and imported."""
    own: dict[str, set[str]] = {}
    for module, tree in found.items():
        own[module] = {"Callable"}
        for node in tree.body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and _calls(node.value, own[module])
            ):
                own[module].add(node.targets[0].id)
    return {
        module: own[module]
        | {
            alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name in own.get(node.module or "", ())
        }
        for module, tree in found.items()
    }


def _calls(annotation: ast.expr, names: set[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(annotation))


def attributes(owner: ast.ClassDef, aliases: set[str]) -> Iterator[tuple[str, bool]]:
    """Each attribute that a class has, and whether it is declared as something to call."""
    given = {
        arg.arg: arg.annotation for arg in ast.walk(owner) if isinstance(arg, ast.arg) and arg.annotation is not None
    }
    for node in ast.walk(owner):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name), annotation=kind):
                yield name, _calls(kind, aliases)
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                kind = given.get(value.id) if isinstance(value, ast.Name) else None
                yield name, kind is not None and _calls(kind, aliases)
            case _:
                pass


def put(scope: ast.AST, *, inside: bool) -> Iterator[str]:
    """Attributes that are assigned here, or an entry of them: those of `self` if `inside`, else those of others."""
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in (one for many in targets for one in (many.elts if isinstance(many, ast.Tuple) else [many])):
            at = target.value if isinstance(target, ast.Subscript) and not inside else target
            if isinstance(at, ast.Attribute):
                own = isinstance(at.value, ast.Name) and at.value.id in ("self", "cls")
                if own is inside:
                    yield at.attr


def filled_later(found: dict[str, ast.Module]) -> list[str]:
    """Collaborators that somebody else assigns, or that the class itself takes in by a method of its life."""
    aliases = callables(found)
    slots: defaultdict[str, set[str]] = defaultdict(set)
    state: set[str] = set()
    """Names that attributes of other classes have which are nothing to call: of these it cannot be told whose they are."""
    for module, tree in found.items():
        for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            kinds: defaultdict[str, bool] = defaultdict(bool)
            for name, called in attributes(owner, aliases[module]):
                kinds[name] |= called
            for name, called in kinds.items():
                slots[name].add(owner.name) if called else state.add(name)
    later: list[str] = []
    for module, tree in found.items():
        names = [name for name in put(tree, inside=False) if name in slots and name not in state]
        later += [f"{module} fills in {'/'.join(sorted(slots[name]))}.{name}" for name in names]
        for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for method in (node for node in owner.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
                if method.name not in MADE:
                    names = [name for name in put(method, inside=True) if owner.name in slots.get(name, ())]
                    later += [f"{module}: {owner.name}.{method.name} fills in {name}" for name in names]
    return later


def test_what_a_class_calls_it_is_given_when_it_is_made() -> None:
    assert set(filled_later(trees())) == set(STATE)


def test_a_slot_that_is_filled_later_is_found() -> None:
    made = """
Tell = Callable[[str], None]
class Box:
    def __init__(self, read: Tell) -> None:
        self._read = read
        self.again: dict[str, Tell] = {}
        self.tell: Tell | None = None
        self.count = 0
    def connect(self, tell: Tell) -> None:
        self.tell = tell
"""
    wired = "box.tell, box.count = print, 1\nbox.again['a'] = print"
    later = filled_later({"gateway.box": ast.parse(made), "gateway.wired": ast.parse(wired)})
    assert later == [
        "gateway.box: Box.connect fills in tell",
        "gateway.wired fills in Box.tell",
        "gateway.wired fills in Box.again",
    ]
