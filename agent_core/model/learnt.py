"""How long what an endpoint refused is believed, and of whom it may be learnt. Pure; one `Learnt` for each endpoint, model and kind of request.

Theory. A refusal is one provider's word about one request. It may be true for a moment only (a router that had nobody left), for this kind
of request only (pictures together with tools), or be no word about the request at all: what guards it quotes what a person wrote. So

- nothing is learnt from a refusal whose words stand in the conversation that was sent: the same call may be put otherwise, that is all (`own_words`);
- nothing is learnt from a remedy that did not help: only what was taken is kept;
- what is kept is kept for a while; then the whole request is tried again, which costs one cheap refusal if it still holds;
- the tools are what a person misses most: they are left out beforehand only after two whole requests in a row were refused for them, for a
  minute at first and at most an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import orjson

from agent_core.jsonvalue import Json
from agent_core.messages import Message, beside_words
from agent_core.model.manners import POLITE, TOOL_FIELDS, Manners
from agent_core.records import NONE, dataclass
from agent_core.retry import TOOLS_LEFT_OUT

KEPT_SECONDS = 3_600.0
CONFIRMED = 2
"""So many whole requests in a row have to be refused for their tools."""
_QUOTED_WORDS = 3
"""So many words in a row that stand in the conversation as well are a quotation; a message that is shorter is one as a whole."""
_WORD = re.compile(r"\w+")
_MASK = "\0"
_MEDIA = frozenset({"image_url", "input_audio", "file", "video_url"})


@dataclass(slots=True)
class Learnt:
    """What is known of requests of one kind."""

    _manners: Manners = POLITE
    _until: float = 0.0
    _tools_until: float = 0.0
    _refused: int = 0
    """Whole requests in a row that were refused for their tools."""

    def manners(self, now: float) -> Manners:
        """How a call is put that begins `now` (s)."""
        if now >= self._until:
            return POLITE
        return self._manners if now < self._tools_until else with_tools(self._manners)

    def taken(self, began: Manners, used: Manners, now: float, *, tools: bool) -> None:
        """A call (with `tools` on offer or not) that began as `began` was taken as `used`."""
        used = used.kept()
        if used != began.kept():
            self._until = now + KEPT_SECONDS
            self._manners = used
        if not tools or without_tools(began):
            return
        if without_tools(used):
            self._refused += 1
            self._tools_until = now + TOOLS_LEFT_OUT.seconds(self._refused - CONFIRMED + 1)  # before that it is none
        else:
            self._refused = 0


def without_tools(manners: Manners) -> bool:
    """Whether no tool is offered so."""
    return "tools" in manners.left_out


def with_tools(manners: Manners) -> Manners:
    """The same, with tools."""
    return replace(manners, left_out=manners.left_out.difference(TOOL_FIELDS)) if without_tools(manners) else manners


def kind_of(messages: Sequence[Message]) -> frozenset[str]:
    """What kind of request it is: what there is in it beside text."""
    found: set[str] = set()
    for message in beside_words(messages):
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(kind, str) and kind in _MEDIA:
                found.add(kind)
    return frozenset(found or NONE)


def own_words(refusal: Json, messages: Sequence[Message]) -> Json:
    """The refusal without what of it may only repeat the conversation."""
    said = [*_texts(refusal)]
    words = [_words(text) for text in said]
    runs = {run for each in words for run in _runs(each)}
    lines = {tuple(each[at : at + size]) for each in words for size in (1, 2) for at in range(len(each) - size + 1)}
    quoted: set[tuple[str, ...]] = set()
    for message in messages:
        for text in _texts(message.get("content")):
            spoken = _words(text)
            quoted |= runs.intersection(_runs(spoken))
            if len(spoken) < _QUOTED_WORDS and tuple(spoken) in lines:
                quoted.add(tuple(spoken))
    quoted.discard(())
    return _masked(refusal, quoted) if quoted else refusal


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(words: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return zip(words, words[1:], words[2:], strict=False)


def _texts(value: Json) -> Iterable[str]:
    """All text in it, but for what pictures and the like are made of."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
        case dict():
            for key, item in value.items():
                if key not in _MEDIA:
                    yield from _texts(item)
        case _:
            return


def _masked(value: Json, quoted: set[tuple[str, ...]]) -> Json:
    match value:
        case str():
            return _mask(value, quoted)
        case list():
            return [_masked(item, quoted) for item in value]
        case dict():
            return {key: _masked(item, quoted) for key, item in value.items()}
        case _:
            return value


def _mask(text: str, quoted: set[tuple[str, ...]]) -> str:
    inner = _object_in(text)
    if inner is not None:  # an answer that is wrapped in another one
        return orjson.dumps(_masked(inner, quoted)).decode()
    found = [(hit.start(), hit.end(), hit.group().casefold()) for hit in _WORD.finditer(text)]
    out, done = "", 0
    for at in range(len(found)):
        for size in (_QUOTED_WORDS, 2, 1):
            run = found[at : at + size]
            if len(run) == size and tuple(word for _, _, word in run) in quoted:
                start, end = max(done, run[0][0]), run[-1][1]
                if end > done:
                    out, done = f"{out}{text[done:start]}{_MASK}", end
    return out + text[done:]


def _object_in(text: str) -> dict[str, Json] | None:
    if not text.startswith("{"):
        return None
    try:
        found: Json = orjson.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
