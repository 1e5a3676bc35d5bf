"""What an endpoint with a model takes otherwise than we ask: as its refusals say. Pure. How long that is believed is in `learnt`.

Providers that speak the same API refuse each other's fields. A refusal that names a field which was sent costs one cheap request: the
field is left out (or called otherwise), the same call is made again at once, and for a while it is made so. That is no failure of the
model: no remedy is spent on it, and nobody hears of it but the log; of tools that are missing the person does, too.

Words of refusals, each seen (the list is `_REFUSAL`; a row is easily added):

| what is said | who |
|---|---|
| Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead. | OpenAI, Azure, GitHub |
| Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported. | OpenAI |
| Unrecognized request argument supplied: parallel_tool_calls | Azure |
| {'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'} | Mistral, vLLM, Databricks |
| property 'store' is unsupported | Groq |
| Invalid JSON payload received. Unknown name "parallel_tool_calls": Cannot find field. | Gemini |
| stream_options: Unknown field / json: unknown field "stream_options" | servers in Go |
| "auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set | vLLM |
| … does not support tools | Ollama |
| 'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 tokens … | vLLM (vllm-project/vllm#20409) |
| max_tokens: 21333 > 4096, which is the maximum allowed number of output tokens | Anthropic (anthropics/claude-code#11302) |
| Range of max_tokens should be [1, 8192] | DashScope |
| Unsupported value: 'stream' does not support true with this model; Your organization must be verified to stream this model. | OpenAI |
| No endpoints found that support tool use | OpenRouter (404) |
| Missing `reasoning_content` field in the assistant message / … must be passed back to the API | DeepSeek |
| Function call is missing a thought_signature in functionCall parts | Gemini |
| Invalid `signature` in `thinking` block; Thought signature is not valid; … could not be verified | Anthropic; Gemini; OpenAI |
| Expected `thinking` or `redacted_thinking`, but found `tool_use` | Anthropic |

What chat templates refuse is in `templates`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import orjson

from agent_core.jsonvalue import Json
from agent_core.messages import Message
from agent_core.model.templates import AS_IT_IS, GRAMMAR, THOUGHTS_BESIDE, TemplateForm, fitted, learnt
from agent_core.records import dataclass
from agent_core.text.patterns import late

AMENDS = 6
"""How often one call is put otherwise."""
REFUSED = frozenset({400, 404, 415, 422, 501})
"""Statuses with which a field is refused."""
TEXT_CHARS = 8_000
_ESSENTIAL = frozenset({"model", "messages", "stream"})
_REFUSAL = late(
    r"unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|extra_forbidden|extra inputs|not permitted|not allowed|"
    r"does not support|doesn't support|not support|invalid parameter|additional propert|cannot find field|is deprecated|"
    r"not a valid (?:field|parameter)|no such field|must be (?:unset|omitted)|only the default|不支持|不支援",
    re.IGNORECASE,
)
_TOO_MANY = late(
    r"\bmax_(?:completion_|output_)?tokens\b.{0,60}(?:too large|too many|less than|<=|\d > \d|must be|should be|range)"
    r"|range of max_tokens|\b[1-9]\d* in the completion",
    re.IGNORECASE,
)
"""More output is asked for than there is room for: whoever is not told how much gives what there is."""
_NO_STREAM = late(
    r"stream(?:ing)? (?:is|are) not (?:supported|enabled|allowed)|(?<![\w.])[`'\"]?stream[`'\"]? does not support|verified to stream"
    r"|(?:does not|doesn't) support stream(?:ing)?\b(?!_)",
    re.IGNORECASE,
)
"""It answers only as a whole."""
_LIMITS = ("max_tokens", "max_completion_tokens")
_NO_TOOLS = late(
    r"does not support (?:tools|tool use|tool calling|function calling|functions)|support tool use|--enable-auto-tool-choice|"
    r"tool(?:s| use| calling)? (?:is|are) not supported|function calling is not (?:supported|enabled)|tools param requires --jinja",
    re.IGNORECASE,
)
TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls")
_WANTS_THOUGHTS = late(
    r"reasoning_content.{0,80}(?:passed back|required|必须)|(?:missing|require[sd]?) [`'\"]?reasoning_content",
    re.IGNORECASE | re.DOTALL,
)
_WANTS_SIGNATURE = late(r"missing a? ?[`'\"]?thought_?signature", re.IGNORECASE)
_BAD_SIGNATURE = late(
    r"(?:invalid|corrupted|malformed) [`'\"]?(?:thought[_ ])?(?:signature|data)|(?:thought )?signature (?:is )?(?:not valid|invalid|corrupted)|"
    r"thinking[`'\"]? (?:or [`'\"]?redacted_thinking[`'\"]? )?blocks.{0,60}cannot be modified|encrypted content.{0,80}could not be",
    re.IGNORECASE | re.DOTALL,
)
_NEEDS_BLOCKS = late(r"expected [`'\"]?thinking[`'\"]?.{0,60}but found", re.IGNORECASE | re.DOTALL)
_THOUGHT_FIELDS = (
    "reasoning_content",
    "reasoning_details",
    "thinking_blocks",
    "reasoning",
    "extra_content",
    "thought_signature",
)
_THINKING_SWITCHES = ("thinking", "reasoning_effort", "reasoning", "enable_thinking", "chat_template_kwargs")


@dataclass(frozen=True, slots=True)
class Manners:
    """How requests to one endpoint for one model are put."""

    left_out: frozenset[str] = frozenset()
    completion_tokens: bool = False
    """``max_tokens`` is called ``max_completion_tokens`` here."""
    thoughts_refused: bool = False
    """Takes no thoughts back."""
    wants_thoughts: bool = False
    """Wants ``reasoning_content`` with every call of a tool, also where another model had made it."""
    wants_signatures: bool = False
    """Wants a signature with every call of a tool, also where another model had made it."""
    forget_thoughts: bool = False
    """For this one call: thoughts are left out, because one of their signatures is not accepted any more."""
    unlimited: bool = False
    """For this one call: it does not say how much it may answer, because there is no room for as much as that."""
    form: TemplateForm = AS_IT_IS
    """What its chat template wants of a conversation."""
    plain_schemas: bool = False
    """Tools' schemas have types alone: what narrows their values makes a grammar that the server cannot read."""

    def kept(self) -> Manners:
        """What holds for later calls as well."""
        this_time = self.forget_thoughts or self.unlimited
        return replace(self, forget_thoughts=False, unlimited=False) if this_time else self


