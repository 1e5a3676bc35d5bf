"""The registry of tools: what is offered, whether a call can run, and how it is run.

Checking is pure; running is bounded by the tool's deadline and never raises for what a tool does. A result that is too long is
cut in its middle, and says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import structlog

from agent_core.jsonvalue import Json
from agent_core.patience import Limit
from agent_core.records import changed, dataclass
from agent_core.store.errors import Damaged, StorageUnavailable
from agent_core.text.diffs import FileChange
from agent_core.text.nearest import nearest
from agent_core.tools.arguments import COMPLAINT_CHARS, parsed
from agent_core.tools.asking import ToolAnswer, ToolQuestion
from agent_core.tools.asking import hidden as without
from agent_core.tools.base import (
    RESULT_CHARS,
    ChangingTool,
    ChoosingTool,
    EffectClass,
    NotPossible,
    PreparedTool,
    Tool,
    ToolContext,
    ToolOutcome,
    ToolSpec,
    ToolStatus,
)

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

log = structlog.get_logger("tool")

LONGEST_NAME = 100
"""To a longer one no tool's name is near."""
PREPARE_SECONDS = 10.0
REFUSED = "refused"
"""The intention of a call that cannot be carried out: begun again, it says the same."""
STORAGE_SECONDS = 1.0
"""So long a call waits before it is run again because nothing could be stored or read."""
NO_STORAGE = "failed because the gateway's database does not answer just now."
DOUBT = " It may have been done, in whole or in part: check before you repeat it."


@dataclass(frozen=True, slots=True)
class Runnable:
    """The call can run with these arguments."""

    spec: ToolSpec
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class NoSuchTool:
    name: str
    nearest: str | None
    why: str = ""
    """Why it is not there, if that is known: a sentence."""


@dataclass(frozen=True, slots=True)
class ArgumentsUnreadable:
    name: str
    complaint: str
    """For the model: what is wrong, in a sentence of at most 501 characters."""


@dataclass(frozen=True, slots=True)
class ToolChanged:
    """The program that brings the tool has withdrawn it since the turn began, or says now that it needs more care than it was taken to need."""

    name: str
    withdrawn: bool


Checked: TypeAlias = Runnable | NoSuchTool | ArgumentsUnreadable | ToolChanged


def _as_it_is(words: str) -> str:
    return words


def _unsaid(_: str) -> str:
    return ""


