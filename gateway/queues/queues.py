"""The queues of this process, each found by its session's key and, once the session exists in the store, by its id.

They are kept in one place so that whoever takes messages in, runs turns, watches or takes up what was left finds the same one. A queue is
forgotten when it has nothing to do and nobody watches; what it knows beside the database is only a cache.

Known to be weak: one that is held over an await may be forgotten meanwhile; ask for it again behind the last await.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_core.bell import Bell
from gateway.queues.pasts import Pasts
from gateway.queues.prefs import Prefs
from gateway.queues.queue import Begun, Running, SessionQueue


class Queues:
    """They are all here: by key, by session, and who waits for a session that this process does not have (yet)."""

    def __init__(self) -> None:
        self._by_key: dict[str, SessionQueue] = {}
        self._by_session: dict[str, SessionQueue] = {}
        self._expecting: dict[Bell, str] = {}
        self._begun = Begun()
        self.pasts = Pasts()
        """Of conversations whose queue was forgotten."""

    def __iter__(self) -> Iterator[SessionQueue]:
        return iter(list(self._by_key.values()))

    def known(self, key: str) -> SessionQueue | None:
        """The queue of a session that is busy or watched just now."""
        return self._by_key.get(key)

    def of(self, session: str) -> SessionQueue | None:
        """The same, by the session's id."""
        return self._by_session.get(session)

    def at(self, key: str) -> SessionQueue:
        """The queue of a session key; the session itself may not exist yet."""
        return self._by_key.setdefault(key, SessionQueue(key, begun=self._begun))

    def running(self) -> list[Running]:
        """The turns that run in this process; those that were taken up and wait for a place do not yet."""
        return [one.running for one in self._by_key.values() if one.running is not None and one.task is not None]

    def tasks_of(self, key: str) -> list[Running]:
        """The background tasks of a conversation that run here."""
        return [one for one in self.running() if (task := one.task) is not None and task.parent == key]

    def turn_in(self, key: str, turn: str) -> Running | None:
        """The turn with this id that runs in a conversation, or in a task of it; without an id the one that asks something, else its own."""
        queue = self.known(key)
        own = [queue.running] if queue is not None and queue.running is not None else []
        if own and (turn == own[0].driver.identity.turn or (not turn and own[0].driver.asks)):
            return own[0]
        wanted = (
            one for one in self.tasks_of(key) if turn == one.driver.identity.turn or (not turn and one.driver.asks)
        )
        return next(wanted, None if turn else next(iter(own), None))

    def blocked(self) -> list[SessionQueue]:
        """Those that wait for what an earlier process left."""
        return [one for one in self._by_key.values() if one.blocked]

    def own(self, queue: SessionQueue, session: str, epoch: int) -> None:
        """The queue's session is this process's from now on."""
        queue.session, queue.epoch = session, epoch
        if not queue.prefs_loaded and (prefs := self.pasts.prefs(queue.key, session, epoch)) is not None:
            queue.prefs, queue.prefs_loaded = prefs, True
        if not queue.memory_loaded and (memory := self.pasts.take(queue.key, session, epoch)) is not None:
            queue.memory, queue.memory_loaded = memory, True
        self._by_session[session] = queue
        self._by_key[queue.key] = queue  # it may have been forgotten as idle meanwhile
        for bell in [bell for bell, expected in self._expecting.items() if expected == session]:
            bell.ring()

    def disown(self, queue: SessionQueue) -> None:
        """Whether the queue's session is this process's is not known any more."""
        self._by_session.pop(queue.session, None)
        queue.session, queue.epoch, queue.memory_loaded, queue.prefs_loaded = "", 0, False, False

    def let_go(self, queue: SessionQueue) -> None:
        """The queue's session is gone, and nothing of it is known any more; the next message begins another one."""
        self._by_session.pop(queue.session, None)
        self.pasts.drop(queue.key)
        queue.begin_anew("", 0)
        queue.recent, queue.prefs, queue.prefs_loaded = [], Prefs(), False
        queue.ended += 1  # whoever watches has more of it to see than there is
        queue.wake()

    def point(self, queue: SessionQueue, session: str, epoch: int) -> None:
        """From now on the queue is another session's."""
        self._by_session.pop(queue.session, None)
        self.pasts.drop(queue.key)
        queue.begin_anew(session, epoch)
        self._by_session[session] = queue
        self.release(queue)

    def release(self, queue: SessionQueue) -> None:
        """Forget a queue that has nothing to do and nobody watching."""
        if queue.idle and self._by_key.get(queue.key) is queue:
            del self._by_key[queue.key]
            self._by_session.pop(queue.session, None)
            if queue.memory_loaded:
                prefs = queue.prefs if queue.prefs_loaded else None
                self.pasts.keep(queue.key, queue.session, queue.epoch, queue.memory, prefs)

    def move(self, platform: str, account: str, old_chat: str, new_chat: str) -> None:
        """A chat has another id: its sessions go on under new keys, as the store has them already, and what runs or waits is of that chat."""
        self.pasts.clear()
        for queue in self:
            queue.move(platform, account, old_chat, new_chat)
            parts = queue.key.split("/")
            if parts[:3] == [platform, account, old_chat]:
                del self._by_key[queue.key]
                queue.key = "/".join([platform, account, new_chat, *parts[3:]])
                self._by_key[queue.key] = queue

    def forget_memory(self, key: str) -> None:
        """What is put before the model has changed in the store: read it anew for the next turn."""
        self.pasts.drop(key)
        if (queue := self.known(key)) is not None:
            queue.memory_loaded = False

    def rebranch(self, key: str) -> None:
        """Turns were taken back, or another branch is shown: whoever watches looks once more."""
        if (queue := self.known(key)) is not None:
            queue.recent_loaded = False
            queue.wake()

    def forget_memories(self) -> None:
        """The same of all."""
        self.pasts.clear()
        for queue in self:
            queue.memory_loaded = False

    # ------------------------------------------------------------------ who waits for a session

    def expect(self, session: str, bell: Bell) -> None:
        """Ring the bell when this process comes to have the session, or will not any more."""
        self._expecting[bell] = session

    def expect_no_more(self, bell: Bell) -> None:
        self._expecting.pop(bell, None)

    def ring(self, session: str) -> None:
        """Something has happened in a session that is run elsewhere."""
        watched = self._by_session.get(session)
        for bell in [bell for bell, expected in self._expecting.items() if expected == session]:
            bell.ring()
        for bell in watched.watchers if watched is not None else ():
            bell.ring()

    def ring_all(self) -> None:
        """Nothing is run here any more: whoever watches or waits looks once more."""
        for bell in [bell for one in self._by_key.values() for bell in one.watchers] + [*self._expecting]:
            bell.ring()
