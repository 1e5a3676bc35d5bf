"""Commands on the web page: which there are, how one is taken in, and how its answer comes to whoever has the page open.

Implements `adapters.contract.pagecommands.PageCommands`. A command of the page goes the way of a chat's: stored first, under the id that the page
gave it, carried out beside whatever runs, done in the commit that stores its answer, taken up by the next process if this one dies in between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapters.contract.base import FromApi
from adapters.contract.chat import CommandDoc
from agent_core.records import dataclass
from agent_core.store.store import StorageUnavailable
from agent_core.text.tongue import speak, speaking, spelled
from agent_core.text.typed import as_command
from gateway.chats.commandintake import CommandIntake
from gateway.commands.carrying import Request
from gateway.commands.registry import COMMANDS, TYPED
from gateway.people.routing import Command
from gateway.queues.pageanswers import answer_sight, typed
from gateway.queues.queue import RECENT_TURNS, person_words
from gateway.queues.queues import Queues
from gateway.storage.storewatch import not_stored

_COMMAND = re.compile(r"/(\w+)(?:\s(.*))?", re.DOTALL)
PRESSED = "press"
"""Buttons of the page have routes of their own."""


@dataclass(frozen=True, slots=True)
class PageMenuLine:
    """A command as the page's menu shows it."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class CommandsOnPage:
    """`agents`: there are several that can be chosen."""

    intake: CommandIntake
    agents: bool

    def menu(self, language: str) -> Sequence[CommandDoc]:
        with speaking(language):
            shown = [one for one in COMMANDS if not one.hidden and not one.people and (self.agents or not one.agents)]
            return [PageMenuLine(one.name, spelled(speak(one.words))) for one in shown]

    def named(self, text: str) -> tuple[str, str]:
        found = _COMMAND.fullmatch(as_command(text.strip()))
        name = found[1].lower() if found is not None else ""
        return (name, (found[2] or "").strip()) if found is not None and name in TYPED and name != PRESSED else ("", "")

    async def take(self, inbound: FromApi, name: str, words: str) -> bool:
        try:
            accepted, _ = await self.intake.take(inbound, Command(name, words))
        except StorageUnavailable as error:
            raise not_stored(error) from error
        return accepted.duplicate


def show_on_page(queues: Queues, request: Request, words: list[str], undone: str) -> None:
    """Whoever has the page of a conversation open sees what a command said there, and which turn it took back."""
    if undone:
        queues.rebranch(request.key)
    queue = queues.known(request.key)
    if queue is None or not queue.recent_loaded or not words:
        return
    said = typed(person_words(request.inbound))
    queue.recent.append(answer_sight(request.inbound.platform_key, request.arrival, said, words, request.received_at))
    del queue.recent[:-RECENT_TURNS]
    queue.wake()
