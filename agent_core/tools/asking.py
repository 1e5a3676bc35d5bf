"""What a tool asks the person while it runs: a form, a field at a time, or an address that they open themselves. Pure.

Other programs write these questions, so nothing of them is formatted or followed: their words stand on lines of their own, and what looks like a
secret is never asked for. What was asked and answered is an intention of the call (`kept`), so it is journalled, shown by every surface as the journal
has it, and what was answered before a restart is not asked again.

Laws (tests/agent_core/tools/test_asking.py): whatever is asked and answered, what a tool gets fits its form; a form ends by acceptance, refusal or
its time alone; every step can be read back from what is kept.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import cast
from urllib.parse import urlsplit

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.text.patterns import late
from agent_core.text.redaction import is_secret_name
from agent_core.text.shown import middle, plain
from agent_core.text.tongue import sentence, speak

KEPT = "questions_asked"
"""The intention's key."""
MOST_FIELDS = 20
MOST_OPTIONS, OPTIONS_CHARS = 20, 350
"""Of one field. All of a question has to fit into one message of any chat, escaped."""
WORDS_CHARS, FIELD_CHARS, NAME_CHARS, ANSWER_CHARS, ADDRESS_CHARS = 400, 150, 60, 2_000, 500
MOST_NUMBER = 1e15
MOST_SECONDS = 3_600
"""A call waits so long for people in all."""
ANSWERED_ALREADY = sentence("That was answered already.")
DECLINE, CANCEL, SKIP, DONE = "decline", "cancel", "skip", "done"
YES = frozenset({"yes", "y", "true", "1", "on", "ja", "oui", "si", "sí"})
NO = frozenset({"no", "n", "false", "0", "off", "nein", "non"})
_EMAIL = late(r"[^@\s]{1,200}@[^@\s]{1,200}")
_DATE = late(r"\d{4}-\d{2}-\d{2}")
_TIME = late(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?")


class FieldKind(StrEnum):
    """What a field takes."""

    TEXT = "string"
    NUMBER = "number"
    WHOLE = "integer"
    YES_NO = "boolean"
    CHOICE = "choice"
    SEVERAL = "several"


class AnswerAction(StrEnum):
    """What became of a question, by the protocol's names."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    """Nobody said anything, or somebody would not say."""


@dataclass(frozen=True, slots=True)
class AskedField:
    """One field of a form."""

    name: str
    words: str
    """Its title and what explains it."""
    kind: FieldKind
    needed: bool
    options: tuple[tuple[str, str], ...] = ()
    """(value, how it is shown)"""
    least: float | None = None
    """Of a number, of a text's characters, or of how many are chosen."""
    most: float | None = None
    form: str = ""
    """Of a text: email, uri, date, date-time."""
    usual: Json = None


@dataclass(frozen=True, slots=True)
class ToolQuestion:
    """What a tool asks."""

    asks: str
    """Who asks, for people."""
    words: str
    fields: tuple[AskedField, ...] = ()
    address: str = ""
    """Where the person is to go, instead of a form."""


def hidden(question: ToolQuestion, hide: Callable[[str], str]) -> ToolQuestion:
    """The question without what `hide` takes out; what is proposed as an answer is not proposed if it holds any of that. Pure."""
    fields = tuple(
        replace(
            one, words=hide(one.words), options=tuple((value, hide(shown)) for value, shown in one.options),
            usual=one.usual if hide(str(one.usual)) == str(one.usual) else None,
        )
        for one in question.fields
    )  # fmt: skip
    return replace(
        question, asks=hide(question.asks), words=hide(question.words), fields=fields, address=hide(question.address)
    )


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool gets."""

    action: AnswerAction
    content: Mapping[str, Json] = field(default_factory=dict[str, Json])
    why: str = ""
    """Where nobody was asked, or nobody answered: why, in words for the model."""


@dataclass(frozen=True, slots=True)
class AskedStep:
    """One question as a person sees it, and what they answered."""

    mark: str
    """The same for the same question of the same program."""
    text: str
    options: tuple[str, ...] = ()
    """Answers that can be pressed."""
    answer: str | None = None
    by: str = ""

    @property
    def open(self) -> bool:
        return self.answer is None


NOBODY = ToolAnswer(AnswerAction.CANCEL, why="nobody can be asked here")


def read_question(asks: str, words: str, schema: Json, address: str = "") -> ToolQuestion | str:
    """A question as a program put it, or why it is not asked, in words that complete "it is not asked: ..."."""
    said = middle(words, WORDS_CHARS)
    if address:
        try:
            parts = urlsplit(address)
            sound = (
                parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.username or parts.password)
            )
        except ValueError:
            sound = False
        if not sound or len(address) > ADDRESS_CHARS or plain(address) != address:
            return "the address is none that can be shown to a person"
        return ToolQuestion(asks, said, address=address)
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or len(properties) > MOST_FIELDS:
        return f"it has no form of 1 to {MOST_FIELDS} fields" if properties != {} else "it has no fields"
    needed = schema.get("required") if isinstance(schema, dict) else None
    names = needed if isinstance(needed, list) else []
    fields: list[AskedField] = []
    for name, one in properties.items():
        found = _field(name, one, needed=name in names)
        if isinstance(found, str):
            return found
        fields.append(replace(found, usual=_fitting_usual(found)))
    return ToolQuestion(asks, said, tuple(fields))


def _field(name: str, schema: Json, *, needed: bool) -> AskedField | str:
    if not isinstance(schema, dict):
        return f"its field {plain(name)[:NAME_CHARS]} cannot be read"
    title, about = schema.get("title"), schema.get("description")
    shown = [middle(plain(one), FIELD_CHARS) for one in (title, about) if isinstance(one, str) and one.strip()]
    form = schema.get("format") if isinstance(schema.get("format"), str) else ""
    named = (name, *(re.sub(r"[\s-]+", "_", one) for one in (title, about) if isinstance(one, str)))
    if form == "password" or any(map(is_secret_name, named)):
        return f"its field {plain(name)[:NAME_CHARS]} looks like a secret, and secrets are never asked for in a conversation"
    words = ": ".join(shown) or plain(name)[:NAME_CHARS]
    usual = schema.get("default")
    kind, items = schema.get("type"), schema.get("items")
    several = kind == "array" and isinstance(items, dict)
    options = _options(cast("Mapping[str, Json]", items) if several else schema)
    if len(options) > MOST_OPTIONS or sum(len(shown) for _, shown in options) > OPTIONS_CHARS:
        return f"its field {plain(name)[:NAME_CHARS]} has more choices than can be shown"
    if several and options:
        least, most = _number(schema.get("minItems")), _number(schema.get("maxItems"))
        return AskedField(name, words, FieldKind.SEVERAL, needed, options, least, most, usual=usual)
    match kind:
        case "string" if options:
            return AskedField(name, words, FieldKind.CHOICE, needed, options, usual=usual)
        case "string":
            least, most = _number(schema.get("minLength")), _number(schema.get("maxLength"))
            return AskedField(name, words, FieldKind.TEXT, needed, (), least, most, str(form), usual)
        case "number" | "integer":
            least, most = _number(schema.get("minimum")), _number(schema.get("maximum"))
            return AskedField(name, words, FieldKind(kind), needed, (), least, most, usual=usual)
        case "boolean":
            return AskedField(name, words, FieldKind.YES_NO, needed, usual=usual)
        case _:
            return f"its field {plain(name)[:NAME_CHARS]} is of a kind that cannot be asked for"


def _options(schema: Mapping[str, Json]) -> tuple[tuple[str, str], ...]:
    values, titles = schema.get("enum"), schema.get("enumNames")
    if isinstance(values, list):
        names = titles if isinstance(titles, list) and len(titles) == len(values) else values
        return tuple((str(value), plain(str(name))[:NAME_CHARS]) for value, name in zip(values, names, strict=True))
    for key in ("oneOf", "anyOf"):
        listed = schema.get(key)
        if isinstance(listed, list):
            found = [one for one in listed if isinstance(one, dict) and isinstance(one.get("const"), str)]
            return tuple(
                (str(one["const"]), plain(str(one.get("title") or one["const"]))[:NAME_CHARS]) for one in found
            )
    return ()


def _fitting_usual(one: AskedField) -> Json:
    """What the program proposes, if it is an answer that the field takes: whoever skips the field gives it."""
    values = [value for value, _ in one.options]
    fits = False
    match one.kind, one.usual:
        case FieldKind.TEXT, str(said):
            fits = not isinstance(_text(one, said), NotFitting)
        case (FieldKind.YES_NO, bool()):
            fits = True
        case (FieldKind.NUMBER | FieldKind.WHOLE, bool()):
            pass
        case (FieldKind.NUMBER, int() | float() as number) | (FieldKind.WHOLE, int() as number):
            fits = abs(number) < MOST_NUMBER and _within(one, number)
        case FieldKind.CHOICE, str(chosen):
            fits = chosen in values
        case FieldKind.SEVERAL, list(several):
            fits = all(each in values for each in several) and _within(one, len(several))
        case _:
            pass
    return one.usual if fits else None


def _number(value: Json) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


# ---------------------------------------------------------------------- what is said


def step_of(question: ToolQuestion, at: int) -> AskedStep:
    """The question number `at`, as it is put to a person."""
    said = "\n".join(f"> {plain(line)}" for line in question.words.splitlines()[:30] if line.strip())
    who = plain(question.asks)
    asks = speak("{who} asks:", who=who)
    head = f"{asks}\n{said}" if said else speak("{who} asks you something.", who=who)
    if question.address:
        opened = speak(
            "It wants you to open this address, at {host}:", host=plain(urlsplit(question.address).hostname or "")
        )
        how = speak(HOW_TO_OPEN)
        return AskedStep(_mark(question, 0), f"{head}\n{opened}\n{question.address}\n{how}", (DONE, DECLINE))
    if not question.fields:
        how = speak(YES_OR_DECLINE)
        return AskedStep(_mark(question, 0), f"{head}\n{how}", ("yes", DECLINE))
    one = question.fields[at]
    place = speak(" ({at} of {count})", at=at + 1, count=len(question.fields)) if len(question.fields) > 1 else ""
    how = speak(HOW if one.needed else HOW_OR_SKIP, usual=_usual_words(one))
    words = f"{head}\n{one.words}{place}: {_takes(one)}\n{how}"
    options = tuple(shown for _, shown in one.options) if one.kind is FieldKind.CHOICE else ()
    pressed = ("yes", "no") if one.kind is FieldKind.YES_NO else options[:8]
    return AskedStep(_mark(question, at), words, (*pressed, *(() if one.needed else (SKIP,)), DECLINE))


HOW = sentence("Answer with {/answer} and your words, or {/answer decline}.")
HOW_TO_OPEN = sentence("Open it only if you trust that. {/answer done} when you have, {/answer decline} if not.")
YES_OR_DECLINE = sentence("{/answer yes} or {/answer decline}")
HOW_OR_SKIP = sentence("Answer with {/answer} and your words, {/answer skip}{usual}, or {/answer decline}.")


def _usual_words(one: AskedField) -> str:
    shown = dict(one.options)
    match one.usual:
        case None | "":
            return ""
        case bool(said):
            usual = "yes" if said else "no"
        case list(several):
            usual = ", ".join(shown.get(str(each), str(each)) for each in several)
        case said:
            usual = shown.get(str(said), str(said))
    return speak(" (then it is {usual})", usual=plain(usual)[:NAME_CHARS])


_TEXTS = {
    "email": sentence("an e-mail address"),
    "uri": sentence("an address"),
    "date": sentence("a date such as 2026-05-31"),
    "date-time": sentence("a time such as 2026-05-31T14:00Z"),
}


def _takes(one: AskedField) -> str:
    options = "; ".join(shown for _, shown in one.options)
    match one.kind:
        case FieldKind.TEXT:
            return speak(_TEXTS[one.form]) if one.form in _TEXTS else speak("a text")
        case FieldKind.NUMBER | FieldKind.WHOLE:
            what = speak("a number") if one.kind is FieldKind.NUMBER else speak("a whole number")
            least, most = (f"{each:g}" if each is not None else "" for each in (one.least, one.most))
            if least and most:
                return speak("{what}, {least} to {most}", what=what, least=least, most=most)
            if least:
                return speak("{what}, at least {bound}", what=what, bound=least)
            return speak("{what}, at most {bound}", what=what, bound=most) if most else what
        case FieldKind.YES_NO:
            return speak("yes or no")
        case FieldKind.CHOICE:
            return speak("one of {options}", options=options)
        case FieldKind.SEVERAL:
            return speak("some of {options}, with commas between", options=options)


def _mark(question: ToolQuestion, at: int) -> str:
    said = "\0".join((question.asks, question.words, question.address, *(one.name for one in question.fields), str(at)))
    return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=6).hexdigest()


def read_value(one: AskedField, words: str) -> Json | NotFitting:
    """What somebody's words are as a field's value."""
    said = words.strip()
    if len(said) > 1 and said[0] == said[-1] == '"':
        said = said[1:-1]
    match one.kind:
        case FieldKind.TEXT:
            return _text(one, said)
        case FieldKind.NUMBER | FieldKind.WHOLE:
            return _number_of(one, said)
        case FieldKind.YES_NO:
            known = said.lower()
            return True if known in YES else False if known in NO else NotFitting(speak("Say yes or no."))
        case FieldKind.CHOICE:
            return _chosen(one, said)
        case FieldKind.SEVERAL:
            picked = [_chosen(one, part.strip()) for part in said.split(",") if part.strip()]
            wrong = next((each for each in picked if isinstance(each, NotFitting)), None)
            if wrong is not None:
                return wrong
            values = cast("list[Json]", list(dict.fromkeys(cast("list[str]", picked))))
            return values if _within(one, len(values)) else NotFitting(speak("Choose another number of them."))


@dataclass(frozen=True, slots=True)
class NotFitting:
    """What is wrong with an answer, for the person."""

    words: str


def _within(one: AskedField, size: float) -> bool:
    return (one.least is None or size >= one.least) and (one.most is None or size <= one.most)


def _text(one: AskedField, said: str) -> str | NotFitting:
    if not said and one.needed:
        return NotFitting(speak("It must not be empty."))
    if not _within(one, len(said)) or len(said) > ANSWER_CHARS:
        return NotFitting(speak("It is too long or too short."))
    fits = {"email": _EMAIL, "date": _DATE, "date-time": _TIME}.get(one.form)
    if fits is not None and not fits.fullmatch(said):
        return NotFitting(speak("It must be {what}.", what=_takes(one)))
    if one.form == "uri" and not re.match(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:\S", said):
        return NotFitting(speak("It must be {what}.", what=_takes(one)))
    return said


def _number_of(one: AskedField, said: str) -> Json | NotFitting:
    try:
        found: float = int(said) if one.kind is FieldKind.WHOLE else float(said.replace(",", "."))
    except ValueError:
        return NotFitting(speak("It must be {what}.", what=_takes(one)))
    return (
        found
        if abs(found) < MOST_NUMBER and _within(one, found)
        else NotFitting(speak("It must be {what}.", what=_takes(one)))
    )


def _chosen(one: AskedField, said: str) -> str | NotFitting:
    for value, shown in one.options:
        if said in (value, shown):
            return value
    near = [value for value, shown in one.options if said.lower() in (value.lower(), shown.lower())]
    return near[0] if len(near) == 1 else NotFitting(speak("Choose {what}.", what=_takes(one)))


# ---------------------------------------------------------------------- how it goes


@dataclass(slots=True)
class PersonAsked:
    """A question that is open. `steps` are all that was asked in this call so far, also before a restart, with those of this question last: what is
    asked again stands where it stood."""

    question: ToolQuestion
    steps: list[AskedStep]
    known: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was answered before a restart, by the question's mark."""
    content: dict[str, Json] = field(default_factory=dict[str, Json])
    action: AnswerAction | None = None
    _at: int = 0

    def begin(self) -> None:
        """Put the first question, or the next that was not answered before."""
        self._next()

    def _next(self) -> None:
        while self.action is None:
            if self._at and self._at >= len(self.question.fields):
                self.action = AnswerAction.ACCEPT
                return
            step = step_of(self.question, self._at)
            if self.steps and self.steps[-1].open:  # of before a restart: nobody waits for it any more
                self.steps.pop()
            before = self.known.get(step.mark)
            stands = any(one.mark == step.mark and one.answer == before for one in self.steps)
            if not stands:
                self.steps.append(step)
            if before is not None and self._take(before, "") is None:
                continue
            if stands:
                self.steps.append(step)
            return

    def answer(self, words: str, by: str) -> str:
        """Somebody's words. What they are told: what is wrong with them, or that they were taken."""
        if self.action is not None:
            return speak(ANSWERED_ALREADY)
        complaint = self._take(words.strip()[:ANSWER_CHARS], by)
        if complaint is not None:
            return complaint
        self._next()
        return self._told()

    def _told(self) -> str:
        match self.action:
            case None:
                return ""
            case AnswerAction.ACCEPT:
                return speak("Thank you.")
            case AnswerAction.DECLINE | AnswerAction.CANCEL:
                return speak("It is told that you decline.")

    def _take(self, words: str, by: str) -> str | None:
        """None if they were taken, else what is wrong with them."""
        known = words.lower()
        if known in (DECLINE, CANCEL):
            self.action = AnswerAction.DECLINE if known == DECLINE else AnswerAction.CANCEL
        elif not self.question.fields:
            if known not in (YES | {DONE}):
                return speak(HOW_TO_OPEN if self.question.address else YES_OR_DECLINE)
            self.action = AnswerAction.ACCEPT
        else:
            one = self.question.fields[self._at]
            if known == SKIP and not one.needed:
                if one.usual is not None:
                    self.content[one.name] = one.usual
            else:
                value = read_value(one, words)
                if isinstance(value, NotFitting):
                    return value.words
                self.content[one.name] = value
            self._at += 1
        if self.steps[-1].open:
            self.steps[-1] = replace(self.steps[-1], answer=words, by=by)
        return None

    def expire(self) -> None:
        """Nobody answered in time."""
        if self.action is None:
            self.action = AnswerAction.CANCEL
            self.steps[-1] = replace(self.steps[-1], answer="")

    def result(self) -> ToolAnswer:
        """What the tool gets."""
        if self.action is AnswerAction.ACCEPT:
            return ToolAnswer(self.action, dict(self.content))
        expired = self.steps[-1].answer == ""
        why = "the person did not answer in time" if expired else "the person would not answer"
        return ToolAnswer(self.action or AnswerAction.CANCEL, why=why)


def kept(steps: Sequence[AskedStep]) -> Json:
    """The steps as an intention."""
    rows: list[Json] = [
        {"mark": one.mark, "text": one.text, "options": list(one.options), "answer": one.answer, "by": one.by}
        for one in steps
    ]
    return {KEPT: rows}


def steps_of(intention: Json) -> tuple[AskedStep, ...]:
    """The steps of an intention; none if it is of something else."""
    rows = intention.get(KEPT) if isinstance(intention, dict) else None
    found: list[AskedStep] = []
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        options, answer = row.get("options"), row.get("answer")
        found.append(
            AskedStep(
                str(row.get("mark") or ""),
                str(row.get("text") or ""),
                tuple(str(one) for one in options) if isinstance(options, list) else (),
                answer if isinstance(answer, str) else None,
                str(row.get("by") or ""),
            )
        )
    return tuple(found)


def shown_step(step: AskedStep) -> str:
    """A step as it stands in a chat."""
    if step.answer is None:
        return step.text
    said = middle(plain(step.answer), 200) if step.answer else speak("nobody answered in time")
    return f"{step.text}\n→ {said}"
