"""Dataclasses whose methods are made when they are first used. The same decorator, the same classes.

The standard one writes and compiles six functions for each class as soon as it is defined. A start defines six hundred classes, and a plain
turn makes objects of a fifth of them: the rest took a quarter of a start and four megabytes for nothing.

Law (tests/agent_core/test_records.py): what is said of a class by either decorator is the same, whatever its fields.
"""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, get_origin

__all__ = ["changed", "dataclass", "taken"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, kw_only=False):
        """`dataclasses.dataclass`, late."""
        asked = _Asked(frozen, slots, eq, kw_only)
        return (lambda each: _made(each, asked)) if cls is None else _made(cls, asked)


T = TypeVar("T")
_THEIRS: Any = dataclasses.dataclass
_LOCK = threading.RLock()
"""Classes are defined in more than one thread: what is loaded in the background, and what the loop needs meanwhile."""


def changed(one: T, **changes: object) -> T:
    """As `dataclasses.replace`, for what is made anew in every turn: all fields are taken at once. Of a class whose every field is given to it."""
    kind: Any = type(one)
    names, take = _fields_taken(kind)
    return kind(**dict(zip(names, take(one), strict=True)) | changes)


@cache
def _fields_taken(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[object, ...]]]:
    names = tuple(field.name for field in dataclasses.fields(kind))
    return names, taken(names)


def taken(names: Sequence[str]) -> Callable[[Any], tuple[object, ...]]:
    """What takes these fields of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple([getattr(one, name) for name in names])


class _Asked:
    """What was asked of a class."""

    __slots__ = ("eq", "frozen", "kw_only", "slots")

    def __init__(self, frozen: bool, slots: bool, eq: bool, kw_only: bool) -> None:
        self.frozen = frozen
        self.slots = slots
        self.eq = eq
        self.kw_only = kw_only


class _Late:
    """A method that is made, and takes its own place, when somebody asks for it."""

    __slots__ = ("_asked", "_cls", "_name")

    def __init__(self, cls: type, name: str, asked: _Asked) -> None:
        self._cls = cls
        self._name = name
        self._asked = asked

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method: Any = _method(self._cls, self._name, self._asked)
        setattr(self._cls, self._name, method)
        return method.__get__(instance, owner)


def _made(cls: type, asked: _Asked) -> type:
    own = cls.__dict__
    names = ["__init__", "__repr__"]
    if asked.eq:
        names.append("__eq__")
        hashed = own.get("__hash__", dataclasses.MISSING)
        if hashed is dataclasses.MISSING or (hashed is None and "__eq__" in own):
            names.append("__hash__")
    late = [name for name in names if name == "__hash__" or name not in own]
    made = _fields_of(cls, asked)
    for name in late:
        setattr(made, name, _Late(made, name, asked) if name != "__hash__" or asked.frozen else None)
    if asked.frozen:
        for name, method in (("__setattr__", _no_setattr), ("__delattr__", _no_delattr)):
            if name in own:
                raise TypeError(f"Cannot overwrite attribute {name} in class {cls.__name__}")
            setattr(made, name, method)
        if asked.slots:
            for name, method in (("__getstate__", _getstate), ("__setstate__", _setstate)):
                if name not in own:
                    setattr(made, name, method)
    return made


def _fields_of(cls: type, asked: _Asked) -> type:
    """The class with its fields, and with what it says of itself to whoever derives from it, by either decorator."""
    bases = [vars(base)["__dataclass_params__"] for base in cls.__mro__[1:] if "__dataclass_params__" in vars(base)]
    with _LOCK:
        frozen = [params.frozen for params in bases]
        if bases and any(frozen) != asked.frozen:
            _THEIRS(frozen=asked.frozen)(cls)  # it refuses: one is frozen and the other is not
        try:
            for params in bases:
                params.frozen = False  # else it would compile what stands below for every frozen class
            made: type = _THEIRS(init=False, repr=False, eq=False, slots=asked.slots, kw_only=asked.kw_only)(cls)
        finally:
            for params, was in zip(bases, frozen, strict=True):
                params.frozen = was
    params: Any = vars(made)["__dataclass_params__"]
    params.init, params.repr, params.eq, params.frozen = True, True, asked.eq, asked.frozen
    return made


def _method(cls: type, name: str, asked: _Asked) -> Callable[..., object]:
    """As the standard library makes it, for a class of the same fields that is thrown away."""
    fields: dict[str, dataclasses.Field[Any]] = {f.name: _plainly_made(f) for f in dataclasses.fields(cls)}
    body: dict[str, object] = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": "None, or the standard library would write one.",
        "__annotations__": {name: field.type for name, field in fields.items()},
        **fields,
    }
    if after := getattr(cls, "__post_init__", None):
        body["__post_init__"] = after
    unasked = asked.slots and any(not field.init for field in fields.values())  # their values have no other place
    alike: type = _THEIRS(
        init=name == "__init__",
        repr=name == "__repr__",
        eq=name == "__eq__",
        unsafe_hash=name == "__hash__",
        frozen=asked.frozen and name == "__init__",
        slots=unasked and name == "__init__",
    )(type(cls.__name__, (), body))
    return vars(alike)[name]


def _plainly_made(field: dataclasses.Field[Any]) -> dataclasses.Field[Any]:
    """A default such as ``dict[str, int]`` is made as ``dict``: to call the first takes ten times as long, and gives the same."""
    origin = get_origin(field.default_factory)
    if origin not in (dict, list, set, frozenset):
        return field
    plain = copy.copy(field)
    plain.default_factory = origin
    return plain


def _no_setattr(self: object, name: str, value: object) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _no_delattr(self: object, name: str) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(instance: Any, name: str) -> bool:
    """All of an object of the class itself; of one of a class that is derived from it, the fields."""
    is_of_it = "__dataclass_fields__" in vars(instance.__class__)
    return is_of_it or any(field.name == name for field in dataclasses.fields(instance))


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
