"""What was refused for good: said in the log and in `status`, and to the person where that can be done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from adapters.contract.chat import CallFailed, Cause, ChatAddress, Content, ContentKind
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import Part
from adapters.text.styled import Styled
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.text.tongue import known_sentence, sentence, speak, speaking
from gateway.delivery.ledger import Ledger
from gateway.delivery.owners import Owner

log = structlog.get_logger("delivery")

BLOCKED_CAUSES = (Cause.BLOCKED, Cause.NO_RIGHTS, Cause.NO_CHAT, Cause.NO_THREAD)
"""They are of the whole chat, or of a thread after which the chat itself would not take it either."""
_ANSWERS = (ContentKind.TEXT, ContentKind.FILE)
MOST = 50
"""How many surfaces with trouble are remembered, for `status` and for when it is over."""
STILL_THERE = sentence(
    "It is still in the workspace: ask for it in smaller files, packed, or for what matters in it as text here."
)
"""Of a file that cannot be sent."""


@dataclass(frozen=True, slots=True)
class SurfaceTrouble:
    """A surface that refuses what is sent there."""

    surface: str
    cause: str
    words: str
    at: int


TellPrivately = Callable[[ChatAddress, Part, CallFailed], Awaitable[None]]
"""Tells a person in private what could not be said in the chat where they asked."""


class SurfaceTroubles:
    """The last trouble of each surface."""

    def __init__(self, clock: Clock, tell_privately: TellPrivately) -> None:
        self.known: dict[str, SurfaceTrouble] = {}
        """By surface, the oldest first."""
        self._unsaid: dict[str, tuple[Owner, Part, CallFailed]] = {}
        """The first part of an answer that such a surface did not take: missed there as soon as it takes something again. A restart forgets it."""
        self._clock = clock
        self._tell_privately = tell_privately

    def note(self, surface: str, cause: Cause, words: str) -> None:
        self.known[surface] = SurfaceTrouble(surface, cause.value, words, self._clock.now_ms())
        while len(self.known) > MOST:
            del self.known[next(iter(self.known))]

    def over(self, surface: str) -> None:
        """Something was delivered there."""
        self.known.pop(surface, None)

    async def back(self, ledger: Ledger, owner: Owner) -> None:
        """A surface has taken something of this owner's: what of an answer was refused there before is missed in words, by who has its conversation now."""
        if (unsaid := self._unsaid.get(ledger.surface)) is None:
            return
        was, part, error = unsaid
        if owner.session != was.session:
            if was not in ledger.owners.values():
                return  # nobody knows whether it is ours still: its own conversation says it, as soon as it says something
            owner = was
        del self._unsaid[ledger.surface]
        await self._say_so(ledger, owner, part, error)

    async def given_up(self, address: ChatAddress, ledger: Ledger, part: Part, error: CallFailed) -> None:
        """A part was refused for good. What was only on its way is tried once more as it is at the end."""
        known = ledger.surface in self.known
        if part.row.final:
            log.error(
                "delivery.failed",
                chat=ledger.surface,
                origin=part.row.origin,
                part=part.row.key,
                cause=error.cause.value,
                words=error.words,
                kind=part.content.kind.value,
            )
        self.note(ledger.surface, error.cause, error.words)
        notice = part.content.kind is ContentKind.ASIDE and part.row.bubble.startswith("failed")
        # A chat that takes no files may take words; whether it does is told by the notice.
        no_files = part.content.kind is ContentKind.FILE and error.cause is Cause.NO_RIGHTS
        if error.cause in BLOCKED_CAUSES and not no_files:
            if part.content.kind in _ANSWERS:
                self._unsaid.setdefault(ledger.surface, (ledger.owners[part.row.origin], part, error))
                while len(self._unsaid) > MOST:
                    del self._unsaid[next(iter(self._unsaid))]
            if notice or not known:
                await self._tell_privately(address, part, error)
            return
        if notice:  # never a notice about a notice: where not even that is taken, it is as if nothing were
            await self._tell_privately(address, part, error)
        else:
            await self._say_so(ledger, ledger.owners[part.row.origin], part, error)

    async def _say_so(self, ledger: Ledger, owner: Owner, part: Part, error: CallFailed) -> None:
        """In the same chat: what of the turn could not be shown there, and why."""
        with speaking(part.content.language):
            words = _not_sent_words(part.content, error)
        name = f"failed.{part.row.bubble}.{part.row.part}"
        origin = f"{part.row.origin}!{name}"
        said = WantedPart(
            name, 0, Content(ContentKind.ASIDE, Styled(words), language=part.content.language), final=True
        )
        rows, stored = ledger.propose(origin, owner, [said]), False
        try:
            await ledger.records.put(owner, rows)
            stored = True
        finally:  # what could not be stored is said all the same: it is stored before it is sent
            ledger.release(origin, stored=stored)


def _not_sent_words(content: Content, error: CallFailed) -> str:
    """What of a turn could not be shown in its chat, and why. Pure."""
    why = known_sentence(error.words)
    named = content.file_name if content.kind is ContentKind.FILE else ""
    if error.cause is Cause.UNREADABLE:
        if named:
            return speak("⚠️ It is not known whether the file {file} has reached this chat: {why}", file=named, why=why)
        return speak("⚠️ It is not known whether a part of the answer has reached this chat: {why}", why=why)
    if named:
        words = speak("⚠️ The file {file} could not be sent: {why}", file=named, why=why)
    else:
        words = speak("⚠️ A part of the answer could not be sent: {why}", why=why)
    return f"{words}{'' if words.endswith('.') else '.'} {speak(STILL_THERE)}" if content.file else words
