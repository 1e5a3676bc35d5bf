"""Commands that change what a conversation does: ``/new``, ``/stop``, ``/retry``, ``/undo``, ``/model``, ``/queue``, ``/steer``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from adapters.contract.base import FromChat, Inbound, SessionKey, StopOutcome
from adapters.contract.chat import ChatKind, ChatOrigin, Content, ContentKind
from adapters.contract.notaccepted import NotAccepted
from adapters.text.styled import Styled
from agent_core.failures.notices import say
from agent_core.journal.rows import opened_of
from agent_core.jsonvalue import Json
from agent_core.store.people.rows import PlaceRow
from agent_core.store.sessions.rows import OwnersChange, SessionChange
from agent_core.store.store import Store
from agent_core.store.turns.rows import TurnRow
from agent_core.text.shown import plain, quoted, shortened
from agent_core.text.tongue import (
    ENGLISH,
    LANGUAGES,
    begin_speaking,
    known_sentence,
    language_of,
    sentence,
    speak,
    speak_many,
    spoken_now,
)
from gateway.commands.carrying import CommandReply, Handler, Request
from gateway.commands.deciders import answering_refused
from gateway.commands.messages import Messages
from gateway.config.types import SessionPolicy
from gateway.delivery.outbox import Outbox
from gateway.delivery.owners import Owner
from gateway.limits.agents import PLAIN
from gateway.limits.standing import Standings
from gateway.queues.branches import before
from gateway.queues.prefs import Prefs, goes_by
from gateway.queues.queue import SessionQueue, Waiting, person_words
from gateway.sessions.accepting import Accepting, Changing
from gateway.sessions.chain import ModelChain
from gateway.sessions.followers import Watching
from gateway.sessions.recents import said_of
from gateway.sessions.stopping import TurnStopping
from gateway.shell.background import BackgroundCommands

ALWAYS = "always"
HERE = "here"
COMMANDS = "commands"
NEW_WORDS = sentence("A new conversation.")
CHOSEN_ABOVE = sentence("On this page you choose it in the field above the conversation.")
STOPPED_THERE = sentence(
    "⚠️ Your message was taken out of the queue by {/stop all}, given in another chat of this conversation."
)
CUT_OFF = sentence(
    "⚠️ Your message was not worked on: the conversation that it was meant for is not joined with this account any more. Send it again, and it begins in this chat's own."
)


NOT_KEPT = sentence("That was so long ago that I do not have your message as it came any more. Send it again, please.")


async def begun_with(messages: Messages, inbound: Inbound, key: str, words: str) -> CommandReply:
    """A conversation has begun anew, with these words; also if they are not taken, and whoever wrote them is told both."""
    try:
        await messages.submit_or_hold(inbound, key, words, None)
    except NotAccepted as refused:
        return CommandReply(say(NEW_WORDS, str(refused)))
    return CommandReply("")


class ConversationCommands:
    """Their handlers. `leave` is how ``/new`` is carried out where another chat's conversation goes on."""

    def __init__(
        self,
        accepting: Accepting,
        stopping: TurnStopping,
        watching: Watching,
        chain: ModelChain,
        messages: Messages,
        outbox: Outbox,
        store: Store,
        leave: Handler,
        standings: Standings,
        background: BackgroundCommands | None = None,
    ) -> None:
        self._background = background
        self._accepting = accepting
        self._queues = accepting.queues
        self._stopping = stopping
        self._watching = watching
        self._chain = chain
        self._messages = messages
        self._outbox = outbox
        self._store = store
        self._leave = leave
        self._standings = standings

    def handlers(self) -> Mapping[str, Handler]:
        """By the command's name."""
        return {
            "new": self._new, "stop": self._stop, "retry": self.retry, "undo": self._undo,
            "model": self._model, "agent": self._agent, "queue": self._queue, "steer": self._steer,
            "language": self._language, "redo": self._redo,
            "answer": self._asked,
        }  # fmt: skip

    async def _asked(self, request: Request) -> CommandReply:
        """An answer to what a running tool asks."""
        by = f"{request.origin.address.platform}:{request.origin.person.id}"
        running = self._queues.turn_in(request.inbound.session.text(), "")
        asked = running if running is not None and running.driver.asks else None
        if asked is not None and (refusal := answering_refused(request, asked, self._stopping.approvers)):
            return CommandReply(refusal)
        told = await self._stopping.answer(request.inbound.session, "", "", request.words, by)
        return CommandReply(speak("Nothing is asked here now.") if told is None else told)

    async def _new(self, request: Request) -> CommandReply:
        if request.visiting:
            return await self._leave(request)
        key, words = f"new:{request.inbound.platform_key}", request.words
        if words.strip() and await self._store.inbox.by_key(request.inbound.account, key) is not None:
            # It was carried out before a death: what follows from these words stays.
            return await begun_with(self._messages, request.inbound, key, words)
        await self._stopped(request)
        self._queues.forget_memory(request.key)
        if words.strip():
            # The conversation must have begun anew before these words are taken.
            await self._store.sessions.change(request.owner.session, request.owner.epoch, SessionChange(forget=True))
            return await begun_with(self._messages, request.inbound, key, words)
        return CommandReply(
            say(NEW_WORDS, speak("I no longer see what was said before.")),
            SessionChange(forget=True),
        )

    async def _stop_here(self, request: Request) -> CommandReply:
        """A platform's own stop button: it means the turn that is shown there, and that turn's notice is answer enough."""
        queue = self._queues.known(request.key)
        here = (request.origin.address, request.origin.root)
        shown = queue.running.messages if queue is not None and queue.running is not None else ()
        chats = [one.inbound.chat for one in shown if isinstance(one.inbound, FromChat)]
        if any((chat.address, chat.root) == here for chat in chats):
            await self._stopped(request)
        return CommandReply("")

    async def _stop(self, request: Request) -> CommandReply:
        if request.words.strip() == HERE:
            return await self._stop_here(request)
        wish = request.words.strip().lower()
        if wish == COMMANDS:
            ended = await self._background.end(request.inbound) if self._background is not None else ""
            return CommandReply(ended or speak("No command goes on in the background here."))
        queue = self._queues.known(request.key)
        waiting = list(queue.waiting) if queue is not None and wish == "all" else []
        dropped = self._messages.held.take_out(request.key, room=wish == "all")  # first: it goes where there is room
        for message in waiting:  # before the running one: the next would begin when that ends
            if queue is not None and await self._dropped(queue, message, request):
                dropped += 1
        here = queue is not None and queue.running is not None and queue.running.same_chat(request.inbound)
        came = await self._stopped(request)
        # A turn that is shown here says itself that it was stopped, and what it had done.
        words = "" if here and came.stopped else came.words
        if dropped:
            taken = speak_many(
                "{count} waiting message was taken out of the queue.",
                "{count} waiting messages were taken out of the queue.",
                dropped,
            )
            words = f"{words}\n{taken}".strip()
        left = len(queue.waiting) if queue is not None else 0
        if left:
            goes_on = speak_many("{count} message waits and runs now.", "{count} messages wait and run now.", left)
            words += f"\n{goes_on}"
        if self._background is not None:
            all_of_it = wish == "all"
            told = (
                await self._background.end(request.inbound) if all_of_it else self._background.going_on(request.inbound)
            )
            words += f"\n{told}"
        return CommandReply(words.strip() or ("" if came.words else speak("Nothing is running here.")))

    async def _dropped(self, queue: SessionQueue, message: Waiting, request: Request) -> bool:
        """Take a waiting message out; who wrote it in another chat is told there."""
        inbound = message.inbound
        elsewhere = isinstance(inbound, FromChat) and inbound.chat.address != request.origin.address
        return await drop_waiting(self._stopping, self._outbox, queue, message, STOPPED_THERE if elsewhere else "")

    async def retry(self, request: Request, named: TurnRow | None = None) -> CommandReply:
        """Answer the last message once more, or that of the turn that a button names: what was said since stays."""
        queue = self._queues.known(request.key)
        if queue is not None and queue.running is not None:
            return CommandReply(speak("An answer is on its way. {/stop} it first, then {/retry}."))
        turn = named or await self._last_turn(request)
        if turn is None:
            return CommandReply(speak("There is nothing to try again."))
        said = await self._said(request, turn.turn)
        if not said:
            return CommandReply(speak(NOT_KEPT))
        change = SessionChange(undo=turn.turn)

        async def changing() -> OwnersChange:
            return OwnersChange(request.owner.session, request.owner.epoch, change)

        await self._say_again(request, "retry", said, changing)
        return CommandReply("")

    async def _say_again(self, request: Request, what: str, said: Sequence[Inbound], changing: Changing) -> None:
        """Have these answered once more; what it changes before is stored with the first of them, so that nobody sees the one without the other."""
        for number, again in enumerate(said):
            key = f"{what}:{request.inbound.platform_key}:{number}"
            await self._accepting.accept(replace(again, platform_key=key), changing=None if number else changing)

    async def _redo(self, request: Request) -> CommandReply:
        """`/redo TURN [WORDS]`, which the page says for its buttons: from there on the conversation goes another way. What was there stays to be read.

        If this is carried out once more, after a death, the message is the same and what follows from it stays.
        """
        turn, _, words = request.words.strip().partition(" ")
        queue = self._queues.known(request.key)
        if queue is not None and not queue.quiet:
            return CommandReply(speak("An answer is on its way. Stop it first, or wait for its end."))
        first = await self._store.turns.one(turn)
        mine = first is not None and first.session == request.owner.session
        said = await self._said(request, turn) if mine else []
        if not said:
            return CommandReply(speak(NOT_KEPT))

        async def changing() -> OwnersChange | None:
            session = request.owner.session
            latest = await self._store.turns.latest(session, 1)
            branch = before(await self._store.turns.places(session), turn)
            quiet = self._queues.at(request.key).quiet
            if branch is None or not quiet or latest[-1].first_message >= request.inbox_id:
                return None
            return OwnersChange(session, request.owner.epoch, SessionChange(branch=branch))

        await self._say_again(request, "redo", [in_other_words(said[0], words)] if words.strip() else said, changing)
        return CommandReply("")

    async def _said(self, request: Request, turn: str) -> list[Inbound]:
        """The messages of a turn; where they are not kept, what its journal has of them, as if it were said now."""
        if messages := await self._watching.messages_of(turn):
            return [asked_in(one.inbound, request.origin) for one in messages]
        kind, body = (await self._store.turns.openings([turn])).get(turn, ("", b""))
        opened = opened_of(kind, body) if kind else None
        return [replace(request.inbound, input=opened.input)] if opened is not None and opened.input else []

    async def _undo(self, request: Request) -> CommandReply:
        queue = self._queues.known(request.key)
        if queue is not None and queue.running is not None:
            return CommandReply(speak("An answer is on its way. {/stop} it first, then {/undo}."))
        turn = await self._last_turn(request)
        if turn is None:
            return CommandReply(speak("There is nothing to take back."))
        if turn.removed:
            return CommandReply(
                speak(
                    "There is nothing to take back: what was said here last is {removed}.",
                    removed=known_sentence(turn.removed),
                )
            )
        messages = await self._watching.messages_of(turn.turn)
        self._queues.forget_memory(request.key)
        said = " ".join(person_words(m.inbound) for m in messages) or await said_of(self._store, turn.turn)
        what = quoted(shortened(said)) if said.strip() else speak("your last message")
        words = speak("Forgotten: {what} and what came of it. What tools have done is not undone.", what=what)
        return CommandReply(words, SessionChange(undo=turn.turn))

    async def _model(self, request: Request) -> CommandReply:
        prefs = await stored_prefs(self._store, request)
        names = self._chain.names
        wished = request.words.strip()
        if not wished:
            listed = "\n".join(f"{'▸' if name == (prefs.model or names[0]) else '·'} {name}" for name in names)
            how = speak("Choose one: {/model NAME}")
            return CommandReply(f"{listed}\n{how}")
        if wished not in names:
            return CommandReply(
                speak(
                    "There is no model called {wished} here. There is: {names}.", wished=wished, names=", ".join(names)
                )
            )
        chosen = "" if wished == names[0] else wished
        return await self._set(
            request, prefs, replace(prefs, model=chosen), speak("From now on: {wished}.", wished=wished)
        )

    async def _agent(self, request: Request) -> CommandReply:
        if not isinstance(request.inbound, FromChat):
            return CommandReply(speak(CHOSEN_ABOVE))
        agents = self._standings.agents
        prefs = await stored_prefs(self._store, request)
        gone = prefs.agent if prefs.agent and prefs.agent != PLAIN and prefs.agent not in agents else ""
        if not agents:
            lost = speak(" {gone}, which was chosen here, is gone.", gone=gone) if gone else ""
            return CommandReply(speak("There is one agent here, and no other to choose.{lost}", lost=lost))
        here = self._standings.in_chat(request.inbound, prefs.agent) or PLAIN
        wished = request.words.strip()
        names = (PLAIN, *self._standings.choices(request.inbound))
        if not wished:
            listed = "\n".join(f"{'▸' if name == here else '·'} {name}" for name in names)
            lost = (
                speak("{gone}, which was chosen here, is gone, so {here} answers.", gone=gone, here=here) + "\n"
                if gone
                else ""
            )
            how = speak("Choose one: {/agent NAME}")
            return CommandReply(f"{lost}{listed}\n{how}")
        if wished not in names:
            return CommandReply(
                speak(
                    "There is no agent called {wished} here. There is: {names}.", wished=wished, names=", ".join(names)
                )
            )
        return await self._set(
            request, prefs, replace(prefs, agent=wished), speak("From now on {wished} answers here.", wished=wished)
        )

    async def _language(self, request: Request) -> CommandReply:
        prefs, wished = await stored_prefs(self._store, request), request.words.strip()
        found = next((tag for tag, one in LANGUAGES.items() if one.name.lower() == wished.lower()), language_of(wished))
        if wished.lower() in ("reset", "none"):
            return await self._set(
                request,
                prefs,
                replace(prefs, language=""),
                speak("From now on I speak as your app or your browser asks for."),
            )
        if not found:
            now = spoken_now() or ENGLISH
            listed = "\n".join(f"{'▸' if tag == now else '·'} {one.name} ({tag})" for tag, one in LANGUAGES.items())
            how = speak("Choose one: {/language de}, for example; {/language reset} takes it back.")
            unknown = speak("I do not speak “{wished}”.", wished=plain(shortened(wished))) if wished else ""
            return CommandReply("\n".join(filter(None, (unknown, listed, how))))
        begin_speaking(found)
        words = speak("From now on I speak {language} in notices and menus.", language=LANGUAGES[found].name)
        return await self._set(request, prefs, replace(prefs, language=found), words)

    async def _queue(self, request: Request) -> CommandReply:
        words = request.words.strip()
        if words.lower() == ALWAYS:
            prefs = await stored_prefs(self._store, request)
            after = replace(prefs, policy=SessionPolicy.QUEUE)
            return await self._set(request, prefs, after, speak("From now on, messages wait while I am at work."))
        if words:
            key = f"queue:{request.inbound.platform_key}"
            await self._messages.submit_or_hold(request.inbound, key, words, SessionPolicy.QUEUE)
            return CommandReply("")
        queue = self._queues.known(request.key)
        waiting = queue.waiting if queue is not None else []
        listed = [f"{i + 1}. {shortened(person_words(m.inbound))}" for i, m in enumerate(waiting)]
        return CommandReply("\n".join(listed) or speak("Nothing waits."))

    async def _steer(self, request: Request) -> CommandReply:
        words = request.words.strip()
        if words.lower() == ALWAYS:
            prefs = await stored_prefs(self._store, request)
            after = replace(prefs, policy=SessionPolicy.STEER)
            return await self._set(request, prefs, after, speak("From now on, messages go into the running answer."))
        if not words:
            return CommandReply(speak("Say what I should take into account: {/steer WORDS}"))
        queue = self._queues.known(request.key)
        busy = queue is not None and queue.running is not None and queue.running.takes(request.inbound)
        key = f"steer:{request.inbound.platform_key}"
        await self._messages.submit(request.inbound, key, words, SessionPolicy.STEER)
        return CommandReply(speak("I take that into account at the next step.") if busy else "")

    async def _last_turn(self, request: Request) -> TurnRow | None:
        """The latest turn of the conversation that was not taken back."""
        session = await self._store.sessions.one(request.owner.session)
        since = session.since if session is not None else 0
        for row in reversed(await self._store.turns.latest(request.owner.session, 20)):
            if not row.undone and row.number > since:
                return row
        return None

    async def _stopped(self, request: Request) -> StopOutcome:
        """Stop what runs or is just about to; what it did, in words, or nothing."""
        queue = self._queues.known(request.key)
        if queue is None or (queue.running is None and not queue.waiting):
            return StopOutcome(stopped=False, words="")
        if queue.running is None:
            return await self._stopping.stop_message(queue.ticket_of(queue.waiting[0]))
        return await self._stopping.stop(request.inbound.session)

    async def _set(self, request: Request, before: Prefs, after: Prefs, words: str) -> CommandReply:
        queue = self._queues.known(request.key)
        if queue is not None:
            goes_by(queue, before, after)
        else:
            self._queues.pasts.drop(request.key)
        return CommandReply(words, SessionChange(policy=after.since(before)))


