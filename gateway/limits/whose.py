"""Whose memory and workspace a message's tools use, and which tools that leaves. Pure but for `Rooms`, which tidies up.

Theory. Who holds the API's key or has the page open need not be one person. A message is somebody's if it says whose (a chat's person, ``user``
of a request, a browser); else it is its conversation's, if it names one; else it is nobody's, and nothing of it outlives its turn.

Laws (tests/gateway/test_whose.py): two messages share a memory only if they name the same person or the same conversation, and a
workspace only if they name the same conversation, or are without one and name the same person. What is nobody's is gone with its turn.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import structlog

from adapters.contract.base import FromApi, FromChat, Inbound, SessionKey, once
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core import storedjson
from agent_core.driver.modelcalls import OfferedTools, client_tools, own_tools
from agent_core.remembered import EVERYBODY, MemoryScopes
from agent_core.store.store import StorageUnavailable, Store
from agent_core.text.patterns import late
from agent_core.tools.builtin.notes import FOR_EVERYBODY, OF_MEMORY
from agent_core.tools.builtin.sendfile import SEND_FILE
from agent_core.tools.files.trees import remove_tree
from agent_core.tools.offer import ToolsFrom
from agent_core.tools.registry import ToolRegistry
from gateway.limits.standing import AS_CONFIGURED, TurnStanding
from gateway.schedule.toolspecs import NEEDS_PLACE

log = structlog.get_logger("gateway")

NO_NAMES = frozenset[str]()
UNNAMED = frozenset({"api", "web"})
"""Scopes that stand for whoever comes in by that door. What they use is counted together; they share nothing else."""
_PLAIN_NAME, _NOT_PLAIN = late("[A-Za-z0-9_-]{1,100}"), late("[^A-Za-z0-9_-]+")
FOLDERS_KNOWN = 256
ROOMS = ".nameless"
"""Where the workspaces of those lie who are nobody; `folder_name` never gives such a name."""


def nameless(inbound: Inbound) -> bool:
    """It names neither a person nor a conversation. Told by what is stored with every message, also with older ones."""
    if isinstance(inbound, FromChat) or inbound.own_history is None:
        return False
    scope = inbound.memory_scope
    return not inbound.browser if scope in UNNAMED else scope == _own(inbound)


def _own(inbound: Inbound) -> str:
    return f"session/{inbound.session.text()}"


def memory_of(inbound: Inbound) -> str:
    """The scope of what `remember` keeps: the person's, or the conversation's if nobody knows whose it is."""
    if isinstance(inbound, FromChat) or inbound.memory_scope not in UNNAMED:
        return inbound.memory_scope
    return f"{inbound.memory_scope}/{inbound.browser}" if inbound.browser else _own(inbound)


def author_of(inbound: Inbound) -> str:
    """Who wrote a message, within its account; empty if nobody can say. By this people are found who are to be forgotten."""
    if isinstance(inbound, FromChat):
        return inbound.chat.person.id
    if inbound.task is not None:
        return inbound.task.person
    scope, slash, user = inbound.memory_scope.partition("/")
    return user if slash and scope in UNNAMED else inbound.browser


def shown_in(inbound: Inbound) -> ChatOrigin:
    """Where a message was written: its chat; of the web page, which is none, a name that stands for its conversation."""
    if isinstance(inbound, FromChat):
        return inbound.chat
    address = ChatAddress(inbound.surface, "", inbound.session.chat)
    return ChatOrigin(address, ChatKind.PRIVATE, ChatPerson(author_of(inbound), "the person"))


def asker_of(inbound: Inbound) -> str:
    """The same as ACCOUNT/PERSON; empty if nobody can say."""
    person = author_of(inbound)
    return f"{inbound.account}/{person}" if person else ""


def asker_words(inbound: Inbound) -> str:
    """Who asks, for whoever runs the gateway: name and id, or by what they came."""
    who = asker_of(inbound)
    if isinstance(inbound, FromChat):
        return f"{inbound.chat.person.name} ({who})" if who else inbound.chat.person.name or "nobody"
    return who or (f"the key {inbound.key}" if inbound.key else "somebody without a name")


def memories_of(inbound: Inbound, writers: frozenset[str]) -> MemoryScopes:
    """The memories that a message's tools use. What somebody said in private is not read in a group."""
    chat = ""
    if isinstance(inbound, FromChat) and inbound.chat.kind is ChatKind.GROUP:
        chat = replace(inbound.session, thread="", person="").text()
    everybody = EVERYBODY if writers else ""
    own = _own(inbound) if inbound.session.temporary else memory_of(inbound)  # what it leaves goes with it
    return MemoryScopes(own, chat, everybody, edits=asker_of(inbound) in writers)


def shown(holder: str) -> str:
    """A holder as operators see it: the id of a page's browser is its secret, so a digest stands for it."""
    door, slash, browser = holder.partition("/")
    if door != "web" or not slash:
        return holder
    return f"web/browser-{hashlib.blake2b(browser.encode('utf-8', 'replace'), digest_size=4).hexdigest()}"


def folder_name(text: str) -> str:
    """A folder's name for any text: readable where it can be, and different for different texts."""
    plain = _NOT_PLAIN.sub("-", text).strip("-")[:40] or "session"
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{plain}-{digest}"


def workspace_of(inbound: Inbound, root: Path) -> Path:
    """The folder that a turn's file tools work in.

    A conversation has its own. Stateless requests share one for each person, so that a client which keeps the conversation itself
    finds its files again; a stateless request of nobody has one of its own, for its turn.
    """
    if nameless(inbound):
        return _below(root, ROOMS, _room(inbound.session))
    owner = inbound.memory_scope if inbound.stateless else inbound.session.text()
    if isinstance(inbound, FromApi) and inbound.task is not None:
        owner = inbound.task.parent
    return _below(root, folder_name(owner))


