"""What a worker said of a source, taken as what another process says: nothing is believed that is not looked at. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.toolbox import LONGEST_SECONDS
from agent_core.tools.base import EffectClass, Reach, ToolSpec
from agent_core.tools.offer import Unusable
from agent_core.tools.python.sources import ToolSource

LINE_SECONDS = 60.0
"""A call waits so long for a process at most; what it waits for is none of its own time."""
_EFFECTS = frozenset(one.value for one in EffectClass)


@dataclass(frozen=True, slots=True)
class Described:
    """A tool, and where it is from."""

    spec: ToolSpec
    source: ToolSource
    seconds: float
    """How long a call may run, once it has begun."""
    digest: str
    """Of the text that it was described by: another one would be another tool."""


def described(source: ToolSource, answer: Json) -> tuple[Sequence[Described], Sequence[Unusable]]:
    """The tools of a source, and what is wrong with the rest."""
    if not isinstance(answer, dict) or "broken" in answer:
        why = str(answer.get("broken")) if isinstance(answer, dict) else "the worker did not say what it holds"
        return (), (Unusable(source.name, f"it cannot be imported: {why}"),)
    found: list[Described] = []
    wrong = [Unusable(source.name, str(one)) for one in _list(answer.get("unfit"))]
    for one in _list(answer.get("tools")):
        spec = _spec(one)
        if spec is None:
            wrong.append(Unusable(source.name, "the worker described a tool that is none"))
        else:
            found.append(Described(spec, source, spec.deadline_seconds - LINE_SECONDS, str(answer.get("digest"))))
    if not found and not wrong:
        wrong.append(Unusable(source.name, "it holds no function that could be a tool"))
    return found, wrong


def without_doubles(found: Iterable[Described], taken: Iterable[str]) -> tuple[Sequence[Described], Sequence[Unusable]]:
    """Of several tools with one name the first counts, and one of those that are `taken` before all."""
    whose = dict.fromkeys(taken, "the gateway itself")
    kept: list[Described] = []
    wrong: list[Unusable] = []
    for one in found:
        name = one.spec.name
        if name in whose:
            wrong.append(Unusable(one.source.name, f"{name}: {whose[name]} has a tool of this name already; rename it"))
        else:
            whose[name] = one.source.name
            kept.append(one)
    return kept, wrong


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()


def _spec(one: Json) -> ToolSpec | None:
    match one:
        case {
            "name": str(name),
            "description": str(words),
            "parameters": {**parameters},
            "effect": str(effect),
            "seconds": float(seconds) | int(seconds),
        } if effect in _EFFECTS and 0 < seconds <= LONGEST_SECONDS:
            return ToolSpec(
                name,
                words,
                parameters,
                EffectClass(effect),
                deadline_seconds=float(seconds) + LINE_SECONDS,
                heartbeat=True,
                reach=_reach(EffectClass(effect), one.get("outside")),
                foreign=one.get("foreign") is not False,
                checked=_without_patterns(parameters),
            )
        case _:
            return None


def _without_patterns(schema: Mapping[str, Json], *, names: bool = False) -> dict[str, Json]:
    """What of it is looked at here. Patterns are the worker's to match: its engine knows others than ours does, and none that takes it for ever; matched
    here, one would hold up every conversation. `names`: the keys are the names of properties."""
    left_out = set[str]() if names else {"pattern", "patternProperties"}
    if "patternProperties" in left_out & schema.keys():
        left_out.add("additionalProperties")  # which is about names that no pattern fits
    return {
        key: _inner(value, names=key in ("properties", "$defs") and not names)
        for key, value in schema.items()
        if key not in left_out
    }


def _inner(value: Json, *, names: bool) -> Json:
    if isinstance(value, list):
        return [_inner(one, names=False) for one in value]
    return _without_patterns(value, names=names) if isinstance(value, dict) else value


def _reach(effect: EffectClass, outside: Json) -> Reach:
    """Who sees anything of a call. One that only reads may still ask whoever an address in its arguments names."""
    if outside is True or (outside is None and effect is not EffectClass.PURE):
        return Reach.OUTSIDE
    return Reach.ADDRESS if outside is None else Reach.HERE