async def stored_prefs(store: Store, request: Request) -> Prefs:
    """What the conversation of a command has set for itself."""
    found = await store.sessions.one(request.owner.session)
    return Prefs.decode(found.policy if found is not None else None)


def asked_in(inbound: Inbound, origin: ChatOrigin) -> Inbound:
    """A message as if it had been written where a command was given: what follows is shown there."""
    if not isinstance(inbound, FromChat) or inbound.chat.address == origin.address:
        return inbound
    moved = replace(origin, attachments=inbound.chat.attachments)
    return replace(inbound, chat=moved, surface=origin.address.platform)


def in_other_words(inbound: Inbound, words: str) -> Inbound:
    """A message with these words in the place of its own; what came beside them stays. Pure."""
    first = inbound.input[0]
    content: Json = words
    if isinstance(first.content, list):
        beside: list[Json] = [one for one in first.content if not (isinstance(one, dict) and one.get("type") == "text")]
        content = [{"type": "text", "text": words}, *beside]
    return replace(inbound, input=(replace(first, content=content),))


async def drop_waiting(
    stopping: TurnStopping, outbox: Outbox, queue: SessionQueue, message: Waiting, words: str
) -> bool:
    """Take a message out of its queue, and say `words` (if any) where it was written. False if it did not wait any more."""
    if not (await stopping.stop_message(queue.ticket_of(message))).stopped:
        return False
    if isinstance(message.inbound, FromChat) and words:
        chat, owner = message.inbound.chat, Owner(queue.session, queue.epoch)
        content = Content(ContentKind.ASIDE, Styled(known_sentence(words)), reply_to=chat.reply_to)
        await outbox.words.say(chat.address, owner, f"inbox:{message.inbox_id}", content)
    return True


async def cut_off(stopping: TurnStopping, outbox: Outbox, places: Sequence[PlaceRow]) -> None:
    """What was asked in these chats of conversations that they do not reach any more is stopped, and told."""
    for row in places:
        queue = stopping.queues.known(row.continues or "")
        if queue is None:
            continue
        if queue.running is not None and place_of(queue.running.messages[0].inbound) == row.place:
            await stopping.stop(SessionKey.of(queue.key))
        for message in [one for one in queue.waiting if place_of(one.inbound) == row.place]:
            await drop_waiting(stopping, outbox, queue, message, CUT_OFF)


def place_of(inbound: Inbound) -> str:
    """The place where a message was written; empty if it is none."""
    if not isinstance(inbound, FromChat) or inbound.chat.kind is not ChatKind.PRIVATE:
        return ""
    address = inbound.chat.address
    return SessionKey(address.platform, address.account, address.chat, address.thread).text()
