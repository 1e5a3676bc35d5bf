"""The handle that a test holds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from tests.fakes.common import ANY, Bell, Clock, Fault, Log, Script, Step
from tests.fakes.discord.gateway import PATH, RESUME_PATH, Gateway
from tests.fakes.discord.ids import Snowflakes
from tests.fakes.discord.interactions import CALLBACK_SECONDS
from tests.fakes.discord.objects import Channel, Interaction, Message, User
from tests.fakes.discord.people import People
from tests.fakes.discord.pointing import pointed
from tests.fakes.discord.rates import Rates
from tests.fakes.discord.routes import Route
from tests.fakes.discord.screen import Screen, Shown, screen
from tests.fakes.discord.server import Api
from tests.fakes.discord.sessions import PRIVILEGED, Intent
from tests.fakes.discord.world import World

TOKEN = "MTAwMDAwMDAwMDAwMDAwMDAwMA.FakeTk.ForTestsOnly_0123456789abcdefghij"
WITHIN_SECONDS = 10.0


class DiscordFake:
    """A Discord of its own for one bot. See the package's docstring for an example.

    `people` makes users, guilds and channels and lets persons act; `script` says what goes wrong with requests, `gateway` what goes wrong
    with connections; `log` holds what the bot asked for; `shown` is what a person sees; `world` is the state itself, for what the rest
    does not offer.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        name: str = "outspoken",
        rates: Rates | None = None,
        granted: Intent = PRIVILEGED,
        heartbeat_seconds: float = 41.25,
        shards: int = 1,
    ) -> None:
        """Nothing listens yet; enter the fake as a context.

        Args:
            token: the one token that is known.
            name: the bot's.
            rates: what comes faster gets 429. None: limits that no test reaches.
            granted: the privileged intents that the portal allows the application.
            heartbeat_seconds: how often clients are to send a heartbeat; after twice that time without one they are thrown out.
            shards: how many shards the server recommends.
        """
        self.token = token
        self.clock = Clock()
        self.bell = Bell()
        ids = Snowflakes(self.clock)
        self.bot = User(ids.next(), name, is_bot=True)
        granted_content = Intent.CONTENT in granted
        self.world = World(self.bot, self.clock, ids, content_granted=granted_content, changed=self.bell.ring)
        self.people = People(self.world)
        self.faults = Script()
        self.gateway = Gateway(self.world, self.bell, token, granted, heartbeat_seconds)
        self.api = Api(self.world, self.gateway, token, self.faults, self.bell, rates or Rates(), shards)

    async def __aenter__(self) -> Self:
        await self.api.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.api.close()

    # --- addresses ---

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.api.door.port}"

    @property
    def api_url(self) -> str:
        """What discord.py calls `Route.BASE`."""
        return f"{self.origin}/api/v10"

    @property
    def gateway_url(self) -> str:
        """What discord.py calls `DiscordWebSocket.DEFAULT_GATEWAY`."""
        return f"ws://127.0.0.1:{self.api.door.port}{PATH}"

    @property
    def resume_url(self) -> str:
        """What READY tells, for coming back."""
        return f"ws://127.0.0.1:{self.api.door.port}{RESUME_PATH}"

    def pointed(self) -> AbstractContextManager[None]:
        """While this lasts, every client of discord.py in this process talks to this fake."""
        return pointed(self.api_url, self.gateway_url)

    # --- what goes wrong ---

    def script(self, route: Route | str, *steps: Step, channel: Channel | None = None) -> None:
        """What befalls the next requests to a route (`ANY`: to whatever): one step each, None for nothing; see `common.Script`.

        With `channel`, only requests for that channel count.
        """
        name = str(route)
        if channel is None:
            self.faults.add(name, *steps)
        else:
            number = str(channel.id)
            self.faults.add(name, *steps, when=lambda params: str(params.get("channel_id")) == number)

    def chaos(self, seed: int, *sides: tuple[float, Fault], route: Route | str = ANY) -> None:
        """From now on these faults befall these shares of the requests."""
        self.faults.odds(str(route), seed, *sides)

    async def down(self) -> None:
        """Refuse connections and cut those that stand, until `up`."""
        await self.api.door.shut()

    async def up(self) -> None:
        """Listen again, on the same port."""
        await self.api.door.open()

    def advance(self, seconds: float) -> None:
        """Let time have passed: typing fades, interactions and links die, nonces are forgotten, rates recover."""
        self.clock.advance(seconds)
        self.bell.ring()

    # --- what there is to see ---

    @property
    def log(self) -> Log:
        """Every request."""
        return self.api.log

    @property
    def connected(self) -> bool:
        """Whether a client listens."""
        return bool(self.gateway.live)

    def shown(self, channel: Channel, user: User | None = None) -> Screen:
        """What a person sees in a channel now; None: what everybody sees."""
        return screen(self.world, channel, user)

    def message(self, channel: Channel, shown: Shown | int) -> Message:
        """The message behind what is shown, or of this number, to press or to answer."""
        return channel.messages[shown if isinstance(shown, int) else shown.id]

    async def until(self, condition: Callable[[], bool], within: float = WITHIN_SECONDS) -> None:
        """Wait until something holds.

        Raises:
            AssertionError: it did not within so many seconds.
        """
        await self.bell.until(condition, within, lambda: f"{len(self.log)} requests, the last {self.log.routes()[-5:]}")

    async def until_connected(self, within: float = WITHIN_SECONDS) -> None:
        """Wait until a client listens."""
        await self.until(lambda: self.connected, within)

    async def until_shown(
        self,
        channel: Channel,
        condition: Callable[[Screen], bool],
        within: float = WITHIN_SECONDS,
        *,
        user: User | None = None,
    ) -> Screen:
        """Wait until a channel looks like this, and say how it looks then."""

        def look() -> Screen:
            return self.shown(channel, user)

        await self.bell.until(lambda: condition(look()), within, lambda: str(look()))
        return look()

    async def answer_to(self, message: Message, within: float = WITHIN_SECONDS) -> Shown:
        """Wait for the first message of the bot that is newer than this one, in the same channel."""
        channel = message.channel
        seen = await self.until_shown(channel, lambda now: any(one.id > message.id for one in now.answers), within)
        return next(one for one in seen.answers if one.id > message.id)

    def failed(self, interaction: Interaction) -> bool:
        """Whether the person is told that the application did not respond."""
        waited = self.clock.monotonic() - interaction.at
        return not interaction.answered and waited > CALLBACK_SECONDS

    async def answered(self, interaction: Interaction, within: float = WITHIN_SECONDS) -> Interaction:
        """Wait until the bot has acknowledged an interaction."""
        await self.until(lambda: interaction.answered, within)
        return interaction
