"""All families, and what their marks are: a new one is a file with a `FAMILY` and a line here."""

from __future__ import annotations

from collections.abc import Iterable

from agent_core.model.families import (
    bare,
    deepseek,
    gemma,
    glm,
    harmony,
    hermes,
    invoke,
    jsonmarks,
    kimi,
    liquid,
    llama,
    mistral,
    qwen,
)
from agent_core.model.families.family import A_NAME, Calls, Family
from agent_core.model.families.grammar.marks import marks_of
from agent_core.model.families.grammar.steps import (
    END,
    Grammar,
    NotACall,
    ahead,
    json_value,
    one_of,
    spaces,
    until,
    word,
)
from agent_core.model.families.pieces import BrokenReason
from agent_core.model.stream.thoughts import (
    GRANITE,
    GRANITE_ENDS,
    STRIPPED_COMMENTARY,
    STRIPPED_ENDS,
    STRIPPED_FINAL,
    STRIPPED_HARMONY,
)

FAMILIES: tuple[Family, ...] = tuple(
    module.FAMILY
    for module in (hermes, qwen, glm, invoke, mistral, deepseek, kimi, llama, harmony, liquid, gemma, jsonmarks, bare)
)


def _all(marks: Iterable[tuple[str, ...]]) -> frozenset[str]:
    return frozenset(mark for each in marks for mark in each)


OPENERS: dict[str, tuple[Family, ...]] = {
    mark: tuple(family for family in FAMILIES if mark in family.openers)
    for mark in sorted(_all(family.openers for family in FAMILIES))
}
WORDS = _all(family.words for family in FAMILIES)
WRAPPERS = _all(family.wrappers for family in FAMILIES)
CLOSERS = _all(family.closers for family in FAMILIES)
NOISE = _all(family.noise for family in FAMILIES)
FINAL = frozenset(
    {
        "<|im_end|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|eot|>",
        "<|end_of_text|>",
        "<end_of_turn>",
        "<turn|>",
        "<|user|>",
        "<｜end▁of▁sentence｜>",
    }
)
"""Ends of a model's turn (all of them `NOISE`). A server that does not know one lets the model go on, in the person's name and its own:
vllm-project/vllm#5924, ollama/ollama#13912, #12459."""
LAST = frozenset({"</s>", "<eos>", "[EOS]"})
"""Ends of replies that some servers pass on. They vanish at the end, and are text elsewhere."""
CALL_MARKS = marks_of([*OPENERS, *WRAPPERS, *CLOSERS, *NOISE, *LAST])
STRIPPED_MARKS = marks_of([STRIPPED_COMMENTARY, STRIPPED_FINAL])
OTHER_MARKS = marks_of([*harmony.FAMILY.openers, *NOISE, *LAST])
"""What is looked for where no tool is on offer: channels, and what means nothing to anybody."""
CALL_BEGINNINGS = marks_of([*OPENERS, *WRAPPERS])
START_CHARS = "{[faH`"
"""With these a reply begins that may be a call without a mark, or a thought."""
_TOKENS = ("<|", "<｜")
_BEGINNINGS = tuple(sorted({*OPENERS, *WRAPPERS}))
_FOLLOWS = {
    opener: tuple(sorted({follow for family in families for follow in family.follows if follow != A_NAME}))
    for opener, families in OPENERS.items()
}


def opened(calls: Calls, opener: str) -> Grammar:
    """A call that a mark begins, in the grammar of the family whose way it goes on in."""
    yield from spaces()
    wanted = _FOLLOWS[opener] + (_BEGINNINGS if opener in WRAPPERS else ())
    follows = (yield from one_of(*wanted, take=False)) if wanted else None
    if follows == END and opener in WORDS and calls.ends_well:
        raise NotACall
    if follows == END:
        yield from _cut(calls)
        return
    if follows in _BEGINNINGS and follows not in _FOLLOWS[opener]:
        return
    family = next((each for each in OPENERS[opener] if (A_NAME if follows is None else follows) in each.follows), None)
    if family is None:
        raise NotACall
    yield from family.read(calls, opener)
    if calls.committed and not calls.any:
        calls.broken(BrokenReason.CUT_OFF)


def wrapped(calls: Calls, mark: str) -> Grammar:
    """A mark around calls: it vanishes if a call begins behind it. Special tokens are no words of anybody, and vanish always."""
    yield from spaces()
    follows = yield from one_of(*_BEGINNINGS, take=False)
    if follows is None and not mark.startswith(_TOKENS):
        raise NotACall
    if follows == END:
        yield from _cut(calls)


def _cut(calls: Calls) -> Grammar:
    """The text ended before the call began: half of what should come belongs to it, and is shown to nobody."""
    calls.broken(BrokenReason.CUT_OFF)
    yield from until()


def last(_calls: Calls, mark: str) -> Grammar:
    """A mark that vanishes if nothing follows it."""
    yield from spaces()
    if (yield from one_of(mark)) is None:
        raise NotACall


def stripped_call(calls: Calls, _opener: str) -> Grammar:
    """What follows the thoughts of gpt-oss without its special tokens: a call, or text."""
    yield from spaces()
    if not (yield from one_of("to=")):
        raise NotACall
    recipient = yield from word()
    _, mark = yield from until("{", "\n")
    if mark != "{" or not recipient:
        raise NotACall
    calls.open(recipient.removeprefix("functions."))
    text, whole, _ = yield from json_value(deep=1)
    if whole:
        calls.arguments("{" + text)
    else:
        calls.broken(BrokenReason.CUT_OFF)
    yield from spaces()


def beginning(calls: Calls, opener: str) -> Grammar:
    """The first characters of a reply: a call without a mark, a thought without one, or text."""
    if (yield from one_of("functools[", "{", "[", take=False)):
        yield from bare.read(calls, opener)
        return
    if (yield from one_of("```", take=False)):
        yield from bare.fenced(calls, opener)
        return
    said = yield from one_of(STRIPPED_HARMONY, *GRANITE)
    if not said:
        raise NotACall
    if said == STRIPPED_HARMONY:
        following = yield from ahead(1)
        if not following.isupper():
            raise NotACall
    calls.thinks, calls.said = (STRIPPED_ENDS if said == STRIPPED_HARMONY else GRANITE_ENDS), said
