"""The OpenAPI document: the table of routes, with what each takes and answers; of a gateway, those that it serves. Pure.

Law (tests/adapters/test_openapi.py): it is a valid document of OpenAPI 3.1, has every route and nothing else, and is the same each time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import get_args, get_origin

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import is_typeddict

from adapters.http.openapi import shapes
from adapters.http.openapi.codes import CODES
from adapters.http.openapi.operations import (
    ALWAYS,
    OPERATIONS,
    ApiAnswer,
    ApiOperation,
    Media,
    QueryParameter,
    WhoseKey,
)
from adapters.http.openapi.shapes import ErrorAnswer
from adapters.http.routes import HttpRoute, Tag
from adapters.http.sessions import shapes as its_shapes
from agent_core.jsonvalue import Json

_WORDS = ConfigDict(use_attribute_docstrings=True)
"""What stands beneath a field is its description."""
_NAME: dict[str, Json] = {"type": "string", "minLength": 1}
_PAGE_SESSION: dict[str, Json] = {"type": "string", "pattern": shapes.PAGE_NAME}
SUMMARY = "One agent behind OpenAI's API, a web page and chats, which never goes silent"
REFERENCE = "#/components/schemas/{model}"
_KEYS: Mapping[WhoseKey, list[Json]] = {
    WhoseKey.NOBODY: [],
    WhoseKey.CALLER: [{"key": []}, {}],
    WhoseKey.OPERATOR: [{"operatorKey": []}, {}],
    WhoseKey.SIGNED: [],
}
"""Without any key the gateway serves its own machine only, so none may be needed."""


for _module in (shapes, its_shapes):
    for _shape in vars(_module).values():
        if is_typeddict(_shape):
            _shape.__pydantic_config__ = _WORDS


class _Schemas:
    """The shapes that were named so far."""

    def __init__(self) -> None:
        self.named: dict[str, Json] = {}

    def of(self, shape: type | dict[str, Json]) -> dict[str, Json]:
        """The schema of a shape: a reference, if it has a name."""
        if isinstance(shape, dict):
            return shape
        if get_origin(shape) is list:
            return {"type": "array", "items": self.of(get_args(shape)[0])}
        if not is_typeddict(shape):
            return {"type": "object"}
        schema: dict[str, Json] = TypeAdapter(shape).json_schema(ref_template=REFERENCE)
        inner = schema.pop("$defs", {})
        assert isinstance(inner, dict)
        for name, each in {**inner, shape.__name__: schema}.items():
            self.named[name] = _plain(each)
        return {"$ref": REFERENCE.format(model=shape.__name__)}


def _plain(schema: Json) -> Json:
    """Without titles, which only repeat the names."""
    if isinstance(schema, dict):
        return {name: _plain(each) for name, each in schema.items() if name != "title" or isinstance(each, dict)}
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema


def document(version: str, served: Collection[HttpRoute] = tuple(HttpRoute)) -> dict[str, Json]:
    """The document of a gateway of this version that serves these routes."""
    schemas = _Schemas()
    paths: dict[str, dict[str, Json]] = {}
    for route in (one for one in HttpRoute if one in served):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, OPERATIONS[route], schemas)
    error: dict[str, Json] = {Media.JSON.value: {"schema": schemas.of(ErrorAnswer)}}
    _with_codes(schemas.named)
    refused: Json = {"description": "It is not served; `error` says why.", "content": error}
    license_: dict[str, Json] = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
    info: dict[str, Json] = {"title": "outspoken", "version": version, "summary": SUMMARY, "license": license_}
    components: dict[str, Json] = {
        "schemas": dict(sorted(schemas.named.items())),
        "responses": {"Error": refused},
        "securitySchemes": {"key": _bearer("A key of the API"), "operatorKey": _bearer("The operators' key")},
    }
    return {
        "openapi": "3.1.0",
        "info": info,
        "tags": [{"name": tag.value[0], "description": tag.value[1]} for tag in Tag],
        "paths": {path: {**items} for path, items in paths.items()},
        "components": components,
    }


def _bearer(words: str) -> Json:
    return {"type": "http", "scheme": "bearer", "description": f"{words}, where one is configured"}


def _with_codes(named: dict[str, Json]) -> None:
    error = named["ApiError"]
    assert isinstance(error, dict)
    properties = error["properties"]
    assert isinstance(properties, dict)
    properties["code"] = {"description": "One of a closed set.", "enum": [*sorted(CODES), None]}


def _operation(route: HttpRoute, operation: ApiOperation, schemas: _Schemas) -> dict[str, Json]:
    answers: dict[str, Json] = {status: _answer(answer, schemas) for status, answer in operation.answers.items()}
    statuses = {
        *ALWAYS,
        *operation.errors,
        *(["401"] if operation.caller in (WhoseKey.CALLER, WhoseKey.OPERATOR) else []),
    }
    errors: dict[str, Json] = {
        status: {"$ref": "#/components/responses/Error"} for status in sorted(statuses) if status not in answers
    }
    body = _body(operation, schemas)
    parameters: list[Json] = [*_path(route), *map(_query, operation.query), *map(_header, operation.headers)]
    described: dict[str, Json] = {
        "operationId": route.name.lower(),
        "summary": route.summary,
        "tags": [route.tag.value[0]],
        "responses": answers | errors,
        "security": _KEYS[operation.caller],
    }
    if parameters:
        described["parameters"] = parameters
    if body:
        described["requestBody"] = body
    return described


def _answer(answer: ApiAnswer, schemas: _Schemas) -> dict[str, Json]:
    schema = schemas.of(answer.shape) if answer.shape is not None else {}
    content: dict[str, Json] = {}
    for media in answer.media:
        written = schema if media is Media.JSON else {}
        content[media.value] = {"schema": written} if written else {}
    told: dict[str, Json] = {"description": answer.words, "content": content}
    if answer.events:
        told["x-events"] = {
            name: {"type": "array", "items": schemas.of(shape)} for name, shape in answer.events.items()
        }
    if answer.leads_to:
        told["links"] = {route.name.lower(): _link(route) for route in answer.leads_to}
    return told


def _link(route: HttpRoute) -> Json:
    name = re.findall(r"\{([a-z_]+)\}", route.path)[0]
    return {"operationId": route.name.lower(), "parameters": {name: "$response.body#/id"}}


def _body(operation: ApiOperation, schemas: _Schemas) -> dict[str, Json]:
    if operation.body is None:
        return {}
    content: dict[str, Json] = {Media.JSON.value: {"schema": schemas.of(operation.body)}}
    return {"required": operation.body_needed, "content": content}


def _path(route: HttpRoute) -> list[Json]:
    named = route.tag is Tag.PAGE
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _PAGE_SESSION if named and name == "session" else _NAME,
        }
        for name in re.findall(r"\{([a-z_]+)\}", route.path)
    ]


def _query(one: QueryParameter) -> Json:
    return {"name": one.name, "in": "query", "schema": one.schema, "description": one.words}


def _header(name: str) -> Json:
    return {"name": name, "in": "header", "schema": {"type": "string"}, "description": "See the page about the API."}
