"""Dataclasses whose fields and methods are made when they are first used. The same decorator, the same classes, but for one thing: what is `frozen`
is guarded by the type checker alone.

The standard one looks at each field and compiles six functions for each class as soon as it is defined. A start defines six hundred
classes, and a plain turn makes objects of a fifth of them: the rest took a quarter of a start and four megabytes for nothing. All that has
to be known at once are the names of the fields, for slots. What each field is, the standard decorator says of a class that is thrown away.
A class that refuses to have a field set makes each of its objects by a call a field: of a plain turn's instructions that was one in eighteen, for
what the type checker has seen of every line before it runs.

Law (tests/agent_core/test_records.py): what is said of a class by either decorator is the same, whatever its fields, but that ours lets them be set.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Never, TypeVar, get_origin

__all__ = ["LATER", "NONE", "changed", "dataclass", "later", "taken"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, kw_only=False):
        """`dataclasses.dataclass`, late."""
        asked = _asked(frozen, slots, eq, kw_only)
        return (lambda each: _made(each, asked)) if cls is None else _made(cls, asked)


NONE: frozenset[Never] = frozenset()
"""The empty set that all share. Each turn and each stream has a dozen sets that are empty nearly always; one of its own takes 216 bytes."""

T = TypeVar("T")
_THEIRS: Any = dataclasses.dataclass
_MISSING: Any = dataclasses.MISSING
_FIELDS, _PARAMS, _MATCHED = "__dataclass_fields__", "__dataclass_params__", "__match_args__"


LATER = "later"
V = TypeVar("V", bound=int | str)


def later(value: V) -> V:
    """The default of a field that stored rows got later than their others: what such hold as were stored before."""
    return dataclasses.field(default=value, metadata={LATER: value})


def changed(one: T, **changes: object) -> T:
    """As `dataclasses.replace`, for what is made anew in every turn: all fields are taken at once. Of a class whose every field is given to it."""
    kind: Any = type(one)
    names, take = fields_taken(kind)
    return kind(**dict(zip(names, take(one), strict=True)) | changes)


@cache
def fields_taken(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[object, ...]]]:
    """The names of a record's fields, and what takes all of them of one."""
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


@cache
def _asked(frozen: bool, slots: bool, eq: bool, kw_only: bool) -> _Asked:
    return _Asked(frozen, slots, eq, kw_only)


class _Late:
    """What is made, and takes its own place, when somebody asks for it. A start has four thousand of them: each holds what it needs, and is no
    function with what it encloses."""

    __slots__ = ("_cls", "_name")

    def __init__(self, cls: type, name: str) -> None:
        self._cls = cls
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = self.make()
        setattr(self._cls, self._name, made)
        return made.__get__(instance, owner) if callable(made) else made

    def make(self) -> Any:
        raise NotImplementedError


class _LateMethod(_Late):
    __slots__ = ("_asked",)

    def __init__(self, cls: type, name: str, asked: _Asked) -> None:
        self._cls = cls
        self._name = name
        self._asked = asked

    def make(self) -> Any:
        return _method(self._cls, self._name, self._asked)


class _LateFields(_Late):
    __slots__ = ("_given", "_kw_only", "_types")

    def __init__(self, cls: type, types: Mapping[str, Any], given: dict[str, Any], kw_only: bool) -> None:
        self._cls = cls
        self._name = _FIELDS
        self._types = types
        self._given = given or _NOTHING
        self._kw_only = kw_only

    def make(self) -> Mapping[str, Any]:
        cls = self._cls
        above: dict[str, Any] = {}
        for base in cls.__mro__[-1:0:-1]:
            above |= getattr(base, _FIELDS, {})
        types = self._types
        body = {
            "__module__": cls.__module__,
            "__doc__": "None, or one would be written.",
            "__annotations__": {name: object if _is_plain(kind) else kind for name, kind in types.items()},
        }
        alike = type(cls.__name__, (), body | self._given)
        theirs: type = _THEIRS(init=False, repr=False, eq=False, kw_only=self._kw_only)(alike)
        found: dict[str, Any] = vars(theirs)[_FIELDS]
        for name, field in found.items():
            field.type = types[name]
        return above | found