class ToolRegistry:
    """The tools of a gateway."""

    def __init__(
        self, tools: Iterable[Tool], *, result_chars: int = RESULT_CHARS, hide: Callable[[str], str] = _as_it_is
    ) -> None:
        """`hide` takes the gateway's own secrets out of what tools say."""
        self._own = {tool.spec.name: tool for tool in tools}
        self._tools = self._own
        self._result_chars = result_chars
        self.hide = hide
        self.missing: Callable[[str], str] = _unsaid
        """Why there is no tool of a name, as far as whoever brings tools knows."""
        self._validators: dict[str, Draft202012Validator] = {}
        self.brought: tuple[ToolSpec, ...] = ()
        """The tools of other programs, which come and go; each time they change this is another tuple."""

    def bring(self, tools: Iterable[Tool]) -> None:
        """From now on these tools of other programs are there beside the gateway's own, which no name is taken from."""
        more = {tool.spec.name: tool for tool in tools if tool.spec.name not in self._own}
        self._tools = {**self._own, **more}
        self._validators = {name: one for name, one in self._validators.items() if name in self._own}
        self.brought = tuple(tool.spec for tool in more.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def deadline_seconds(self, name: str) -> float:
        """How long a tool may run; 0 for one that there is not."""
        return self._tools[name].spec.deadline_seconds if name in self._tools else 0.0

    def specs(self) -> list[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    def openai_tools(self, choices: frozenset[str] | None = None) -> list[dict[str, Json]]:
        """The schemas in the API's format; `choices` are those that a tool with choices has, if not all."""
        specs = (
            tool.among(choices) if choices is not None and isinstance(tool, ChoosingTool) else tool.spec
            for tool in self._tools.values()
        )
        return [
            {
                "type": "function",
                "function": {"name": s.name, "description": s.description, "parameters": dict(s.parameters)},
            }
            for s in specs
        ]

    def check(
        self, name: str, arguments: str, offered: Sequence[str] | None = None, taken: EffectClass | None = None
    ) -> Checked:
        """Whether a call can run. `offered`: the names that this turn offers, if not all; `taken`: the class that the turn knows the tool by."""
        names = self.names if offered is None else tuple(offered)
        known = self._tools.get(name)
        if taken is not None and name in names and (known is None or known.spec.effect.riskier(taken)):
            return ToolChanged(name, known is None)
        if name not in names or known is None:
            near = nearest(name, names, least=0.5) if len(name) <= LONGEST_NAME else []
            return NoSuchTool(name, next(iter(near), None), self.missing(name))
        spec = known.spec
        found = parsed(arguments)
        if isinstance(found, str):
            return ArgumentsUnreadable(name, f"{found}.")
        error = next(iter(self._validator(spec).iter_errors(found)), None)  # pyright: ignore[reportUnknownMemberType] - jsonschema leaves it untyped
        if error is None:
            return Runnable(spec, found)
        where = "/".join(str(part) for part in error.absolute_path) or "the arguments"
        return ArgumentsUnreadable(name, f"{where}: {error.message}"[:COMPLAINT_CHARS] + ".")

    def _validator(self, spec: ToolSpec) -> Draft202012Validator:
        if spec.name not in self._validators:
            from jsonschema import Draft202012Validator

            self._validators[spec.name] = Draft202012Validator(
                dict(spec.parameters if spec.checked is None else spec.checked)
            )
        return self._validators[spec.name]

    def stands(self, checked: Runnable) -> bool:
        """The tool is there as it was when the call was checked."""
        known = self._tools.get(checked.spec.name)
        return known is not None and known.spec is checked.spec

    def prepares(self, checked: Runnable) -> bool:
        """Its tool puts something down before it runs."""
        return _prepares(self._tools[checked.spec.name])

    async def prepare(self, checked: Runnable, context: ToolContext) -> Json:
        """What a call is about to do, to be committed before it runs. Never raises: what cannot be done is told by `run`."""
        tool = self._tools[checked.spec.name]
        if not _prepares(tool):
            return None
        name = checked.spec.name
        try:
            async with Limit(PREPARE_SECONDS):
                return await tool.prepare(checked.arguments, context)
        except NotPossible as refusal:
            words = str(refusal)
        except TimeoutError:
            words = f"{name} could not look at what it is to change within {PREPARE_SECONDS:g} s. It was not executed."
        except OSError as error:
            words = _no_files(name, error, context)
        except StorageUnavailable:
            words = f"{name} {NO_STORAGE} It was not executed."
        except Exception:
            log.exception("tool.crashed", tool=name, turn=context.turn, call=context.call)
            words = f"{name} was not executed because of an internal error in the tool."
        return {REFUSED: words}

    async def change(self, checked: Runnable, context: ToolContext) -> FileChange | None:
        """What a call would make of a file, for whoever decides about it; None where that cannot be said. Never raises: the call says why."""
        tool = self._tools[checked.spec.name]
        if not isinstance(tool, ChangingTool):
            return None
        try:
            async with Limit(PREPARE_SECONDS):
                return await tool.change(checked.arguments, context)
        except (NotPossible, TimeoutError, OSError, StorageUnavailable):
            return None
        except Exception:
            log.exception("tool.crashed", tool=checked.spec.name, turn=context.turn, call=context.call)
            return None

    async def run(self, checked: Runnable, context: ToolContext) -> ToolOutcome:
        """Run a checked call to its end or its deadline. What it says holds none of the gateway's secrets, and is as long as it may be."""

        def heartbeat(words: str) -> None:
            context.heartbeat(self.hide(words))

        async def ask(question: ToolQuestion) -> ToolAnswer:
            return await context.ask(without(question, self.hide))

        outcome = await self._ran(checked, changed(context, heartbeat=heartbeat, ask=ask))
        hidden = self.hide(outcome.text)  # before it is cut: half a secret is not known as one
        return cut(outcome if hidden == outcome.text else replace(outcome, text=hidden), self._result_chars)

    async def _ran(self, checked: Runnable, context: ToolContext) -> ToolOutcome:
        spec = checked.spec
        if isinstance(context.intention, dict) and REFUSED in context.intention:
            return ToolOutcome(ToolStatus.FAILED, str(context.intention[REFUSED]))
        doubt = "" if spec.effect is EffectClass.PURE else DOUBT
        try:
            async with Limit(spec.deadline_seconds):
                outcome = await self._again_if_safe(checked, context)
        except TimeoutError:
            words = f"{spec.name} did not finish within {spec.deadline_seconds:g} s and was cancelled.{doubt}"
            return ToolOutcome(ToolStatus.TIMED_OUT, words)
        except NotPossible as refusal:
            return ToolOutcome(ToolStatus.FAILED, str(refusal), facts=refusal.facts)
        except OSError as error:
            return ToolOutcome(ToolStatus.FAILED, f"{_no_files(spec.name, error, context)}{doubt}")
        except StorageUnavailable:
            return ToolOutcome(ToolStatus.FAILED, f"{spec.name} {NO_STORAGE}{doubt}")
        except Exception:
            log.exception("tool.crashed", tool=spec.name, turn=context.turn, call=context.call)
            words = f"{spec.name} failed because of an internal error in the tool.{doubt}"
            return ToolOutcome(ToolStatus.FAILED, words)
        return outcome

    async def _again_if_safe(self, checked: Runnable, context: ToolContext) -> ToolOutcome:
        """Its outcome. While nothing can be stored or read, what may be run again is, as all else waits then; until its deadline."""
        tool = self._tools[checked.spec.name]
        while True:
            try:
                return await tool.run(checked.arguments, context)
            except Damaged:
                raise
            except StorageUnavailable:
                if checked.spec.effect is EffectClass.EFFECT:
                    raise
                await asyncio.sleep(STORAGE_SECONDS)
                context = changed(context, again=True)  # what was not known to be stored may have been


def changed_words(checked: ToolChanged) -> str:
    """What the model is told of a tool that is not what it was offered as."""
    how = (
        "was withdrawn by the program that brings it"
        if checked.withdrawn
        else "was changed by the program that brings it, and needs more care now"
    )
    return f"{checked.name} {how}, since this turn began. The call was not executed. What there is now is offered from the next message on."


def _prepares(tool: Tool) -> TypeGuard[PreparedTool]:
    """Told by its method: Python takes a hundred calls to compare all of a protocol, each time that it is asked."""
    return hasattr(tool, "prepare")


def _no_files(tool: str, error: OSError, context: ToolContext) -> str:
    """What a tool met on this machine that it could not use, in words for the model; the path is the operators' to know."""
    log.error("tool.no_files", tool=tool, turn=context.turn, call=context.call, error=str(error))
    why = (error.strerror or type(error).__name__).lower()
    return f"{tool} could not use what the gateway keeps on its disk: {why}. Whoever runs the gateway has to mend that; the log says where."


def cut(outcome: ToolOutcome, limit: int) -> ToolOutcome:
    """The outcome with its text within `limit` characters; a longer one loses its middle and says how much."""
    text = outcome.text
    if len(text) <= limit:
        return outcome
    head = limit * 2 // 3
    tail = limit - head
    left_out = len(text) - limit
    shown = f"{text[:head]}\n[… {left_out} characters left out …]\n{text[len(text) - tail :]}"
    return replace(outcome, text=shown, left_out_chars=left_out)
