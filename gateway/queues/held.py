"""A message that came too fast and waits for its time, as it is stored: a command that the gateway gives itself. Pure."""

from __future__ import annotations

from dataclasses import replace

from adapters.contract.base import FromChat
from agent_core.messages import InputMessage
from agent_core.records import dataclass
from agent_core.text.tongue import speak
from gateway.people.routing import Command

HOLD = "hold"


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A message that waits for its time."""

    due: int
    """ms."""
    text: str
    foreign: str = ""

    def command(self) -> Command:
        """As it is stored."""
        return Command(HOLD, f"{self.due} {self.text}")

    @staticmethod
    def of(inbound: FromChat) -> HeldMessage | None:
        """What a stored command says; None if it is none of these. Pure."""
        name, _, rest = str(inbound.input[0].content).partition(" ") if inbound.input else ("", "", "")
        due, _, text = rest.partition(" ")
        return HeldMessage(int(due), text, inbound.chat.foreign) if name == f"/{HOLD}" and due.isdecimal() else None


def held_words(seconds: int) -> str:
    """What is told of a message that waits for its time."""
    return speak(
        "⏳ That was too fast for me. Your message is kept, and I take it up in {seconds} s; {/stop} takes it out.",
        seconds=seconds,
    )


def edited(inbound: FromChat, stored: FromChat) -> FromChat | None:
    """The new wording of a message that waits for its time, as it is stored; None if the stored one is none. Pure."""
    held = HeldMessage.of(stored)
    if held is None:
        return None
    command = replace(held, text="\n".join(str(one.content) for one in inbound.input)).command()
    return replace(inbound, input=(InputMessage(f"/{command.name} {command.words}"),))
