"""Laws of `agent_core.records`: its classes are those that the standard library makes, only later, and what is frozen is guarded by the type checker
alone."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent_core.records
from agent_core.records import dataclass

OURS: Any = dataclass
THEIRS: Any = dataclasses.dataclass
LATE: Any = vars(agent_core.records)["_Late"]
VALUES = st.one_of(st.integers(-2, 2), st.text(max_size=2), st.tuples(st.integers(0, 1)), st.just([1]))
FIELDS = st.lists(
    st.fixed_dictionaries(
        {
            "given": st.sampled_from(["value", "factory", "nothing"]),
            "compare": st.booleans(),
            "shown": st.booleans(),
            "init": st.booleans(),
            "kw_only": st.booleans(),
        }
    ),
    max_size=4,
)
ASKED = st.fixed_dictionaries(
    {"frozen": st.booleans(), "slots": st.booleans(), "eq": st.booleans(), "kw_only": st.booleans()}
)


def _field(how: dict[str, Any]) -> Any:
    more: dict[str, Any] = {"init": how["init"], "repr": how["shown"], "compare": how["compare"]}
    if how["kw_only"]:
        more["kw_only"] = True
    match how["given"]:
        case "value":
            return dataclasses.field(default=7, **more)
        case "factory":
            return dataclasses.field(default_factory=list[int], **more)
        case _:
            return dataclasses.field(**more)


def _class(decorate: Any, asked: dict[str, Any], fields: list[dict[str, Any]], own: dict[str, Any]) -> Any:
    body = {f"f{number}": _field(how) for number, how in enumerate(fields)}
    words = {"__annotations__": dict.fromkeys(body, "object"), "__doc__": "A class.", "__module__": __name__}
    return decorate(**asked)(type("One", (), {**body, **words, **own}))


def _anything(_self: object, *_given: object, **_named: object) -> None:
    pass


WRITTEN: dict[str, Callable[..., object]] = {
    "__init__": _anything,
    "__repr__": lambda *_: "me",
    "__eq__": lambda *_: True,
    "__hash__": lambda *_: 5,
    "__post_init__": _anything,
}


def _outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


def _told(cls: Any, given_: list[Any], named: dict[str, Any], other: list[Any]) -> list[Any]:
    """Everything that there is to be said of a class and its objects."""
    told: list[Any] = [_outcome(lambda: str(inspect.signature(cls))), cls.__match_args__]
    made = _outcome(lambda: cls(*given_, **named))
    if isinstance(made, tuple):
        return [*told, made]
    again = _outcome(lambda: cls(*other, **named))
    by_value = cls.__hash__ is not object.__hash__
    told += [_outcome(lambda: repr(made)), _outcome(lambda: hash(made)) if by_value else "", cls.__hash__ is None]
    told += [_outcome(lambda: made == again), made == 1, _outcome(lambda: made != made)]
    if not cls.__dataclass_params__.frozen:
        for field in dataclasses.fields(cls):
            told.append(_outcome(lambda name=field.name: setattr(made, name, 3)))
            told.append(_outcome(lambda name=field.name: delattr(made, name)))
        told.append(_outcome(lambda: setattr(made, "another", 3)))
    return [
        *told,
        _outcome(lambda: repr(made)) if cls.__repr__ is not object.__repr__ else "",
        _outcome(lambda: dataclasses.asdict(copy.copy(made))),
    ]


@given(
    ASKED,
    FIELDS,
    st.lists(VALUES, max_size=4),
    st.dictionaries(st.sampled_from(["f0", "f1", "f2", "f3"]), VALUES, max_size=2),
    st.lists(VALUES, max_size=4),
    st.sets(st.sampled_from(["__init__", "__repr__", "__eq__", "__hash__", "__post_init__"]), max_size=2),
)
def test_a_class_is_as_the_standard_library_makes_it(
    asked: dict[str, Any],
    fields: list[dict[str, Any]],
    given_: list[Any],
    named: dict[str, Any],
    other: list[Any],
    own: set[str],
) -> None:
    body = {name: WRITTEN[name] for name in own}
    theirs = _outcome(lambda: _class(THEIRS, asked, fields, body))
    if isinstance(theirs, tuple):
        return  # fields in an order that cannot be: the standard library says so at once, we at the first object
    assert _told(_class(OURS, asked, fields, body), given_, named, other) == _told(theirs, given_, named, other)


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point):
    """A point with a name, and a list."""

    name: str
    near: list[int] = dataclasses.field(default_factory=list[int])


def test_derived_classes_take_what_is_their_parents() -> None:
    named = Named(1, name="a")
    assert (named.x, named.y, named.name, named.near) == (1, 0, "a", [])
    assert repr(named) == "Named(x=1, y=0, name='a', near=[])"
    assert named == Named(1, name="a")
    assert named != Point(1)
    assert Point(1) == Point(1, 0)
    assert hash(Point(1)) == hash(Point(1))
    assert dataclasses.replace(named, y=5).y == 5
    assert pickle.loads(pickle.dumps(named)) == named
    assert copy.deepcopy(named) == named


@pytest.mark.parametrize("above", [OURS, THEIRS])
@pytest.mark.parametrize("below", [OURS, THEIRS])
@pytest.mark.parametrize("slots", [True, False])
def test_a_class_of_one_decorator_is_derived_from_one_of_the_other(above: Any, below: Any, slots: bool) -> None:
    for first, second in itertools.product([True, False], repeat=2):
        base = _class(above, {"frozen": first, "slots": slots}, [], {})

        def derived(base: Any = base, second: bool = second) -> Any:
            body = {"__annotations__": {"x": "int"}, "__module__": __name__}
            return below(frozen=second, slots=slots)(type("Two", (base,), body))

        made = _outcome(derived)
        if first != second:
            assert made[0] is TypeError
            continue
        assert made(3).x == 3
        if below is THEIRS:
            refused = (dataclasses.FrozenInstanceError, "cannot assign to field 'x'") if first else None
            assert _outcome(lambda made=made: setattr(made(3), "x", 4)) == refused
        assert base.__dataclass_params__.frozen is first


def test_what_a_class_says_of_itself_is_what_the_standard_library_says() -> None:
    for asked in ({"frozen": True}, {"slots": True}, {"eq": False}, {}):
        assert repr(_class(OURS, asked, [], {}).__dataclass_params__) == repr(
            _class(THEIRS, asked, [], {}).__dataclass_params__
        )


def test_a_frozen_class_has_its_fields_set_as_any_other() -> None:
    assert Point.__setattr__ is object.__setattr__
    assert {Point(1), Point(1), Point(2)} == {Point(1), Point(2)}


def test_nothing_is_made_for_a_class_that_nobody_uses() -> None:
    @dataclass(frozen=True, slots=True)
    class Unused:
        """Unused."""

        x: int

    late = {name for name, value in vars(Unused).items() if isinstance(value, LATE)}
    assert late == {"__init__", "__repr__", "__eq__", "__hash__", "__dataclass_fields__", "__match_args__"}
    assert Unused(1) == Unused(1)
    assert not isinstance(vars(Unused)["__init__"], LATE)


def test_a_field_says_its_type_as_the_standard_library_does() -> None:
    def made(decorate: Any) -> Any:
        types = {
            "a": "list[int] | None",
            "b": "dataclasses.InitVar[int]",
            "c": "dict[str, Callable[..., object]]",
            "d": "Unknown",
        }
        body = {"b": 1, "c": dataclasses.field(default_factory=dict[str, Any]), "d": 2}
        return decorate(
            type("One", (), {"__annotations__": types, "__doc__": "A class.", "__module__": __name__, **body})
        )

    ours, theirs = made(OURS), made(THEIRS)
    assert [(one.name, one.type) for one in dataclasses.fields(ours)] == [
        (one.name, one.type) for one in dataclasses.fields(theirs)
    ]
