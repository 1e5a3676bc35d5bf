"""What can be asked of the store. Readers have connections of their own and never write.

Law: a read sees everything that was committed before it began, so also whatever a caller has been answered.
"""

from __future__ import annotations

from agent_core.records import dataclass
from agent_core.store.apikeys.access import ApiKeyReads
from agent_core.store.budgets.access import BudgetReads
from agent_core.store.database.asks import StoreAsks
from agent_core.store.deliveries.access import DeliveryReads
from agent_core.store.inbox.access import InboxReads
from agent_core.store.inbox.unread import UnreadReads
from agent_core.store.keeping.forgetting import Forgotten
from agent_core.store.keeping.retaining import Retaining
from agent_core.store.memory.access import MemoryReads
from agent_core.store.overview import Overview
from agent_core.store.people.access import PeopleReads
from agent_core.store.schedules.access import ScheduleReads
from agent_core.store.sessions.access import SessionReads
from agent_core.store.sessions.asides import AsideReads
from agent_core.store.sessions.takeups import LeftBehind
from agent_core.store.slices.access import SliceReads
from agent_core.store.troubles.access import TroubleReads
from agent_core.store.turns.access import TurnReads
from agent_core.store.webhooks.access import HookReads


@dataclass(frozen=True, eq=False)
class Reads:
    """One object for each aggregate. Every method of all of them raises `StorageUnavailable` if the database cannot be read."""

    asks: StoreAsks
    inbox: InboxReads
    unread: UnreadReads
    sessions: SessionReads
    turns: TurnReads
    deliveries: DeliveryReads
    people: PeopleReads
    apikeys: ApiKeyReads
    schedules: ScheduleReads
    troubles: TroubleReads
    budgets: BudgetReads
    memory: MemoryReads
    left: LeftBehind
    """What is open, whoever has it."""
    asides: AsideReads
    """Conversations that were set aside, because they cannot be read."""
    overview: Overview
    """What the operators' console shows: the latest of everything."""
    retaining: Retaining
    """What may be removed."""
    forgotten: Forgotten
    """What is whose, for who is to be forgotten."""
    hooks: HookReads
    """What is told outside."""
    slices: SliceReads
    """Which gateway works on what, where there are several."""

    def left_out(self, what: str) -> bool:
        """Whether something of a list could not be read the last time that it was asked for."""
        return self.asks.lost.get(what, False)


def reads_of(asks: StoreAsks) -> Reads:
    """All that can be asked."""
    return Reads(
        asks=asks,
        inbox=InboxReads(asks),
        unread=UnreadReads(asks),
        sessions=SessionReads(asks),
        turns=TurnReads(asks),
        deliveries=DeliveryReads(asks),
        people=PeopleReads(asks),
        apikeys=ApiKeyReads(asks),
        schedules=ScheduleReads(asks),
        troubles=TroubleReads(asks),
        budgets=BudgetReads(asks),
        memory=MemoryReads(asks),
        left=LeftBehind(asks),
        asides=AsideReads(asks),
        overview=Overview(asks),
        retaining=Retaining(asks),
        forgotten=Forgotten(asks),
        hooks=HookReads(asks),
        slices=SliceReads(asks),
    )
