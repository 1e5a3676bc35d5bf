"""A person's text as they see it: links, names and times in words instead of Slack's signs. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.text.links import labelled
from agent_core.text.patterns import late

_REFERENCE = late(r"<(?P<what>(?:https?|mailto):[^|<>]+|[#@]\w+|![^|<>]+)(?:\|(?P<label>[^<>]*))?>")
_MENTION = late(r"<@([A-Z0-9]+)>")


def unescaped(text: str) -> str:
    """A text as the person sees it (https://docs.slack.dev/messaging/formatting-message-text): a link with its label, the names of channels and groups,
    entities resolved. People who are mentioned by their ids stay as they are, see `mentioned`."""
    text = _REFERENCE.sub(lambda found: _seen(found["what"], found["label"] or ""), text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _seen(what: str, label: str) -> str:
    match what[0]:
        case "#":
            return f"#{label}" if label else what
        case "@":
            return f"@{label}" if label else f"<{what}>"
        case "!":
            if what.startswith("!date"):
                return label
            return label if label.startswith("@") else f"@{label or what[1:]}"
        case _:
            return labelled(label, what)


def mentioned(text: str) -> tuple[str, ...]:
    """Whom a text mentions by their ids, each once."""
    return tuple(dict.fromkeys(_MENTION.findall(text)))


def with_names(text: str, names: Mapping[str, str]) -> str:
    """A text with the names of those whom it mentions, as far as they are known."""
    return _MENTION.sub(lambda found: f"@{names[found[1]]}" if found[1] in names else found[0], text)
