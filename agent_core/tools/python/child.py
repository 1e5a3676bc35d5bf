"""The worker's side of tools in Python: imports them, says what they are, and runs them. Nothing here runs in the gateway.

Known to be weak: what a tool has imported stays in its worker; a file that it imports from and that changes meanwhile is seen by the next worker.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import io
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import EntryPoint
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Annotated, Any, NotRequired, cast, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError, with_config
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, PydanticSerializationError, to_json, to_jsonable_python
from typing_extensions import TypedDict

from agent_core.jsonvalue import Json
from agent_core.toolbox import MARK, SECONDS, Call, Marked, NotDone
from agent_core.tools.python.sources import GROUP
from agent_core.workers import child

WORDS_CHARS = 2_000
"""Of an error, or of what is printed."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Unfit(Exception):
    """A function cannot be a tool; the words say why."""


# --- what there is ---


def describe(request: dict[str, Json], _: bytes) -> Json:
    """What tools a source has, and what in it cannot be one."""
    printed = _Printed()
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            functions, digest = _loaded(request)
        except BaseException as error:  # noqa: BLE001 - whatever a file does when it is imported
            return {"broken": _broken(error, request)}
    tools: list[Json] = []
    unfit: list[Json] = []
    for name, function in functions.items():
        try:
            tools.append(_described(name, function))
        except Unfit as error:
            unfit.append(f"{name}: {error}")
    return {"tools": tools, "unfit": unfit, "digest": digest}


def _loaded(request: Mapping[str, Json]) -> tuple[dict[str, Callable[..., Any]], str]:
    """The functions of a source by their names, and what tells its text from another."""
    file, entry = str(request["file"]), str(request["entry"])
    if file:
        found: object = _module(Path(file))
    else:
        found = EntryPoint("tools", entry, GROUP).load()
    if isinstance(found, ModuleType):
        functions = {name: one for name, one in vars(found).items() if _is_tool(name, one, found)}
    else:
        listed: list[Any] = [found] if callable(found) else [*cast("Iterable[Any]", found)]
        functions = {one.__name__: one for one in listed}
    origin = file or inspect.getsourcefile(found if isinstance(found, ModuleType) else next(iter(functions.values())))
    return functions, hashlib.sha256(Path(origin or os.devnull).read_bytes()).hexdigest()


def _module(file: Path) -> ModuleType:
    name = f"outspoken_tools_{file.stem}"
    if name in sys.modules:
        return sys.modules[name]
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_tool(name: str, one: object, module: ModuleType) -> bool:
    return isinstance(one, FunctionType) and not name.startswith("_") and one.__module__ == module.__name__


def _described(name: str, function: Callable[..., Any]) -> Json:
    if not _NAME.fullmatch(name):
        raise Unfit("a tool's name has at most 64 letters, digits and underscores, and begins with a letter")
    words = inspect.getdoc(function)
    if not words:
        raise Unfit("it has no docstring, and that is all that the model would know of it")
    try:
        schema: dict[str, Json] = _arguments(function).json_schema(schema_generator=_Untitled)
    except PydanticUserError as error:
        raise Unfit(f"its type hints cannot be told to a model: {_words(error).splitlines()[0]}") from error
    schema.pop("title", None)
    schema.setdefault("properties", {})
    mark: object = getattr(function, MARK, Marked("effect", SECONDS))
    assert isinstance(mark, Marked)
    return {
        "name": name,
        "description": words,
        "parameters": schema,
        "effect": mark.effect,
        "seconds": mark.seconds,
        "outside": mark.outside,
        "foreign": mark.foreign,
    }


class _Untitled(GenerateJsonSchema):
    """Titles say again what the names say, with each request."""

    def field_title_should_be_set(self, schema: CoreSchema | Any) -> bool:  # noqa: ARG002
        return False


def _arguments(function: Callable[..., Any]) -> TypeAdapter[dict[str, Any]]:
    """What reads the arguments. Raises `Unfit`, or what pydantic says of hints that it does not know."""
    fields: dict[str, Any] = {}
    for parameter, hint in _parameters(function):
        if hint is not Call:
            fields[parameter.name] = _field(parameter, hint)
    make: Any = TypedDict
    taken: Any = make("taken", fields)
    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(taken))


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, Any]]:
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except Exception as error:
        raise Unfit(f"its type hints cannot be read: {_words(error)}") from error
    for parameter in parameters:
        if parameter.kind in _POSITIONAL:
            raise Unfit(f"a model names each argument, which it cannot for {parameter}")
        if parameter.name not in hints:
            raise Unfit(f"its parameter {parameter.name} has no type hint")
        yield parameter, hints[parameter.name]