@lru_cache(FOLDERS_KNOWN)
def _below(root: Path, *names: str) -> Path:
    """A turn asks for its folder several times."""
    return root.joinpath(*names)


def _room(session: SessionKey) -> str:
    """The name of its folder: its own, from which its session is found again."""
    return _room_of(session.text(), session.chat)


@lru_cache(FOLDERS_KNOWN)
def _room_of(key: str, chat: str) -> str:
    own = key == once(chat).text() and _PLAIN_NAME.fullmatch(chat)
    return chat if own else folder_name(key)


def conversation_of(inbound: Inbound) -> str:
    """Under which name failures of a message's conversation are remembered; empty: its session's.

    A stateless client brings the whole conversation each time, under no name; who asks and what it begins with tell it again. Of those who are
    nobody many begin alike, and nobody shares with nobody.
    """
    if isinstance(inbound, FromChat) or inbound.own_history is None or nameless(inbound):
        return ""
    said = [m.get("content") for m in inbound.own_history if m.get("role") == "user"]
    said += [message.content for message in inbound.input if message.role == "user"]
    first = hashlib.blake2b(storedjson.dumps(said[:1]), digest_size=12).hexdigest()
    return f"{inbound.memory_scope}#{first}"


def withheld_from(inbound: Inbound, writers: frozenset[str] = NO_NAMES) -> frozenset[str]:
    """The gateway's own tools that a message is not offered: files go where somebody can have them, nobody has a memory, what comes later needs
    a conversation that it can come to, and everybody's memory is written by those alone who may."""
    gone = _withheld(inbound)
    return gone | {FOR_EVERYBODY} if writers and asker_of(inbound) not in writers else gone


def _withheld(inbound: Inbound) -> frozenset[str]:
    files = NO_NAMES if isinstance(inbound, FromChat) or _has_files(inbound) else NO_FILES
    if isinstance(inbound, FromApi) and inbound.task is not None:
        return NO_PLACE
    if not inbound.stateless:
        return files
    return NOBODYS if nameless(inbound) else NO_PLACE


def _has_files(inbound: FromApi) -> bool:
    """Its client can ask for what is sent: the page, and whoever keeps its conversation here under ids of responses."""
    return inbound.session.platform == "web" or inbound.response is not None


def tools_from(inbound: Inbound) -> ToolsFrom:
    """Whose tools the turn of a message may use: a chat's the gateway's, a client's those that it agreed to."""
    if isinstance(inbound, FromChat):
        return ToolsFrom.GATEWAY
    if inbound.tools_from is not None:
        return inbound.tools_from
    return ToolsFrom.CLIENT if inbound.client_tools else ToolsFrom.GATEWAY


NOTHING = OfferedTools()
NO_FILES = frozenset({SEND_FILE})
NO_PLACE = NO_FILES | NEEDS_PLACE
NOBODYS = NO_PLACE | OF_MEMORY


class Offers:
    """Which tools a turn offers. Where the client's and the gateway's have one name, the client's is meant."""

    def __init__(self, tools: ToolRegistry, writers: frozenset[str] = NO_NAMES) -> None:
        """`writers` may write everybody's memory."""
        self._tools = tools
        self._writers = writers
        self._brought = tools.brought
        self._made: dict[tuple[frozenset[str], frozenset[str] | None], OfferedTools] = {}

    def to(self, inbound: Inbound, standing: TurnStanding = AS_CONFIGURED) -> OfferedTools:
        """What the turn of this message offers."""
        source = tools_from(inbound)
        brought = client_tools(inbound.client_tools) if isinstance(inbound, FromApi) and source.clients else NOTHING
        if not source.gateways:
            return brought
        if self._tools.brought is not self._brought:  # other programs' tools are others now
            self._brought = self._tools.brought
            self._made.clear()
        withheld = withheld_from(inbound, self._writers) | standing.withheld(self._tools.names)
        kind = (withheld, standing.skills)
        if kind not in self._made:
            own = own_tools(self._tools.names, self._tools.openai_tools(standing.skills))
            self._made[kind] = own.without(withheld)
        return brought.beside(self._made[kind])


class Rooms:
    """The workspaces of those who are nobody: each goes when its turn is over, at the latest with the next upkeep."""

    def __init__(self, root: Path, store: Store) -> None:
        self._root = root / ROOMS
        self._name = str(self._root)
        self._store = store

    async def left(self, key: str) -> None:
        """A queue has come to its end: remove its room, unless its turn goes on in another process."""
        if not key.startswith("api/"):
            return
        name = _room(SessionKey.of(key))
        if self._there(name):
            await self._tidy([name])

    def _there(self, name: str) -> bool:
        """Asked with each turn, so without making a `Path`."""
        return os.path.isdir(f"{self._name}/{name}")  # noqa: PTH112

    async def sweep(self) -> None:
        """Remove what is left of turns whose process was killed."""
        if self._root.is_dir():
            await self._tidy(await asyncio.to_thread(self._names))

    def _names(self) -> list[str]:
        try:
            return sorted(one.name for one in self._root.iterdir())
        except OSError as error:
            log.warning("workspace.not_removed", folder=ROOMS, error=str(error))
            return []

    async def _tidy(self, names: list[str]) -> None:
        try:
            over = [name for name in names if not await self._open(name)]
        except StorageUnavailable:
            return  # the next upkeep looks again
        for name in over:
            try:
                await asyncio.to_thread(remove_tree, self._root / name)
            except FileNotFoundError:
                pass
            except OSError as error:
                log.warning("workspace.not_removed", folder=name, error=str(error))

    async def _open(self, name: str) -> bool:
        """Its turn is open, here or with another node."""
        return await self._store.sessions.at_work(once(name).text())