class _LateMatched(_Late):
    __slots__ = ()

    def make(self) -> tuple[str, ...]:
        return tuple(field.name for field in dataclasses.fields(self._cls) if field.init and not field.kw_only)


def _is_plain(kind: object) -> bool:
    """Whether a field of this type is one like any other. The standard decorator takes thirty calls to find that out of a type that is text."""
    return isinstance(kind, str) and not any(mark in kind for mark in _MARKS)


_MARKS = ("ClassVar", "InitVar", "KW_ONLY")
_NOTHING: dict[str, Any] = {}
"""The defaults of a record that has none."""


class _Factory:
    """Stands in a signature for what a factory gives."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _made(cls: type, asked: _Asked) -> type:
    own = cls.__dict__
    names = ["__init__", "__repr__"]
    if asked.eq:
        names.append("__eq__")
        hashed = own.get("__hash__", _MISSING)
        if hashed is _MISSING or (hashed is None and "__eq__" in own):
            names.append("__hash__")
    late = [name for name in names if name == "__hash__" or name not in own]
    made = _fields_of(cls, asked)

    for name in late:
        setattr(made, name, _LateMethod(made, name, asked) if name != "__hash__" or asked.frozen else None)
    if sys.version_info >= (3, 13) and "__replace__" not in own:
        setattr(made, "__replace__", dataclasses.replace)  # noqa: B010
    return made


def _fields_of(cls: type, asked: _Asked) -> type:
    """The class with its fields, and with what it says of itself to whoever derives from it, by either decorator."""
    frozen = [vars(base)[_PARAMS].frozen for base in cls.__mro__[1:] if _PARAMS in vars(base)]
    if frozen and any(frozen) != asked.frozen:
        _THEIRS(frozen=asked.frozen)(cls)  # it refuses: one is frozen and the other is not
    types: Mapping[str, Any] = cls.__annotations__
    given: dict[str, Any] = {name: value for name in types if (value := getattr(cls, name, _MISSING)) is not _MISSING}
    names = [name for name, kind in types.items() if not str(kind).startswith(("ClassVar", "typing.ClassVar"))]
    for name in names:  # a default stays what the class has of this name, unless slots take its place
        if isinstance(given.get(name), dataclasses.Field):
            if given[name].default is _MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, given[name].default)
    made = _slotted(cls, names) if asked.slots else cls
    setattr(made, _PARAMS, _params(asked.eq, asked.frozen, asked.slots, asked.kw_only))
    setattr(made, _FIELDS, _LateFields(made, types, given, asked.kw_only))
    if _MATCHED not in vars(cls):
        setattr(made, _MATCHED, _LateMatched(made, _MATCHED))
    return made


@cache
def _params(eq: bool, frozen: bool, slots: bool, kw_only: bool) -> object:
    """What a class says that it was asked for."""
    alike: type = _THEIRS(eq=eq, frozen=frozen, slots=slots, kw_only=kw_only)(type("Alike", (), {"__doc__": "None."}))
    return vars(alike)[_PARAMS]


def _slotted(cls: type, names: Sequence[str]) -> type:
    """The same class, with slots. Those of a base that has none are among them."""
    if "__slots__" in vars(cls):
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    taken: set[str] = set()
    wanted: dict[str, None] = {}
    for base in cls.__mro__[-2:0:-1]:
        slots: Any = vars(base).get("__slots__")
        taken |= {slots} if isinstance(slots, str) else set(slots or ())
        if slots is None and _FIELDS in vars(base):
            wanted |= dict.fromkeys(field.name for field in dataclasses.fields(base))
    wanted |= dict.fromkeys(names)
    body = {name: value for name, value in vars(cls).items() if name not in wanted}
    body["__slots__"] = tuple(name for name in wanted if name not in taken)
    body.pop("__dict__", None)
    body.pop("__weakref__", None)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _method(cls: type, name: str, asked: _Asked) -> Callable[..., object]:
    """As the standard library makes it."""
    fields = dataclasses.fields(cls)
    match name:
        case "__init__":
            made = _init(cls, fields, asked)
        case "__repr__":
            made = _repr([field.name for field in fields if field.repr])
        case "__eq__":
            made = _written(cls, "__eq__(self, other)", _equal([field for field in fields if field.compare]), {})
        case _:
            hashed = [field for field in fields if (field.compare if field.hash is None else field.hash)]
            made = _written(cls, "__hash__(self)", [f"return hash({_values('self', hashed)})"], {})
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    return made


def _equal(fields: Sequence[dataclasses.Field[Any]]) -> Sequence[str]:
    """What two objects are compared by; since Python 3.13 an object equals itself whatever its fields are, and these are not put into tuples."""
    of_one_class = "if other.__class__ is self.__class__ else NotImplemented"
    if sys.version_info < (3, 13):
        return [f"return {_values('self', fields)} == {_values('other', fields)} {of_one_class}"]
    alike = " and ".join(f"self.{field.name} == other.{field.name}" for field in fields) or "True"
    return ["if self is other:", " return True", f"return {alike} {of_one_class}"]


def _values(of: str, fields: Sequence[dataclasses.Field[Any]]) -> str:
    return f"({''.join(f'{of}.{field.name}, ' for field in fields)})"


def _init(cls: type, fields: Sequence[dataclasses.Field[Any]], asked: _Asked) -> Any:
    me = "__dataclass_self__" if any(field.name == "self" for field in fields) else "self"
    known: dict[str, object] = {"__dataclass_set__": object.__setattr__, "__dataclass_factory__": _FACTORY}
    takes: dict[bool, list[str]] = {False: [me], True: ["*"]}
    body: list[str] = []
    for field in fields:
        name, other, value = field.name, f"__dataclass_other_{field.name}__", field.name
        made = field.default_factory is not _MISSING
        if made or field.default is not _MISSING:
            known[other] = _plain(field.default_factory) if made else field.default
        if field.init:
            default = "" if other not in known else "=__dataclass_factory__" if made else f"={other}"
            takes[bool(field.kw_only)].append(f"{name}{default}")
            value = f"{other}() if {name} is __dataclass_factory__ else {name}" if made else name
        elif made or (asked.slots and other in known):
            value = f"{other}()" if made else other
        else:
            continue
        if cls.__setattr__ is object.__setattr__:
            body.append(f"{me}.{name} = {value}")
        else:  # the standard decorator's above, or its own
            body.append(f"__dataclass_set__({me}, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(f"{me}.__post_init__()")
    arguments = [*takes[False], *(takes[True] if len(takes[True]) > 1 else ())]
    made = _written(cls, f"__init__({', '.join(arguments)})", body or ["pass"], known)
    made.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return made


def _plain(factory: Any) -> Any:
    """``dict[str, int]`` is made as ``dict``: to call the first takes ten times as long, and gives the same."""
    origin = get_origin(factory)
    return origin if origin in (dict, list, set, frozenset) else factory


def _repr(names: Sequence[str]) -> Any:
    @recursive_repr("...")
    def __repr__(self: object) -> str:  # noqa: N807
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _written(cls: type, head: str, body: Sequence[str], known: Mapping[str, object]) -> Any:
    """A function of the module of the class; what it knows beside that is bound to it."""
    lines = [f"def made({', '.join(known)}):", f" def {head}:", *(f"  {line}" for line in body)]
    scope = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    found: dict[str, Any] = {}
    exec("\n".join([*lines, f" return {head.partition('(')[0]}"]), scope, found)  # noqa: S102 - names of fields alone
    return found["made"](**known)