def _field(parameter: inspect.Parameter, hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        of, *notes = get_args(hint)
        told = [Field(description=one) if isinstance(one, str) else one for one in notes]
        hint = Annotated[of, *told]
    if parameter.default is inspect.Parameter.empty:
        return hint
    if isinstance(parameter.default, str | int | float | bool):
        hint = Annotated[hint, Field(json_schema_extra={"default": parameter.default})]
    return NotRequired[hint]


# --- running one ---


def call(request: dict[str, Json], _: bytes) -> Json:
    """Run a tool; what came of it."""
    printed = _Printed()
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            answer = _called(request)
        except NotDone as error:
            answer = {"status": "not_done", "text": _clean(_said(error))}
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is told to the model and to the log
            answer = {"status": "raised", "text": _words(error), "where": _where(error, request)}
    return {**answer, "printed": _clean(printed.getvalue())}


def _called(request: Mapping[str, Json]) -> dict[str, Json]:
    functions, digest = _loaded(request)
    if digest != request["digest"]:
        return {"status": "changed", "text": ""}
    function = functions[str(request["tool"])]
    try:
        arguments = _arguments(function).validate_python(request["arguments"])
    except ValidationError as error:
        return {"status": "arguments", "text": _clean(_complaint(error))}
    workspace = Path(str(request["workspace"]))
    workspace.mkdir(0o700, parents=True, exist_ok=True)
    os.chdir(workspace)
    told = Call(workspace, str(request["key"]), bool(request["again"]), _progress())
    arguments |= {parameter.name: told for parameter, hint in _parameters(function) if hint is Call}
    found = function(**arguments)
    if inspect.isgenerator(found):
        found = list(found)  # here, so that what it raises is the tool's own and no trouble of writing it down
    if inspect.isasyncgen(found):
        found = _all_of(found)
    if inspect.iscoroutine(found):
        found = asyncio.run(found)
    return {"status": "ok", "text": _clean(_text(found))}


async def _all_of(given: AsyncIterator[object]) -> list[object]:
    return [one async for one in given]


def _progress() -> Callable[[str], None]:
    say = child.sayer()
    return lambda words: say(_clean(str(words)))


def _text(found: object) -> str:
    match found:
        case None:
            return "Done."
        case str():
            return found
        case bytes() | bytearray():
            raise TypeError("it returned bytes; it has to return text, or to write a file and name it")
        case _:
            return _as_json(found)


def _as_json(found: object) -> str:
    """What has no form in JSON stands there with its words, if its author gave it some. An address in memory says nothing to a model."""
    wordless: list[str] = []

    def said(part: object) -> str:
        if type(part).__str__ is object.__str__ and type(part).__repr__ is object.__repr__:
            wordless.append(type(part).__name__)
        return str(part)

    try:
        text = to_json(found, fallback=said).decode()
    except PydanticSerializationError as error:
        if "surrogates" not in str(error):
            raise
        text = json.dumps(to_jsonable_python(found, fallback=said))  # half a character stands there as it is spelled
    if wordless:
        raise TypeError(
            f"it returned an object ({wordless[0]}) that has no words; it has to return text, numbers, lists or dicts"
        )
    return text


def _complaint(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'the arguments'}: {first['msg']}"


def _words(error: BaseException) -> str:
    words = f"{type(error).__name__}: {_said(error)}".removesuffix(": ")
    return _clean(words)[:WORDS_CHARS]


def _said(error: BaseException) -> str:
    """An error's words. Its author has written how they are made, and that may fail as well."""
    try:
        return str(error)
    except BaseException as another:  # noqa: BLE001
        return f"(its words cannot be had: {type(another).__name__})"


def _where(error: BaseException, request: Mapping[str, Json]) -> str:
    """The deepest line of the file itself, which is where its author has to look."""
    found = ""
    trace = error.__traceback__
    while trace is not None:
        if str(request["file"]) in ("", trace.tb_frame.f_code.co_filename):
            found = f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    if not found and isinstance(error, SyntaxError):
        return f" ({Path(error.filename or '').name}, line {error.lineno})"
    return found


def _broken(error: BaseException, request: Mapping[str, Json]) -> str:
    """Why a file cannot be imported; the words of a syntax error have no place, as `_where` tells it."""
    told = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else _words(error)
    return f"{_clean(told)}{_where(error, request)}"


def _clean(text: str) -> str:
    """Without half characters, which no JSON holds."""
    return text.encode("utf-8", "replace").decode()


class _Printed(io.StringIO):
    """The beginning of what is printed."""

    def write(self, text: str, /) -> int:
        room = WORDS_CHARS - self.tell()
        if room > 0:
            super().write(text[:room])
        return len(text)
