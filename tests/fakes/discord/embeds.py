"""Embeds and their limits (https://docs.discord.com/developers/resources/message#embed-object-embed-limits). No I/O."""

from __future__ import annotations

from tests.fakes.common import Json, JsonObject
from tests.fakes.discord.forms import Form

MAX_EMBEDS = 10
MAX_TOTAL = 6000
"""Characters in all embeds of a message together."""


def read_embeds(form: Form) -> list[Json] | None:
    """The field `embeds`; None if it is not there. What is wrong is noted in the form."""
    if not form.given("embeds"):
        return None
    embeds: list[Json] = []
    total = 0
    for item in form.items("embeds", most=MAX_EMBEDS):
        total += _read(item)
        body: JsonObject = {**item.values, "type": "rich"}
        embeds.append(body)
    if total > MAX_TOTAL:
        form.flaw("embeds", "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {MAX_TOTAL}")
    return embeds


def _read(item: Form) -> int:
    """Look at every field; the number of characters that count."""
    total = len(item.text("title", most=256) or "") + len(item.text("description", most=4096) or "")
    item.text("type")
    item.text("url", most=2048)
    item.text("timestamp")
    item.integer("color", least=0, most=0xFFFFFF)
    item.raw("flags")
    for name, words, most in (("footer", "text", 2048), ("author", "name", 256)):
        inner = item.object(name)
        if inner is not None:
            total += len(inner.text(words, most=most, required=True) or "")
            for told in ("url", "icon_url", "proxy_icon_url"):
                inner.text(told, most=2048)
    for name in ("image", "thumbnail", "video", "provider"):
        inner = item.object(name)
        if inner is not None:
            for told in inner.values:
                inner.raw(told)
    for one in item.items("fields", most=25):
        total += len(one.text("name", least=1, most=256, required=True) or "")
        total += len(one.text("value", least=1, most=1024, required=True) or "")
        one.flag("inline")
    return total
