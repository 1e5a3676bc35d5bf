"""The handle that a test holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tests.fakes.common import ANY, Bell, Clock, Fault, Log, Script, Step
from tests.fakes.slack.courier import Courier
from tests.fakes.slack.methods import SCOPES
from tests.fakes.slack.objects import Channel, Message, User, View
from tests.fakes.slack.outbox import ACK_SECONDS, RETRIES_SECONDS, Envelope, Outbox, Reason
from tests.fakes.slack.people import People, Thread, root_of
from tests.fakes.slack.rates import RateGate, Rates
from tests.fakes.slack.screen import Screen, Shown, screen
from tests.fakes.slack.server import SlackServer, TokenState
from tests.fakes.slack.sockets import Sockets
from tests.fakes.slack.webhooks import Webhooks
from tests.fakes.slack.world import APP, World

BOT_TOKEN = "xoxb-1000000000001-2000000000002-FakeTokenForTestsOnly00"
APP_TOKEN = "xapp-1-A0FAKEAPP01-3000000000003-0123456789abcdef0123456789abcdef"
SIGNING_SECRET = "0123456789abcdeffedcba9876543210"
WITHIN_SECONDS = 10.0


class SlackFake:
    """A Slack of its own for one app. See the package's docstring for an example.

    `people` makes users and channels and lets persons act; `script` says what goes wrong with requests, `sockets` what goes wrong with
    connections; `log` holds what the app asked for, `envelopes` what it was told; `shown` is what a person sees; `world` is the state
    itself, for what the rest does not offer.
    """

    def __init__(
        self,
        *,
        bot_token: str = BOT_TOKEN,
        app_token: str = APP_TOKEN,
        signing_secret: str = SIGNING_SECRET,
        name: str = "outspoken",
        rates: Rates | None = None,
        ack_seconds: float = ACK_SECONDS,
        retries_seconds: Sequence[float] = RETRIES_SECONDS,
        ping_seconds: float | None = 5.0,
    ) -> None:
        """Nothing listens yet; enter the fake as a context.

        Args:
            bot_token: the one `xoxb-` token that is known.
            app_token: the one `xapp-` token that is known.
            signing_secret: with which HTTP requests to the app are signed.
            name: the bot's handle.
            rates: refuse with 429 what comes too often. None: no limits.
            ack_seconds: how long an acknowledgement may take.
            retries_seconds: pauses before an event is told again; also how often.
            ping_seconds: how often Slack pings each socket. None: never.
        """
        self.bot_token = bot_token
        self.app_token = app_token
        self.signing_secret = signing_secret
        self.clock = Clock()
        self.bell = Bell()
        self.bot = User("U0FAKEBOT01", name, name.title(), is_bot=True, bot_id="B0FAKEBOT01", app_id=APP)
        self.outbox = Outbox(ack_seconds, retries_seconds)
        self.world = World(self.bot, self.clock, self.outbox, self.bell.ring)
        self.people = People(self.world)
        self.faults = Script()
        self.sockets = Sockets(self.clock, self.bell, self.outbox)
        self.webhooks = Webhooks(signing_secret, self.clock, self.bell, self.outbox)
        self.api = SlackServer(
            self.world, self.faults, self.bell, self.sockets, bot_token=bot_token, app_token=app_token
        )
        self.api.scopes.update(SCOPES)
        if rates is not None:
            self.api.rates = RateGate(rates)
        self.world.origin = lambda: self.api.origin
        self._courier = Courier(self.clock, self.bell, self.outbox, self.sockets, self.webhooks, ping_seconds)

    async def __aenter__(self) -> Self:
        await self.api.door.open()
        self._courier.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._courier.stop()
        await self.api.close()

    # --- addresses and settings ---

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return self.api.origin

    @property
    def base_url(self) -> str:
        """What slack_sdk calls `base_url`."""
        return f"{self.origin}/slack/"

    def use_http(self, url: str | None) -> None:
        """Tell the app by signed requests to this address from now on. None: over its sockets."""
        self.webhooks.url = url
        self.bell.ring()

    def subscribe(self, *events: str) -> None:
        """The app wants to hear of these, such as `message.im`."""
        self.world.settings.subscribed.update(events)

    def unsubscribe(self, *events: str) -> None:
        """The app does not want to hear of these any more."""
        self.world.settings.subscribed.difference_update(events)

    def tokens(self, state: TokenState) -> None:
        """The tokens are good or bad from now on."""
        self.api.token_state = state

    def grant(self, *scopes: str) -> None:
        """The app has these scopes."""
        self.api.scopes.update(scopes)

    def withdraw(self, *scopes: str) -> None:
        """The app has not these scopes any more."""
        self.api.scopes.difference_update(scopes)

    # --- what goes wrong ---

    def script(self, method: str, *steps: Step, channel: Channel | None = None) -> None:
        """What befalls the next requests for a method (`ANY`: for whatever): one step each, None for nothing; see `common.Script`.

        With `channel`, only requests for that channel count. Beside the methods there are the routes `socket`, `upload`, `file` and
        `response_url`.
        """
        if channel is None:
            self.faults.add(method, *steps)
        else:
            number = channel.id
            self.faults.add(
                method, *steps, when=lambda params: number in (params.get("channel"), params.get("channel_id"))
            )

    def chaos(self, seed: int, *sides: tuple[float, Fault], method: str = ANY) -> None:
        """From now on these faults befall these shares of the requests."""
        self.faults.odds(method, seed, *sides)

    async def down(self) -> None:
        """Refuse connections and cut those that stand, until `up`."""
        self.sockets.cut()
        await self.api.door.shut()

    async def up(self) -> None:
        """Listen again, on the same port."""
        await self.api.door.open()

    def advance(self, seconds: float) -> None:
        """Let time have passed: events are told again, streams run out, triggers and addresses too, rates recover."""
        self.clock.advance(seconds)
        self.bell.ring()

    # --- what the app is told ---

    @property
    def envelopes(self) -> Sequence[Envelope]:
        """Everything that the app was told, or is still to be told, in the order in which it happened."""
        return self.outbox.all

    def told(self, name: str) -> list[Envelope]:
        """The envelopes of one type of event or interaction, or of one command."""
        return [envelope for envelope in self.outbox.all if envelope.name == name]

    @property
    def unacknowledged(self) -> Sequence[Envelope]:
        """What the app has not acknowledged, and what is not lost."""
        return self.outbox.open

    def hold_events(self) -> None:
        """What happens from now on is not told to the app before `release_events`."""
        self.outbox.hold()

    def release_events(self, order: Sequence[int] | None = None) -> list[Envelope]:
        """Tell what was held, in this order (positions, 0 first)."""
        released = self.outbox.release(order, self.clock.monotonic())
        self.bell.ring()
        return released

    def repeat(self, *envelopes: Envelope, reason: Reason = Reason.TIMEOUT) -> None:
        """Tell the same once more, with the same event id, although it was acknowledged; none named: the last one."""
        assert envelopes or self.outbox.all, "nothing has happened"
        self.outbox.again(envelopes or self.outbox.all[-1:], self.clock.monotonic(), reason)
        self.bell.ring()

    # --- what there is to see ---

    @property
    def log(self) -> Log:
        """Every request."""
        return self.api.log

    def shown(self, channel: Channel, thread: Thread = None, *, viewer: User | None = None) -> Screen:
        """What a person sees in a channel now; with `thread`, in that thread. Ephemeral messages are there for their one viewer only."""
        return screen(self.world, channel, root_of(thread), viewer)

    def message(self, channel: Channel, shown: Shown | str) -> Message:
        """The message behind what is shown, or of this ts, to press or to answer."""
        ts = shown if isinstance(shown, str) else shown.ts
        for one in channel.ephemeral:
            if one.ts == ts:
                return one
        return channel.messages[ts]

    def home(self, user: User) -> View | None:
        """The Home tab that a person sees."""
        return self.world.homes.get(user.id)

    def modal(self, user: User) -> View | None:
        """The form that a person sees."""
        open_views = [view for view in self.world.views.values() if view.user == user and view.open]
        return next((view for view in reversed(open_views) if view.body.get("type") == "modal"), None)

    async def until(self, condition: Callable[[], bool], within: float = WITHIN_SECONDS) -> None:
        """Wait until something holds.

        Raises:
            AssertionError: it did not within so many seconds.
        """
        await self.bell.until(
            condition,
            within,
            lambda: f"{len(self.log)} requests, the last {self.log.routes()[-5:]}; {list(self.outbox.open)}",
        )

    async def until_shown(
        self,
        channel: Channel,
        condition: Callable[[Screen], bool],
        *,
        thread: Thread = None,
        viewer: User | None = None,
        within: float = WITHIN_SECONDS,
    ) -> Screen:
        """Wait until a channel or a thread looks like this, and say how it looks then."""

        def look() -> Screen:
            return self.shown(channel, thread, viewer=viewer)

        await self.bell.until(lambda: condition(look()), within, lambda: str(look()))
        return look()

    async def until_connected(self, sockets: int = 1, within: float = WITHIN_SECONDS) -> None:
        """Wait until so many sockets are open."""
        await self.until(lambda: len(self.sockets.open) >= sockets, within)

    async def until_settled(self, within: float = WITHIN_SECONDS) -> None:
        """Wait until the app has acknowledged everything, or it is lost."""
        await self.until(lambda: not self.outbox.open, within)

    async def answer_to(self, message: Message, within: float = WITHIN_SECONDS) -> Shown:
        """Wait for the first message of the app that is newer than this one: in its thread, or beside it in the channel."""
        channel = message.channel

        def found() -> list[Shown]:
            every = [*self.shown(channel, message.root_ts).answers, *self.shown(channel).answers]
            return sorted((one for one in every if one.ts > message.ts), key=lambda one: one.ts)

        await self.bell.until(lambda: bool(found()), within, lambda: str(self.shown(channel, message.root_ts)))
        return found()[0]
