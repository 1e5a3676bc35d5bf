"""Puts the toy platform into a gateway: a section of the configuration and a builder. A real platform has both in their files.

It is put in for a block and taken out again, so that no other test sees a platform that is not shipped. A gateway in a process of
its own has it for good: ``from tests.toy.plug import plug; plug()`` before anything else.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field
from pydantic.fields import FieldInfo

from adapters.contract.chat import ChatDesk
from adapters.delivery.pacing import Rate
from agent_core.ports import Clock
from gateway.chats.platforms import BUILDERS, Built, account_rules
from gateway.config.chats import ChatSection
from gateway.config.sections import Config
from gateway.config.types import FromOutside, Secret
from gateway.delivery.outbox import Line
from tests.toy.adapter import PLATFORM, ToyAdapter, ToySettings

RATE = Rate(burst=20, interval_ms=50)


class Toy(ChatSection):
    """The toy platform. It is on as soon as there is a token."""

    token: Annotated[Secret | None, FromOutside("token_file")] = Field(default=None, description="The bot's token.")
    token_file: str = Field(default="", description="File that holds the token.", examples=["toy.token"])
    port: int = Field(default=0, ge=0, le=65_535, description="Port at which the platform is, on this machine.")


def build(config: Config, desk: ChatDesk, clock: Clock) -> Built | None:
    """The adapter, if there is a token."""
    section = getattr(config, PLATFORM)
    assert isinstance(section, Toy)
    if section.token is None:
        return None
    settings = ToySettings("127.0.0.1", section.port, section.token.get_secret_value(), account="bot")
    adapter = ToyAdapter(settings, desk, clock)
    return Built(adapter, Line(adapter.port, RATE, lambda _: RATE), account_rules(section))


def plug() -> None:
    """From now on there is a toy platform."""
    Config.model_fields[PLATFORM] = FieldInfo(annotation=Toy, default_factory=Toy)
    BUILDERS.append(build)
    _anew()


def unplug() -> None:
    """There is none any more."""
    del Config.model_fields[PLATFORM]
    BUILDERS.remove(build)
    _anew()


@contextmanager
def plugged() -> Generator[None]:
    plug()
    try:
        yield
    finally:
        unplug()


def _anew() -> None:
    Config.model_rebuild(force=True)
