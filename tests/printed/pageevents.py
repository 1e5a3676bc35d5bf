"""The page ``docs/page-events.md``: what the web page's stream of events holds, printed from the shapes that are sent. Pure.

``python -m tests.printed.pageevents > docs/page-events.md``; a test compares the two (tests/docs/test_generated.py).
"""

from __future__ import annotations

import sys

from adapters.http.openapi.document import document
from agent_core.jsonvalue import Json

_HEAD = """# The web page's events

<!-- printed: python -m tests.printed.pageevents > docs/page-events.md -->

What the [web page](web.md) shows comes in one stream, and another page can show the same:

```
GET /api/sessions/SESSION/events     # SESSION: 8 to 64 letters, digits, - or _, chosen by the page
Authorization: Bearer KEY            # where a key is needed
```

It is a stream of server-sent events with two names:

- `snapshot`, once, at the beginning: the latest 50 messages of the conversation;
- `turns`, whenever something changes: the messages that changed. At most one every 25 ms.

The `data` of both is a JSON list of messages. Each message is whole, as it is now, and takes the place of the one with the same `key`; so nothing has to be put together, a page that comes back is up
to date after the first event, and one that was slow skips what is over. A line that begins with `:` only keeps the connection. When the stream ends, connect again; 401 or 403 then says
why not.

Names that begin with `c-` belong to one browser where no key says whose they are: each request for them has the header `X-Outspoken-Browser`, 8 to 64 letters, digits, - or _, which the browser makes up
and tells nobody else. `GET /api/conversations` lists those of the key's person or of this browser.

With `?changes=1` the page itself is told less: of each message what changed, and of what the model says not its Markdown but the elements that are new. That form
may change with every version.

To say something: `POST /api/sessions/SESSION/messages` with `{"id": …, "text": …}`; 202 is said when it is stored, and the same `id` again is the same message. `POST …/stop` stops the turn that runs,
`POST …/approvals` with `{"turn": …, "call": …, "approve": true}` answers a bubble of the kind `approval`, and `GET /api/turns/TURN/why` tells the story of a turn. Their shapes are in
`/openapi.json`.
"""
_TABLES = (
    ("PageMessage", "A message", "Order them by `order`; those with the same one by their place in the list."),
    (
        "PageBubble",
        "A bubble",
        "In the order of the turn; a status is the last, and only there while the turn is open.",
    ),
    ("PageFigures", "`summary`", "Once the turn is over."),
)


def markdown() -> str:
    """The whole page."""
    return _HEAD + "".join(_table(*each) for each in _TABLES)


def _table(name: str, title: str, words: str) -> str:
    schemas = _schemas()
    shape = schemas[name]
    assert isinstance(shape, dict)
    fields = shape["properties"]
    assert isinstance(fields, dict)
    rows = "".join(f"| `{field}` | {_type(schema, schemas)} | {_said(schema)} |\n" for field, schema in fields.items())
    return f"\n## {title}\n\n{words}\n\n| field | type | meaning |\n|---|---|---|\n{rows}"


def _schemas() -> dict[str, Json]:
    components = document("")["components"]
    assert isinstance(components, dict)
    schemas = components["schemas"]
    assert isinstance(schemas, dict)
    return schemas


def _said(schema: Json) -> str:
    words = schema.get("description", "") if isinstance(schema, dict) else ""
    return str(words).replace("\n", " ").replace("|", "\\|")


def _type(schema: Json, schemas: dict[str, Json]) -> str:
    assert isinstance(schema, dict)
    if isinstance(either := schema.get("anyOf"), list):
        return " or ".join(_type(each, schemas) for each in either)
    if isinstance(reference := schema.get("$ref"), str):
        name = reference.rpartition("/")[2]
        found = schemas[name]
        assert isinstance(found, dict)
        values = found.get("enum")
        return ", ".join(f"`{value}`" for value in values) if isinstance(values, list) else name
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'], schemas)}"
    return str(schema["type"])


if __name__ == "__main__":
    sys.stdout.write(markdown())
