"""Messages that need not wait: each is stored together with the turn that it begins, in one commit.

Law (tests/gateway/test_atonce.py, test_keeper.py): what raises while a turn is prepared leaves a message that is stored by itself; its turn is
then opened as any other, and what is wrong is told. What kills the process meanwhile leaves nothing, neither stored nor acknowledged: whoever
sent it sends it again. It could do that for ever, so for a day after a process has died messages are stored first, and it is counted how
often opening their turn came to nothing (`gateway.setaside.unclaimed`).
"""

from __future__ import annotations

from adapters.contract.base import FromApi, Inbound
from agent_core.patience import Limit
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.inbox.rows import Accepted, NewMessage
from agent_core.store.store import Store
from gateway.queues.merging import MessagePiece, merged
from gateway.queues.queue import Running, SessionQueue, Waiting
from gateway.queues.queues import Queues
from gateway.sessions.opening import PreparedTurn, TurnOpener
from gateway.sessions.runner import Runner
from gateway.setaside.unclaimed import Unclaimed

WARY_MS = 24 * 3_600_000
"""So long after a death messages are stored before anything is done with them."""
PREPARE_SECONDS = 1.0
"""What takes longer (a slow storage, a model server that is asked for its names) is waited for behind the message's acknowledgement."""


def wary_seconds(died_at: int | None, now: int) -> float:
    """How long this process, which begins now, stores messages first, if the latest death before it was at that time (ms)."""
    if died_at is None:
        return 0.0
    # A clock that was set back makes it no longer than a day
    return min(WARY_MS, max(0, died_at + WARY_MS - now)) / 1000


def may_begin(inbound: Inbound, now: int) -> bool:
    """It is all that its turn waits for: no file is to be fetched, and no further piece is to come."""
    if isinstance(inbound, FromApi):
        return True
    return not inbound.chat.attachments and not merged([MessagePiece(inbound.chat, now, 0)]).wait_ms


@dataclass(frozen=True, slots=True)
class TurnAtOnce:
    """A turn that has a slot and is not open yet."""

    turn: PreparedTurn
    inbound: Inbound
    received_at: int
    supposed: bool
    """That the session is still ours is only supposed: it was when its last turn ended."""


class AtOnce:
    """Prepares the turns of messages that are just coming, and runs those that were opened."""

    def __init__(
        self, queues: Queues, runner: Runner, opener: TurnOpener, left: Unclaimed, store: Store, clock: Clock
    ) -> None:
        self._queues = queues
        self._runner = runner
        self._opener = opener
        self._left = left
        self._store = store
        self._clock = clock
        self.wary_until = float("inf")
        """Until then, by the monotonic clock, messages are stored first."""

    async def load(self) -> None:
        """Look whether a process has died."""
        died_at = await self._store.left.last_death(self._store.node)
        self.wary_until = self._clock.monotonic() + wary_seconds(died_at, self._clock.now_ms())

    async def beginning(self, queue: SessionQueue, inbound: Inbound, message: NewMessage) -> TurnAtOnce | None:
        """The turn that answers the message, if it can begin at once. None: the message is stored by itself, and waits.

        Of a session that is ours nobody else writes the next turn; where that has changed meanwhile, the store only takes the message.
        """
        if self._runner.closing or self._clock.monotonic() < self.wary_until:
            return None
        if queue.waiting or queue.running is not None or queue.blocked or queue.task is not None or queue.steers:
            return None
        at, supposed = message.received_at, False
        session, epoch = queue.session, queue.epoch
        if not epoch and inbound.stateless:
            session, epoch = message.new_session_id, 1
        elif not epoch and (past := self._queues.pasts.whose(queue.key)) is not None:
            (session, epoch), supposed = past, True
        if not epoch or self._left.holds(session) or not may_begin(inbound, at):
            return None
        if not self._runner.slots.at_once(queue, inbound, at):
            return None
        if supposed:
            self._queues.own(queue, session, epoch)
        try:
            async with Limit(PREPARE_SECONDS):
                turn = await self._opener.prepare(queue, session, epoch, (Waiting(0, 0, inbound, at),))
        except Exception:  # noqa: BLE001 - it happens again when the message is stored, and is told then
            self._not_begun(queue, supposed=supposed)
            return None
        except BaseException:
            self._not_begun(queue, supposed=supposed)
            raise
        return TurnAtOnce(turn, inbound, at, supposed)

    def stored(self, queue: SessionQueue, begins: TurnAtOnce, accepted: Accepted | None) -> None:
        """What came of it: the turn is run if it is open; else (None: nothing was stored) its slot goes to others."""
        if accepted is None or not accepted.started:
            self._not_begun(queue, supposed=begins.supposed)
            return
        opening = begins.turn.opening
        if not queue.epoch:
            self._queues.own(queue, opening.session, opening.epoch)
        message = Waiting(accepted.inbox_id, accepted.arrival, begins.inbound, begins.received_at)
        self._runner.run_opened(queue, Running(self._opener.opened(begins.turn, (message,)), (message,)))

    def _not_begun(self, queue: SessionQueue, *, supposed: bool) -> None:
        self._runner.slots.leave(queue)
        if supposed:
            self._queues.disown(queue)
