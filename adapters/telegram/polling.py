"""Which offset the next `getUpdates` has. Pure.

Theory. A poll's offset does one thing: whatever has a lower id is forgotten by the server (https://core.telegram.org/bots/api#getupdates).
So it is sent right behind the updates that it confirms, by a call that waits for nothing, and for what comes next the server is asked
without one: it answers from the head of what it still has. A position that is kept would be compared with ids that the server has chosen
anew meanwhile, lower ones (after a week without updates, or because it is another server): Telegram's own answers from the head then, again
and again until they are confirmed by *their* ids; others would answer nothing, or forget what nobody has seen.

There are servers that never forget (stand-ins for tests mostly). One is known by what it answers without an offset: just what was
confirmed. There the waiting poll has the offset, and every other one looks without.

Laws (tests/adapters/test_offsets.py): what was not answered and taken is never confirmed; whatever the ids do, each update comes in; an
answer that brings nothing new is followed by a pause or by a poll that waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asking:
    """How the server is asked next."""

    offset: int | None = None
    waits: bool = True
    """The server may wait for updates; else it answers at once."""
    confirmed: int | None = None
    """The last offset that the server has answered to."""
    stuck: bool = False
    """The same was answered again although it was confirmed: ask after a pause."""


def after(asked: Asking, ids: Sequence[int], count: int) -> Asking:
    """What to ask next. `ids` are those of the answer, all of which is stored by now; `count` is how much it held.

    What has no id can never be confirmed, so that it comes again.
    """
    confirmed = asked.confirmed if asked.offset is None else asked.offset
    if not ids:
        return Asking(None, confirmed=confirmed, stuck=count > 0)
    offset = max(ids) + 1
    if offset == confirmed:  # it forgets nothing, or answers with the same whatever it is asked
        return Asking(offset, waits=True, confirmed=confirmed, stuck=asked.offset is not None)
    lower = asked.offset is None and confirmed is not None and offset < confirmed
    return Asking(offset, waits=False, confirmed=confirmed, stuck=lower)
