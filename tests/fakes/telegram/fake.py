"""The handle that a test holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tests.fakes.common import ANY, Bell, Clock, Fault, Log, Script, Step
from tests.fakes.telegram.objects import Chat, Message, User
from tests.fakes.telegram.people import People
from tests.fakes.telegram.rates import RateGate, Rates
from tests.fakes.telegram.screen import Screen, Shown, screen
from tests.fakes.telegram.server import BotApi
from tests.fakes.telegram.updates import Update
from tests.fakes.telegram.world import World

TOKEN = "7000000001:AAFakeTokenForTestsOnly_0123456789abcde"
WITHIN_SECONDS = 10.0


class TelegramFake:
    """A Telegram of its own for one bot. See the package's docstring for an example.

    `people` makes users and chats and lets persons act; `script` says what goes wrong; `log` holds what the bot asked for; `shown` is
    what a person sees; `world` is the state itself, for what the rest does not offer.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        username: str = "outspoken_bot",
        name: str = "Outspoken",
        privacy: bool = False,
        rates: Rates | None = None,
        https_only: bool = False,
        webhook_retry_seconds: float = 0.05,
    ) -> None:
        """Nothing listens yet; enter the fake as a context.

        Args:
            token: the one token that is known.
            username: the bot's, without `@`.
            name: the bot's first name.
            privacy: keep from the bot what is not meant for it in groups, as the real server does unless told otherwise.
            rates: refuse with 429 what comes too fast. None: no limits.
            https_only: refuse webhooks over plain HTTP, as the public server does.
            webhook_retry_seconds: pause between attempts to deliver an update.
        """
        self.token = token
        self.clock = Clock()
        self.bell = Bell()
        self.bot = User(int(token.split(":")[0]), name, username, is_bot=True, language_code=None)
        self.world = World(self.bot, self.clock, privacy=privacy, changed=self.bell.ring)
        if rates is not None:
            self.world.rates = RateGate(rates)
        self.people = People(self.world)
        self.faults = Script()
        self.api = BotApi(
            self.world,
            token,
            self.faults,
            self.bell,
            https_only=https_only,
            webhook_retry_seconds=webhook_retry_seconds,
        )

    async def __aenter__(self) -> Self:
        await self.api.door.open()
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
    def base_url(self) -> str:
        """What python-telegram-bot calls `base_url`: the token is put behind it."""
        return f"{self.origin}/bot"

    @property
    def file_url(self) -> str:
        """What python-telegram-bot calls `base_file_url`."""
        return f"{self.origin}/file/bot"

    # --- what goes wrong ---

    def script(self, method: str, *steps: Step, chat: Chat | None = None) -> None:
        """What befalls the next requests for a method (`ANY`: for whatever): one step each, None for nothing; see `common.Script`.

        With `chat`, only requests for that chat count.
        """
        if chat is None:
            self.faults.add(method, *steps)
        else:
            number = str(chat.id)
            self.faults.add(method, *steps, when=lambda params: str(params.get("chat_id")) == number)

    def chaos(self, seed: int, *sides: tuple[float, Fault], method: str = ANY) -> None:
        """From now on these faults befall these shares of the requests."""
        self.faults.odds(method, seed, *sides)

    async def down(self) -> None:
        """Refuse connections and cut those that stand, until `up`."""
        await self.api.door.shut()

    async def up(self) -> None:
        """Listen again, on the same port."""
        await self.api.door.open()

    def advance(self, seconds: float) -> None:
        """Let time have passed: drafts and typing fade, old queries die, rates recover. Open polls are not shortened."""
        self.clock.advance(seconds)
        self.bell.ring()

    # --- updates ---

    def hold_updates(self) -> None:
        """What happens from now on is not told to the bot before `release_updates`."""
        self.world.updates.hold()

    def release_updates(self, order: Sequence[int] | None = None, *, renumber: bool = True) -> list[Update]:
        """Tell what was held, in this order (positions, 0 first). `renumber=False` keeps the ids, so that they are out of order too."""
        updates = self.world.updates.release(order, renumber=renumber)
        self.bell.ring()
        return updates

    def repeat_update(self, update: Update) -> Update:
        """Tell the same event once more, under a new update id."""
        copy = self.world.updates.repeat(update)
        self.bell.ring()
        return copy

    def redeliver(self, *updates: Update) -> None:
        """Offer updates again that the bot has confirmed already; none named: the last one."""
        confirmed = self.world.updates.confirmed
        assert updates or confirmed, "nothing was confirmed"
        self.world.updates.redeliver(updates or confirmed[-1:])
        self.bell.ring()

    @property
    def unconfirmed(self) -> Sequence[Update]:
        """Updates that the bot has not confirmed."""
        return self.world.updates.pending

    # --- what there is to see ---

    @property
    def log(self) -> Log:
        """Every request."""
        return self.api.log

    @property
    def polled(self) -> bool:
        """Whether a getUpdates waits now."""
        return self.api.polled

    def shown(self, chat: Chat, thread: int | None = None) -> Screen:
        """What a person sees in a chat now; with `thread`, in one topic of it."""
        return screen(self.world, chat, thread)

    def message(self, chat: Chat, shown: Shown | int) -> Message:
        """The message behind what is shown, or of this number, to press or to answer."""
        return chat.messages[shown if isinstance(shown, int) else shown.id]

    async def until(self, condition: Callable[[], bool], within: float = WITHIN_SECONDS) -> None:
        """Wait until something holds.

        Raises:
            AssertionError: it did not within so many seconds.
        """
        await self.bell.until(condition, within, lambda: f"{len(self.log)} requests, the last {self.log.routes()[-5:]}")

    async def until_shown(
        self, chat: Chat, condition: Callable[[Screen], bool], within: float = WITHIN_SECONDS
    ) -> Screen:
        """Wait until a chat looks like this, and say how it looks then."""
        await self.bell.until(lambda: condition(self.shown(chat)), within, lambda: str(self.shown(chat)))
        return self.shown(chat)

    async def answer_to(self, message: Message, within: float = WITHIN_SECONDS) -> Shown:
        """Wait for the first message of the bot that is newer than this one, in the same chat."""
        seen = await self.until_shown(message.chat, lambda now: any(one.id > message.id for one in now.answers), within)
        return next(one for one in seen.answers if one.id > message.id)
