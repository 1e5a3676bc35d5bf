"""The lines that tie a platform's message to its turn: the message's id, its number in the inbox, the turn that answers it."""

from __future__ import annotations

import structlog

from agent_core.driver.driver import TurnDriver
from agent_core.signals import MessageTaken, Tell, TurnBegan, nobody
from agent_core.store.inbox.rows import Accepted, NewMessage
from gateway.queues.queue import Waiting

log = structlog.get_logger("turn")


def log_started(
    driver: TurnDriver, messages: tuple[Waiting, ...], model: str, endpoint: str, tell: Tell, agent: str, caller: str
) -> None:
    """The line that ties a turn to the messages that it answers."""
    log.info(
        "turn.started",
        turn=driver.identity.turn,
        session=driver.identity.session,
        surface=driver.identity.surface,
        inbox=[message.inbox_id for message in messages],
        platform_keys=[message.inbound.platform_key for message in messages],
        model=model,
        endpoint=endpoint,
        agent=agent or None,
        caller=caller or None,
    )
    waited = driver.opened_at - min(message.received_at for message in messages)
    tell(TurnBegan(surface=driver.identity.surface, waited_ms=max(0, waited)))


def log_accepted(message: NewMessage, accepted: Accepted, tell: Tell = nobody) -> None:
    """The line that ties a platform's message to its row in the inbox."""
    if not accepted.duplicate:
        log.info(
            "message.accepted",
            account=message.account,
            platform_key=message.platform_key,
            inbox=accepted.inbox_id,
            session=accepted.session,
            lane=message.lane,
        )
        tell(MessageTaken(account=message.account, lane=message.lane))
