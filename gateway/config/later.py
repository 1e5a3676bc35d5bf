"""The sections ``[tasks]`` and ``[send]``: what the model may begin beside a conversation, and where else it may write."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from adapters import platforms
from adapters.contract.settings import Section, Texts, Unit, complaint
from gateway.config.limits import Money, Tokens


class TasksSection(Section):
    """Background tasks: what a person asks for and does not want to wait for, done in a turn of its own."""

    at_once: Annotated[int, Unit("tasks")] = Field(default=3, ge=0, le=100)
    """Tasks of one conversation that may run at once; 0: there are none, and the tool is not offered."""
    at_once_all: Annotated[int, Unit("tasks")] = Field(default=16, ge=1, le=1_000)
    """Tasks of everybody together that may run at once."""
    seconds: int = Field(default=3600, ge=10, le=86_400)
    """Seconds that one may take."""
    steps: Annotated[int, Unit("steps")] = Field(default=100, ge=1, le=1_000)
    """Model calls that one may make, beside what is tried again."""
    tokens: Tokens = 0
    """Tokens that one may use; 0: as turn_tokens in [budgets]."""
    money: Money = 0
    """What one may cost, in units of the currency; 0: as turn_money in [budgets]."""
    status_seconds: int = Field(default=120, ge=5, le=3600)
    """Seconds after which its chat is first told how far it is; each time it takes twice as long until the next."""


class Send(Section):
    """Where else the model may write."""

    allow: Texts = Field(default=(), examples=[["team=telegram/-1001234567890"]])
    """Chats that send_message may write to, each as NAME=PLATFORM/CHAT or NAME=PLATFORM/CHAT/THREAD; the model knows them by their names.
    Empty: the tool is not offered."""

    @model_validator(mode="after")
    def _usable(self) -> Send:
        fix = 'Write for example allow = ["team=telegram/-1001234567890"].'
        for one in self.allow:
            name, _, chat = one.partition("=")
            platform, _, rest = chat.strip().partition("/")
            if not name.strip() or len(name) > 60 or platform not in platforms.names() or not rest.strip("/"):
                raise complaint("allow", "an entry is not NAME=PLATFORM/CHAT", fix)
        if len(self.chats) < len(self.allow):
            raise complaint("allow", "two entries have the same name", "Give each chat a name of its own.")
        return self

    @property
    def chats(self) -> dict[str, str]:
        """The chats by their names."""
        split = (one.partition("=") for one in self.allow)
        return {name.strip(): chat.strip() for name, _, chat in split}
