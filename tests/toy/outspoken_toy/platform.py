"""The toy platform, to the rest of the program: its section of the configuration, and its record. The entry point leads here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, SecretStr
from typing_extensions import override

from adapters.checks.findings import REMOTE_SECONDS, Check, Finding, Seen, ok, problem
from adapters.contract.logevents import LATER, LogEvent
from adapters.contract.pacing import Rate
from adapters.contract.platforms import (
    PAIRING,
    Asker,
    Built,
    ChatSection,
    CheckContext,
    Key,
    Pieces,
    Platform,
    SetupResult,
)
from adapters.contract.settings import FromOutside, Secret, Usual

if TYPE_CHECKING:
    from outspoken_toy.adapter import ToySettings

    from adapters.contract.chat import ChatIntake
    from agent_core.ports import Clock

RATE = Rate(burst=20, interval_ms=50)


class Toy(ChatSection):
    """The toy platform. It is on as soon as there is a token."""

    token: Annotated[Secret | None, Usual(("TOY_TOKEN",)), FromOutside("token_file")] = Field(
        default=None, description="The bot's token."
    )
    token_file: str = Field(default="", description="File that holds the token.", examples=["toy.token"])
    port: int = Field(default=0, ge=0, le=65_535, description="Port at which the platform is, on this machine.")

    @property
    @override
    def configured(self) -> bool:
        return self.token is not None

    def settings(self) -> ToySettings:
        """What it says to the adapter."""
        from outspoken_toy.adapter import ToySettings

        return ToySettings("127.0.0.1", self.port, self.token.get_secret_value() if self.token else "", account="bot")

    @override
    def build(self, intake: ChatIntake, clock: Clock) -> Built:
        from outspoken_toy.adapter import ToyAdapter

        return Built(ToyAdapter(self.settings(), intake, clock), RATE, lambda _: RATE)

    @override
    def checks(self, around: CheckContext) -> Sequence[Check]:
        return (Check("toy", REMOTE_SECONDS, self._look),)

    async def _look(self) -> ToySeen:
        from outspoken_toy.adapter import connected

        from adapters.contract.chat import CallFailed

        try:
            async with connected(self.settings(), listen=False):
                return ToySeen((ok("toy.token", "The toy platform lets the bot in."),), bot="the toy bot")
        except CallFailed as error:
            words = f"The toy platform does not let the bot in: {error.words}."
            return ToySeen((problem("toy.token", words, "Correct it: outspoken setup toy."),))
        except OSError as error:
            words = f"The toy platform cannot be reached ({type(error).__name__})."
            return ToySeen((problem("toy.reach", words, "See whether it runs, and [toy] port."),))

    @override
    def ask(self, asker: Asker) -> SetupResult | None:
        values: dict[Key, str] = {}
        if port := asker.value("toy", "port"):
            values["toy", "port"] = port

        def attempt() -> ToySeen | None:
            token = asker.secret("toy", "token", "Token", self.token, needed=not asker.asks)
            if not token:
                return None
            values["toy", "token"] = token
            given = {"token": SecretStr(token), "port": int(values.get(("toy", "port"), self.port))}
            return asker.look(self.model_copy(update=given)._look())

        seen = asker.tried(attempt)
        return None if seen is None else SetupResult(values, (f"\nWrite to {seen.bot}. {PAIRING}",))


@dataclass(frozen=True, slots=True)
class ToySeen(Seen):
    """What is known of the bot now."""

    bot: str = ""


def _pieces() -> Pieces:
    from outspoken_toy.adapter import pieces

    return pieces


def _said(words: str) -> Finding | None:
    if "refuses the token" not in words:
        return None
    return problem("toy.token", "The running gateway is not let in by the toy platform.", "outspoken setup toy")


PLATFORM = Platform(
    name="toy",
    title="Toy",
    section=Toy,
    setup_keys=("token", "port"),
    setup_options={"port": "Port of the toy platform."},
    pieces=_pieces,
    chat_id=r"[gp]-.+",
    counts_messages=True,
    said=_said,
    events=(
        LogEvent("toy.hung_up", "The toy platform ended the connection.", LATER, by="account", connection=True),
    ),
)  # fmt: skip
