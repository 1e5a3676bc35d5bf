"""Which of its accounts a gateway says that it serves: not one whose platform it does not reach, as long as another one may. Pure.

Theory. Whoever serves an account is given connections of it, and chats (`gateway.sharing.shares`). A gateway that reaches the database and not the platform
would keep them, and what is said there would wait. So it withdraws the account once its connection has failed for a while and another one serves it: then
all of that is given away by the rules that hold for a gateway which never had the account. It serves the account again when the platform is reached from
here, and not before a pause is over that grows with each time: where the platform is reached and its connection fails all the same, that goes round, seldom.

Laws (tests/gateway/test_withdrawal.py): who is the only one that serves an account does not withdraw it, and serves it again at once if it comes to be
the only one that has it; so an account that anybody has is served by somebody. Where some reach the platform, its connection comes to one of them and stays
there. Where nobody does, nothing moves any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agent_core.records import changed, dataclass
from agent_core.retry import ACCOUNT_AWAY
from agent_core.store.slices.rows import PeerNode

FAILING_SECONDS = 15.0
"""So long a platform may be away before its account is withdrawn."""
LATER_SECONDS = 3.0
"""So much longer for each gateway before this one: two that fail at the same moment do not both withdraw."""

REMEMBERED_SECONDS = 2 * ACCOUNT_AWAY.most
"""What is withdrawn again within so long is so for longer than the last time; another gateway may have tried between."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """An account that was withdrawn. Times are monotonic seconds."""

    times: int
    """How often, with little time between."""
    until: float
    """It is not served before, as long as somebody else serves it; since when it is served again, if it is."""
    away: bool = True


Withdrawals = Mapping[str, Withdrawal]


def withdrawn(
    me: int,
    accounts: Collection[str],
    failing: Mapping[str, float],
    peers: Collection[PeerNode],
    before: Withdrawals,
    now: float,
) -> dict[str, Withdrawal]:
    """Those that are withdrawn now, or were not long ago. `failing`: for how long the connection of an account has failed, seconds."""
    found: dict[str, Withdrawal] = {}
    for account in accounts:
        others = [one.node for one in peers if one.node != me and (one.serves is None or account in one.serves)]
        one = _of(me, others, failing.get(account, 0.0), before.get(account), now)
        if one is not None:
            found[account] = one
    return found


def _of(me: int, others: Collection[int], seconds: float, last: Withdrawal | None, now: float) -> Withdrawal | None:
    if last is not None and last.away:
        back = not others or (now >= last.until and not seconds)
        return changed(last, away=False, until=now) if back else last
    if last is not None:
        seconds = min(seconds, now - last.until)  # it is tried anew
    if others and seconds >= FAILING_SECONDS + LATER_SECONDS * sum(node < me for node in others):
        times = last.times + 1 if last is not None else 1
        return Withdrawal(times, now + ACCOUNT_AWAY.seconds(times))
    return last if last is not None and now - last.until < REMEMBERED_SECONDS else None


def served(accounts: Collection[str], withdrawals: Withdrawals) -> frozenset[str]:
    """What others are told that is served here."""
    return frozenset(one for one in accounts if one not in withdrawals or not withdrawals[one].away)
