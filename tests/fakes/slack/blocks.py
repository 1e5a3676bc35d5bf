"""Block Kit, as far as messages of an agent need it: what is allowed, what a person reads, and what can be pressed. Pure.

https://docs.slack.dev/reference/block-kit/blocks
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.fakes.common import Json, JsonObject
from tests.fakes.slack.errors import ApiError, bad_blocks
from tests.fakes.slack.shapes import as_list, as_object, as_objects, as_text, unescaped

MAX_BLOCKS = 50
MAX_VIEW_BLOCKS = 100
MAX_SECTION = 3000
MAX_HEADER = 150
MAX_MARKDOWN = 12_000
"""All `markdown` blocks of one message together."""
MAX_BUTTON = 75
MAX_VALUE = 2000
MAX_ID = 255
MAX_TASK_TITLE = 256
TASK_STATES = frozenset({"pending", "in_progress", "complete", "error"})
ALERT_LEVELS = frozenset({"default", "info", "warning", "error", "success"})
TYPES = frozenset(
    [
        "actions",
        "alert",
        "card",
        "carousel",
        "context",
        "context_actions",
        "divider",
        "file",
        "header",
        "image",
        "input",
        "markdown",
        "plan",
        "rich_text",
        "section",
        "table",
        "task_card",
        "video",
    ]
)


@dataclass(frozen=True, slots=True)
class Button:
    """Something in a message that a person can press."""

    caption: str
    action_id: str
    block_id: str
    value: str
    kind: str
    """`button`, `feedback_buttons` or `icon_button`."""
    style: str = ""
    url: str = ""


# --- checking ---


def checked(blocks: Json, *, limit: int = MAX_BLOCKS, where: str = "blocks") -> list[JsonObject]:
    """The blocks of a request with a `block_id` each.

    Raises:
        ApiError: they are not what Block Kit takes.
    """
    if not isinstance(blocks, list):
        raise ApiError("invalid_blocks_format")
    if len(blocks) > limit:
        raise bad_blocks(f"no more than {limit} items allowed", where)
    good: list[JsonObject] = []
    for index, block in enumerate(blocks):
        if not isinstance(block, dict):
            raise bad_blocks("must be an object", f"{where}/{index}")
        _check_block(block, f"{where}/{index}")
        good.append({"block_id": f"b{index}", **block})
    names = [as_text(block["block_id"]) for block in good]
    if len(set(names)) < len(names):
        raise bad_blocks("block_id must be unique", where)
    if sum(len(as_text(block.get("text"))) for block in good if block["type"] == "markdown") > MAX_MARKDOWN:
        raise ApiError("msg_too_long")
    return good


def _check_block(block: JsonObject, where: str) -> None:
    kind = block.get("type")
    if kind not in TYPES:
        raise bad_blocks(f"unsupported type: {kind}", f"{where}/type")
    if len(as_text(block.get("block_id"))) > MAX_ID:
        raise bad_blocks(f"must be less than {MAX_ID + 1} characters", f"{where}/block_id")
    match kind:
        case "section":
            if "text" not in block and "fields" not in block:
                raise bad_blocks("missing required field: text", where)
            if "text" in block:
                _check_text(block["text"], MAX_SECTION, f"{where}/text")
            if "accessory" in block:
                _check_element(as_object(block["accessory"]), f"{where}/accessory")
        case "header":
            _check_text(block.get("text"), MAX_HEADER, f"{where}/text", plain=True)
        case "markdown":
            if not as_text(block.get("text")):
                raise bad_blocks("must be more than 0 characters", f"{where}/text")
        case "alert":
            _check_text(block.get("text"), MAX_SECTION, f"{where}/text")
            if block.get("level", "default") not in ALERT_LEVELS:
                raise bad_blocks("must be default, info, warning, error or success", f"{where}/level")
        case "task_card":
            if not as_text(block.get("task_id")) or not 1 <= len(as_text(block.get("title"))) <= MAX_TASK_TITLE:
                raise bad_blocks("missing required field: task_id or title", where)
            if block.get("status") not in TASK_STATES:
                raise bad_blocks("must be pending, in_progress, complete or error", f"{where}/status")
        case "actions" | "context" | "context_actions":
            most = {"actions": 25, "context": 10, "context_actions": 5}[str(kind)]
            elements = block.get("elements")
            if not isinstance(elements, list) or not 1 <= len(elements) <= most:
                raise bad_blocks(f"must have 1 to {most} items", f"{where}/elements")
            for index, element in enumerate(as_objects(elements)):
                _check_element(element, f"{where}/elements/{index}")
            named = [name for one in as_objects(elements) if (name := as_text(one.get("action_id")))]
            if len(named) != len({*named}):
                raise bad_blocks("action_id must be unique within its block", f"{where}/elements")
        case _:
            pass


def _check_text(value: Json, limit: int, where: str, *, plain: bool = False) -> None:
    text = as_object(value)
    kinds = {"plain_text"} if plain else {"plain_text", "mrkdwn"}
    if text.get("type") not in kinds:
        raise bad_blocks("must provide an object of type " + " or ".join(sorted(kinds)), where)
    if not 1 <= len(as_text(text.get("text"))) <= limit:
        raise bad_blocks(f"must be 1 to {limit} characters", f"{where}/text")


def _check_element(element: JsonObject, where: str) -> None:
    if len(as_text(element.get("action_id"))) > MAX_ID:
        raise bad_blocks(f"must be less than {MAX_ID + 1} characters", f"{where}/action_id")
    match element.get("type"):
        case "button":
            _check_button(element, where)
        case "feedback_buttons":
            for name in ("positive_button", "negative_button"):
                _check_button(as_object(element.get(name)), f"{where}/{name}")
                if not as_text(as_object(element.get(name)).get("value")):
                    raise bad_blocks("missing required field: value", f"{where}/{name}")
        case "mrkdwn" | "plain_text":
            _check_text(element, MAX_SECTION, where)
        case str():
            pass
        case _:
            raise bad_blocks("missing required field: type", where)


def _check_button(button: JsonObject, where: str) -> None:
    _check_text(button.get("text"), MAX_BUTTON, f"{where}/text", plain=True)
    if len(as_text(button.get("value"))) > MAX_VALUE:
        raise bad_blocks(f"must be less than {MAX_VALUE + 1} characters", f"{where}/value")
    if button.get("style", "primary") not in {"primary", "danger"}:
        raise bad_blocks("must be primary or danger", f"{where}/style")


# --- reading ---


def read_aloud(blocks: Sequence[JsonObject]) -> str:
    """The words of blocks, a line for each; buttons are not among them."""
    return "\n".join(line for block in blocks if (line := _words(block)))


def _words(block: JsonObject) -> str:
    match block.get("type"):
        case "markdown":
            return as_text(block.get("text"))
        case "section":
            parts = [block.get("text"), *as_list(block.get("fields"))]
            return "\n".join(word for part in parts if (word := _plain(part)))
        case "header" | "alert":
            return _plain(block.get("text"))
        case "context":
            return " ".join(word for part in as_list(block.get("elements")) if (word := _plain(part)))
        case "rich_text":
            return "".join(_rich(part) for part in as_objects(block.get("elements")))
        case "image":
            return as_text(block.get("alt_text"))
        case "plan" | "task_card":
            title = block.get("title")
            return title if isinstance(title, str) else _plain(title)
        case _:
            return ""


def _plain(value: Json) -> str:
    return unescaped(as_text(as_object(value).get("text")))


def _rich(element: JsonObject) -> str:
    match element.get("type"):
        case "text":
            return as_text(element.get("text"))
        case "link":
            return as_text(element.get("text")) or as_text(element.get("url"))
        case "user":
            return f"<@{as_text(element.get('user_id'))}>"
        case "emoji":
            return f":{as_text(element.get('name'))}:"
        case _:
            return "".join(_rich(part) for part in as_objects(element.get("elements")))


def buttons(blocks: Sequence[JsonObject]) -> list[Button]:
    """Everything that can be pressed, from top to bottom."""
    return [button for block in blocks for button in _pressable(block)]


def _pressable(block: JsonObject) -> Iterator[Button]:
    block_id = as_text(block.get("block_id"))
    elements = as_objects(block.get("elements"))
    if block.get("type") == "section":
        elements = [as_object(block.get("accessory"))]
    for element in elements:
        kind, action = as_text(element.get("type")), as_text(element.get("action_id"))
        match kind:
            case "button" | "icon_button":
                value, style = as_text(element.get("value")), as_text(element.get("style"))
                url = as_text(element.get("url"))
                yield Button(_plain(element.get("text")), action, block_id, value, kind, style, url)
            case "feedback_buttons":
                for name in ("positive_button", "negative_button"):
                    half = as_object(element.get(name))
                    yield Button(_plain(half.get("text")), action, block_id, as_text(half.get("value")), kind)
            case _:
                pass


def typed(text: str) -> list[JsonObject]:
    """The block in which what a person typed arrives beside the text."""
    words: JsonObject = {"type": "text", "text": unescaped(text)}
    section: JsonObject = {"type": "rich_text_section", "elements": [words]}
    return [{"type": "rich_text", "block_id": "typed", "elements": [section]}]
