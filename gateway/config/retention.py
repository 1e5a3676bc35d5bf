"""The configuration of retention: section ``[retention]``, how long each kind of data is kept."""

from __future__ import annotations

from pydantic import Field, model_validator

from agent_core.limits.retention import Keep
from gateway.config.types import Section, complaint

_KEEP = Keep()
MOST_DAYS = 36_500


def _days(default: int, what: str, least: int = 0) -> int:
    """Days; typed as its value, because that is what the class has."""
    ever = "; 0 keeps it for ever" if least == 0 else ""
    field: int = Field(default=default, ge=least, le=MOST_DAYS, description=f"Days for which {what} is kept{ever}.")
    return field


class Retention(Section):
    """How long data is kept. What is still needed is never removed, however old it is."""

    journals_days: int = _days(
        _KEEP.journals_days,
        "what was said and done in a turn (at least bodies_days, so never 1 to 6; a conversation that goes on keeps what the model is still shown)",
    )
    bodies_days: int = _days(
        _KEEP.bodies_days,
        "a message as it came, and a part that was delivered (platforms send again for days, so at least 7)",
        least=7,
    )
    attachments_days: int = _days(
        _KEEP.attachments_days,
        "a picture or a file of a message, since it was sent last, and a copy of a file that was sent to a chat",
    )
    workspaces_days: int = _days(_KEEP.workspaces_days, "a conversation's folder, since it was used last,")
    failures_days: int = _days(
        _KEEP.failures_days, "what went wrong in turns, and what could not be taken in,", least=7
    )
    audit_days: int = _days(_KEEP.audit_days, "the record of what was done by hand")
    records_days: int = _days(
        _KEEP.records_days, "the number, times, exit and use of a turn, without a word of it (at least journals_days),"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Retention:
        if self.journals_days and self.journals_days < self.bodies_days:
            words = "journals are kept for a shorter time than messages, which refer to them"
            raise complaint("journals_days", words, f"Set it to {self.bodies_days} or more, or to 0.")
        if self.records_days and (not self.journals_days or self.records_days < self.journals_days):
            words = "records of turns are kept for a shorter time than their journals"
            raise complaint("records_days", words, f"Set it to {self.journals_days} or more, or to 0.")
        return self

    def keep(self) -> Keep:
        """As the upkeep takes it."""
        return Keep(**self.model_dump())
