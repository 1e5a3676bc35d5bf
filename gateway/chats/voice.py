"""What turns and queues say in chats: implements `gateway.delivery.chatside.ChatSide` with the outbox."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract.base import FromApi, FromChat, Inbound, SessionKey
from adapters.contract.chat import ChatAddress, ChatOrigin, Content, ContentKind
from adapters.text.styled import Styled
from agent_core.failures.notices import NotStarted
from agent_core.store.keeping.forgetting import FORGOT
from agent_core.store.sessions.asides import Fresh
from agent_core.store.turns.rows import OpenTurn
from agent_core.text.tongue import known_sentence, sentence, speak, speaking
from agent_core.tools.base import Purse
from gateway.delivery.chatside import Dropping
from gateway.delivery.outbox import Outbox
from gateway.delivery.owners import Owner, queue_origin
from gateway.delivery.turnoutlet import TurnOutlet
from gateway.limits.budgets import BudgetWarning
from gateway.queues.languages import Languages

if TYPE_CHECKING:
    from gateway.chats.attachments import Attachments
    from gateway.chats.enclosed import EnclosedFiles

READING_SECONDS = 5.0
READING = sentence("⏳ I am looking through what you sent, or listening to it …")
PUT_ASIDE = sentence(
    "⚠️ Your message was set aside: working on it ended the whole gateway more than once, so it is not tried again. Say it in another way, and tell whoever runs the gateway."
)


def has_parts(inbound: FromApi) -> bool:
    """Whether there may be files in its messages, or in those that it brings along."""
    for message in inbound.input:
        if isinstance(message.content, list):
            return True
    for message in inbound.own_history or ():  # noqa: SIM110 - each turn comes here
        if isinstance(message.get("content"), list):
            return True
    return False


class ChatVoice:
    """Says nothing for messages that are no chat's."""

    def __init__(
        self, outbox: Outbox, files: Callable[[], tuple[Attachments, EnclosedFiles]], languages: Languages
    ) -> None:
        """`files`: made once, when somebody sends the first one."""
        self._languages = languages
        self._outbox = outbox
        self._files = cache(files)

    def outlet(self, chat: ChatOrigin, turn: str, session: str, epoch: int) -> TurnOutlet | None:
        return self._outbox.outlet(chat, turn, session, epoch)

    async def load(self, turns: Sequence[OpenTurn], begun: Sequence[int]) -> None:
        await self._outbox.parts.load(turns, begun)

    async def load_words(self, owner: Owner, waiting: Sequence[int]) -> None:
        await self._outbox.parts.load_words(owner, waiting)

    async def attached(
        self, inbound: Inbound, inbox_id: int, workspace: Callable[[], Path], owner: Owner, purse: Purse | None
    ) -> Inbound:
        if isinstance(inbound, FromApi):
            if has_parts(inbound):
                with speaking(self._languages.at_once(inbound)):
                    return await self._files()[1].told(inbound, workspace(), purse)
            return inbound
        if not inbound.chat.attachments:
            return inbound
        address = inbound.chat.address

        async def tell(words: str) -> None:
            mark = hashlib.blake2b(words.encode(), digest_size=4).hexdigest()
            origin = f"attached:{inbound.platform_key}:{mark}"
            said = Content(ContentKind.ASIDE, Styled(words), reply_to=inbound.chat.reply_to, silent=True)
            await self._outbox.words.say(address, owner, origin, said)

        port = self._outbox.port_of(address) if self._outbox.accounts.knows(address) else None
        with speaking(self._languages.at_once(inbound)):
            async with self._waiting(address, owner, inbox_id):
                return await self._files()[0].fetched(inbound, workspace(), port, tell, purse)

    @asynccontextmanager
    async def _waiting(self, address: ChatAddress, owner: Owner, inbox_id: int) -> AsyncGenerator[None]:
        """Who waits for long until what they sent is read reads so, until their turn begins."""
        origin = queue_origin(inbox_id)

        async def told() -> None:
            await asyncio.sleep(READING_SECONDS)
            await self._outbox.words.say(
                address, owner, origin, Content(ContentKind.ASIDE, Styled(speak(READING)), silent=True)
            )

        telling = asyncio.create_task(told(), name="what is being read")
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.wait([telling])

    def begun(self, inbound: Inbound, inbox_id: int) -> None:
        if isinstance(inbound, FromChat):
            self._outbox.words.take_back(inbound.chat.address, queue_origin(inbox_id))

    async def not_run(
        self, inbound: Inbound, inbox_id: int, owner: Owner, why: NotStarted, drop: Dropping, detail: str = ""
    ) -> None:
        if not isinstance(inbound, FromChat):
            await drop(())
            return
        kind = FORGOT if why is NotStarted.FORGOTTEN else "inbox"
        address, words = inbound.chat.address, self._outbox.words
        with speaking(await self._languages.as_known(inbound, owner.session)):
            said = speak(PUT_ASIDE) if why is NotStarted.QUARANTINED else f"⚠️ {why.said(detail=detail)}"
            content = Content(ContentKind.ASIDE, Styled(said), reply_to=inbound.chat.reply_to)
            await words.say_with(address, owner, f"{kind}:{inbox_id}", [content], drop)
        words.take_back(address, queue_origin(inbox_id))

    async def tell_anew(self, inbound: Inbound | None, inbox_id: int, fresh: Fresh, words: str) -> None:
        chat = inbound.chat if isinstance(inbound, FromChat) else None
        at = SessionKey.of(fresh.key)
        address = chat.address if chat is not None else ChatAddress(at.platform, at.account, at.chat, at.thread)
        if not self._outbox.accounts.knows(address):
            return  # who asked there sees it where they asked
        self._outbox.words.take_back(address, queue_origin(inbox_id))
        with speaking(await self._languages.as_known(inbound, fresh.session) if inbound is not None else ""):
            said = Styled(known_sentence(words))
            content = Content(ContentKind.ASIDE, said, reply_to=chat.reply_to if chat is not None else "")
            await self._outbox.words.say(address, Owner(fresh.session, fresh.epoch), f"inbox:{inbox_id}", content)

    def tell_unstored(self, chat: ChatOrigin, words: str) -> None:
        """See `gateway.chats.arrival`."""
        with speaking(self._languages.in_chat(chat)):
            said = Styled(known_sentence(words))
        self._outbox.unstored.say(chat.address, Content(ContentKind.ASIDE, said, reply_to=chat.reply_to))

    async def warned(self, warning: BudgetWarning) -> None:
        """A budget is about to be used up: whose message brought it there is told."""
        if isinstance(warning.inbound, FromChat):
            address = warning.inbound.chat.address
            with speaking(self._languages.at_once(warning.inbound)):
                content = Content(ContentKind.ASIDE, Styled(warning.said()), silent=True)
                await self._outbox.words.say(address, Owner(warning.session, warning.epoch), warning.origin, content)
