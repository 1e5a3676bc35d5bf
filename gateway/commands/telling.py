"""Commands that tell something and change nothing of the conversation: ``/status``, ``/why``, ``/usage``, ``/help``; and who may talk, ``/access``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from adapters.contract.base import REHEARSAL_WORDS
from adapters.terminal.operator import NOBODY_ASKED
from agent_core.ports import Clock
from agent_core.store.store import Store
from agent_core.text.shown import shortened
from agent_core.text.tongue import known_sentence, speak
from agent_core.turn.view import View
from gateway.commands.carrying import CommandReply, Handler, Request
from gateway.commands.conversation import stored_prefs
from gateway.commands.registry import help_words, status_words, usage_words
from gateway.delivery.outbox import Outbox
from gateway.explain.story import why
from gateway.later.zones import zone_for
from gateway.limits.budgets import BudgetBook
from gateway.limits.quotas import Quotas
from gateway.limits.standing import Standings
from gateway.people.access import LetInElsewhere
from gateway.people.members import Members
from gateway.queues.queue import person_words
from gateway.queues.queues import Queues
from gateway.schedule.times import zone_of
from gateway.sessions.chain import ModelChain


class TellingCommands:
    """Their handlers."""

    def __init__(
        self,
        queues: Queues,
        chain: ModelChain,
        members: Members,
        outbox: Outbox,
        budgets: BudgetBook | None,
        quotas: Quotas | None,
        store: Store,
        clock: Clock,
        *,
        rehearsal: bool,
        standings: Standings,
        zone: str,
    ) -> None:
        """`zone` is the gateway's."""
        self._queues = queues
        self._chain = chain
        self._members = members
        self._outbox = outbox
        self._budgets = budgets
        self._quotas = quotas
        self._store = store
        self._clock = clock
        self._rehearsal = rehearsal
        self._standings = standings
        self._zone = zone

    def handlers(self) -> Mapping[str, Handler]:
        """By the command's name."""
        return {
            "status": self._status, "why": self._why, "usage": self._usage, "help": self._help, "start": self._help,
            "access": self._access,
        }  # fmt: skip

    async def _status(self, request: Request) -> CommandReply:
        queue = self._queues.known(request.key)
        running: View | None = None
        seconds = 0
        waiting: list[str] = []
        if queue is not None:
            waiting = [shortened(person_words(message.inbound)) for message in queue.waiting]
            if queue.running is not None:
                driver = queue.running.driver
                running = driver.seen.current_view()
                seconds = max(0, self._clock.now_ms() - driver.opened_at) // 1000
        model = (await stored_prefs(self._store, request)).model or self._chain.default
        name = request.origin.address.text()
        trouble = self._outbox.troubles.known.get(name)
        troubles = [speak("Delivery: {words}", words=known_sentence(trouble.words))] if trouble is not None else []
        if request.visiting:
            troubles.append(
                speak(
                    "The conversation from {platform} goes on here.",
                    platform=request.inbound.session.platform.capitalize(),
                )
            )
        if queue is not None and queue.running is not None and not queue.running.same_chat(request.inbound):
            troubles.append(speak("What runs was asked in another chat, and is shown there."))
        return CommandReply(
            status_words(
                running=running, seconds=seconds, waiting=waiting, model=model,
                unsent=self._outbox.surfaces.unsent_of(name), troubles=troubles,
            )
        )  # fmt: skip

    async def _why(self, request: Request) -> CommandReply:
        queue = self._queues.known(request.key)
        if queue is not None and queue.running is not None:
            turn = queue.running.driver.identity.turn
        else:
            rows = await self._store.turns.latest(request.owner.session, 1)
            turn = rows[0].turn if rows else ""
        return await self.story(turn, request)

    async def story(self, turn: str, request: Request) -> CommandReply:
        """What happened in a turn, for whoever asks: in their time zone."""
        said = await zone_for(self._store, request.inbound, self._zone)
        lines = await why(self._store, turn, self._clock.now_ms, zone_of(said.zone)) if turn else ()
        return CommandReply("\n".join(lines) or speak("There was no answer here yet."))

    async def _usage(self, request: Request) -> CommandReply:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        midnight = round(now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)
        session = await self._store.turns.usage(request.owner.session)
        today = await self._store.turns.usage(request.owner.session, midnight)
        budgets = self._budgets
        standing = self._standings.of(request.inbound, (await stored_prefs(self._store, request)).agent)
        lines = await budgets.usage(request.inbound, standing) if budgets is not None else ()
        quotas = self._quotas
        kept = await quotas.lines(request.inbound) if quotas is not None else ()
        return CommandReply("\n".join((usage_words(session, today), *lines, *kept)))

    async def _help(self, request: Request) -> CommandReply:
        rehearsal = speak(REHEARSAL_WORDS) if self._rehearsal else ""
        return CommandReply(
            help_words(
                admin=request.admin,
                rehearsal=rehearsal,
                people=self._members.directory.allowed,
                agents=bool(self._standings.agents),
            )
        )

    async def _access(self, request: Request) -> CommandReply:
        verb, _, what = request.words.strip().partition(" ")
        by = f"{request.origin.address.platform}:{request.origin.person.id}"
        match verb:
            case "list" | "":
                people = (await self._members.everybody())[:30]
                listed = [f"{p.state.value} {p.person} {p.name} {p.code}".strip() for p in people]
                return CommandReply("\n".join(listed) or NOBODY_ASKED)
            case "approve":
                row = await self._members.approve(what, by)
                return CommandReply(
                    speak("{name} may talk to me now.", name=row.name)
                    if row
                    else speak("No such code or person; codes live an hour.")
                )
            case "revoke":
                try:
                    row = await self._members.revoke(what, by)
                except LetInElsewhere as error:
                    return CommandReply(str(error))
                return CommandReply(
                    speak("{name} may not talk to me any more.", name=row.name)
                    if row
                    else speak("I know nobody with this id.")
                )
            case _:
                return CommandReply(speak("{/access list}, {/access approve CODE}, {/access revoke ID}"))
