"""What had gone wrong before people's eyes and was mended, in one line of the gateway's. Pure.

It is shown where a surface shows status, never among the model's words. A hiccup that nobody had to wait for is not told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from agent_core.judging.remedies import Failure, Remedy


@dataclass(frozen=True, slots=True)
class Mended:
    """A failure and the remedy that helped."""

    failure: Failure
    remedy: Remedy
    seconds: float
    """How long the model was silent in the calls that failed."""
    tool: str = ""
    """Whose call was arriving."""
    model: str = ""
    """Which model came to a good end."""
    number: int = 0

    @property
    def key(self) -> str:
        return f"mended{self.number}"


def mended_words(mended: Mended) -> str:
    """As people read it."""
    return f"{_broke(mended)}; {mended.remedy.recipe.mended.format(model=mended.model or 'another model')} – recovered."


def _broke(mended: Mended) -> str:
    match mended.failure:
        case Failure.IN_TOOL_CALL | Failure.LENGTH_IN_TOOL_CALL:
            return (
                f"The model's call of {mended.tool} broke off"
                if mended.tool
                else "The model's call of a tool broke off"
            )
        case Failure.IN_TEXT | Failure.NOTHING_MORE | Failure.THOUGHT_MORE:
            return "The reply broke off"
        case Failure.LENGTH:
            return "The reply reached the model's output limit"
        case Failure.BEFORE_CONTENT | Failure.CREDENTIAL | Failure.REQUEST:
            return "The model did not answer"
        case Failure.EMPTY:
            return "The model returned nothing"
        case Failure.THINKING_ONLY:
            return "The model thought and said nothing"
        case Failure.PROMISED:
            return "The model announced something and stopped"
        case Failure.OVERFLOW | Failure.TOO_LARGE:
            return "The conversation was too large for the model"
        case _:
            assert_never(mended.failure)
