"""What commands say on the web page, which is no chat: stored in the commit that does the command, as a part that is there already, and shown beside
the turns of its conversation. Nothing is sent: whoever has the page open sees it, in every tab, now and after a reload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapters.contract.base import MessageState, TurnSight
from adapters.contract.chat import Content
from adapters.contract.contents import decode, encode
from adapters.delivery.reconcile import want_hash
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from agent_core.store.inbox.rows import InboxRow
from agent_core.store.store import Store
from agent_core.turn.view import Bubble, BubbleKind, View
from gateway.queues import inbox
from gateway.queues.inbox import COMMAND_LANE, UnreadableMessage
from gateway.queues.languages import PAGE
from gateway.queues.queue import person_words

OWN = frozenset({"/happen", "/post", "/hold", "/control"})
"""Commands that the gateway gives itself."""
REDO = "/redo"
"""How the page says that a message is to be asked once more, with the turn and maybe other words behind it."""


def page_parts(surface: str, origin: str, contents: Sequence[Content], first_place: int, now: int) -> list[DeliveryRow]:
    """The answer to a command as it is stored. Pure."""
    rows: list[DeliveryRow] = []
    for number, content in enumerate(contents):
        want = encode(content)
        rows.append(
            DeliveryRow(
                surface, origin, f"aside{number}", 0, first_place + number, want, want_hash(want), f"{surface}/{origin}/{number}",
                state=DeliveryState.SENT, platform_id=f"{origin}/{number}", at=now,
            )
        )  # fmt: skip
    return rows


def answer_sight(key: str, order: int, person: str, words: Sequence[str], at: int) -> TurnSight:
    """A command and its answer, as whoever watches the conversation sees it. Pure."""
    bubbles = tuple(Bubble(f"aside{n}", BubbleKind.NOTE, text, final=True) for n, text in enumerate(words))
    return TurnSight(key, order, MessageState.CLOSED, person, view=View(bubbles, open=False), at=at)


async def stored_answers(store: Store, rows: Sequence[InboxRow]) -> list[TurnSight]:
    """Those of these commands of the page that said something."""
    done = {f"inbox:{row.id}": row for row in rows if row.account == PAGE and row.lane == COMMAND_LANE}
    told: dict[str, list[str]] = {}
    for found in await store.deliveries.of_all(list(done)):
        told.setdefault(found.row.origin, []).append(decode(found.row.want).body.text)
    return [answer_sight(row.platform_key, row.arrival, _typed(row), told[name], row.received_at) for name, row in _in_order(done) if name in told]  # fmt: skip


def _in_order(rows: Mapping[str, InboxRow]) -> list[tuple[str, InboxRow]]:
    return sorted(rows.items(), key=lambda one: one[1].arrival)


def _typed(row: InboxRow) -> str:
    try:
        return typed(person_words(inbox.decode(row.body)))
    except UnreadableMessage:
        return ""


def typed(command: str) -> str:
    """What of a command its person typed: nothing of one that the gateway gave itself, and the new words of a message for which the page asks by a
    command. Pure."""
    name, _, words = command.partition(" ")
    if name == REDO:
        return words.strip().partition(" ")[2]
    return "" if name in OWN else command