POLITE = Manners()


def put(body: Mapping[str, object], manners: Manners) -> dict[str, object]:
    """The body of a request as it is taken."""
    left_out = manners.left_out.union(_LIMITS) if manners.unlimited else manners.left_out
    found = {key: value for key, value in body.items() if key not in left_out}
    if manners.form != AS_IT_IS:
        found["messages"] = fitted(cast("Sequence[Message]", found["messages"]), manners.form)
    if manners.completion_tokens and "max_tokens" in found:
        found.setdefault("max_completion_tokens", found.pop("max_tokens"))
        found.pop("max_tokens", None)
    return found


def amended(manners: Manners, sent: Mapping[str, object], status: int, refusal: Json) -> Manners | None:
    """How the same call may be taken after this refusal of `sent`; None if nothing that could be left out was refused."""
    text = _text(refusal)
    found = _about_templates(manners, sent, text)
    if found is None and status in REFUSED:
        found = _about_thoughts(manners, sent, text) or _about_fields(manners, sent, text, status)
    return found if found != manners else None


def _about_templates(manners: Manners, sent: Mapping[str, object], text: str) -> Manners | None:
    """What local servers refuse before the model is asked, under any status."""
    if THOUGHTS_BESIDE.search(text):
        return replace(manners, thoughts_refused=True)
    if "tools" in sent and GRAMMAR.search(text) and not manners.plain_schemas:
        return replace(manners, plain_schemas=True)
    if "tools" in sent and (GRAMMAR.search(text) or _NO_TOOLS.search(text)):
        return replace(manners, left_out=manners.left_out.union(TOOL_FIELDS))
    form = learnt(manners.form, cast("Sequence[Message]", sent["messages"]), text)
    return replace(manners, form=form) if form != manners.form else None


def _about_thoughts(manners: Manners, sent: Mapping[str, object], text: str) -> Manners | None:
    if _WANTS_SIGNATURE.search(text):
        return replace(manners, wants_signatures=True)
    if _WANTS_THOUGHTS.search(text):
        return replace(manners, wants_thoughts=True, thoughts_refused=False)
    if _BAD_SIGNATURE.search(text):
        return replace(manners, forget_thoughts=True)
    if _NEEDS_BLOCKS.search(text):
        switches = {name for name in _THINKING_SWITCHES if name in sent}
        return replace(manners, left_out=manners.left_out | switches)
    if _REFUSAL.search(text) and any(_mention(name, text) >= 0 for name in _THOUGHT_FIELDS if name not in sent):
        return replace(manners, thoughts_refused=True, wants_thoughts=False)
    return None


def _about_fields(manners: Manners, sent: Mapping[str, object], text: str, status: int) -> Manners | None:
    if _TOO_MANY.search(text) and any(limit in sent for limit in _LIMITS):
        return replace(manners, unlimited=True)
    if "max_tokens" in sent and not manners.completion_tokens and "max_completion_tokens" in text:
        return replace(manners, completion_tokens=True)
    if "stream" in sent and _NO_STREAM.search(text):
        return replace(manners, left_out=manners.left_out | {"stream", "stream_options"})
    if status == 404 or not _REFUSAL.search(text):
        return None
    named = [
        (at, name) for name in sent if name not in _ESSENTIAL and name != "tools" and (at := _mention(name, text)) >= 0
    ]
    return replace(manners, left_out=manners.left_out | {min(named)[1]}) if named else None


def _mention(name: str, text: str) -> int:
    """Where `text` speaks of the field; -1 if it does not. A field of the same name inside another (``a.name``) is another."""
    found = re.search(rf"(?<![\w.\[]){re.escape(name)}(?![\w\[])", text)
    if found is None:
        found = re.search(rf"body\.{re.escape(name)}(?![\w.\[])", text)
    return found.start() if found else -1


def _text(refusal: Json) -> str:
    if isinstance(refusal, str):
        return refusal[:TEXT_CHARS]
    try:
        return orjson.dumps(refusal).decode()[:TEXT_CHARS].replace('\\"', '"')
    except (TypeError, ValueError):  # too deep, or a character that UTF-8 cannot spell
        return ""
