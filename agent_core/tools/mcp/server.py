"""One server, and the one task that owns its connection: begins it when somebody needs it, watches it, and ends it.

Theory. What the `mcp` package opens has to be closed by the task that opened it, so nobody else opens or closes anything here: callers say that they
need the server (`call`), wait until it is there, and send by its session, which any task may. A call that gets no answer in time is told as such, and the
server is looked at; if it does not answer that either, it is ended, and the next call begins it anew. A call that only reads is cancelled then; of one
that may have done something the answer is still waited for a while, beside everything else, so that it is known in the end.

Laws (tests/mcp/test_faults.py): whatever a server does, each call ends within its limits, with a result or with words that say why; a call that
was sent is not sent again unless its class allows it.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, cast

import structlog

from agent_core.jsonvalue import Json
from agent_core.patience import Limit
from agent_core.ports import Clock
from agent_core.text.shown import harmless
from agent_core.text.wellformed import label, storable
from agent_core.tools.asking import MOST_SECONDS, AnswerAction, ToolAnswer
from agent_core.tools.mcp.calling import CallTrouble, Lost, NotReached, ServerRefused, Silent, Unreadable
from agent_core.tools.mcp.lifeline import Lifeline
from agent_core.tools.mcp.link import McpLink
from agent_core.tools.mcp.listed import MOST_TOOLS, Listing, read_listing
from agent_core.tools.mcp.resources import resource_list, resource_parts, with_resources
from agent_core.tools.mcp.terms import CONNECT, ServerTerms

if TYPE_CHECKING:
    from agent_core.tools.mcp.session import Ask, Connected

log = structlog.get_logger("mcp")

LOOK_SECONDS = 5.0
"""A server that did not answer a call in time must answer a plain question in this time, or it is ended."""
RELIST_SECONDS = 1.0
"""A server whose tools change is asked for them this often at most."""
WORDS_CHARS = 1_000
Progress = Callable[[str], None]
LATE_SECONDS = 300.0
"""So long after its time the answer to a call that may have done something is still taken; then the call is cancelled."""
Late = Callable[[Mapping[str, Json]], Awaitable[None]]
"""Is told what came after all."""


class ServerState(StrEnum):
    """How a server stands."""

    RESTING = "resting"
    """Not running; the next call begins it."""
    STARTING = "starting"
    READY = "ready"
    DOWN = "down"
    """It could not be reached; tried again by the next call after a pause."""


class McpServer:
    """One server."""

    def __init__(
        self,
        terms: ServerTerms,
        lifeline: Lifeline,
        clock: Clock,
        changed: Callable[[McpServer], None],
        listing: Listing,
    ) -> None:
        """`changed` is told when its tools are others; `listing` is what they were last time."""
        self.terms = terms
        self.listing = listing
        self.state = ServerState.RESTING
        self.why = ""
        """Why it is down, or what ended its last connection; in words for operators."""
        self.about = ""
        """How it calls itself."""
        self.begun = 0
        """How often it was begun."""
        self.calls = 0
        self.last_lines: tuple[str, ...] = ()
        self._lifeline = lifeline
        self._clock = clock
        self._changed = changed
        self._wanted = asyncio.Event()
        self._left = False
        """It is begun no more."""
        self._look = asyncio.Event()
        """Something is to be looked at: that it answers, or its tools."""
        self._doubted = self._relist = False
        self._late: set[asyncio.Task[None]] = set()
        """Calls whose answers came in no time, and may come yet."""
        self._askers: list[Ask] = []
        """What answers the questions of each call that runs."""
        self._line: list[asyncio.Future[Connected]] = []
        """Who waits for the connection."""
        self._connected: Connected | None = None
        self._link: McpLink | None = None
        self._failures = 0
        self._again_at = 0.0

    @property
    def lines(self) -> tuple[str, ...]:
        """What the program wrote to its standard error last, now or before it ended."""
        return tuple(self._link.last_lines) if self._link is not None and self._link.last_lines else self.last_lines

    # ------------------------------------------------------------------ for callers

    def want(self) -> None:
        """Begin it if it does not run."""
        self._wanted.set()

    async def ready(self) -> Connected:
        """The connection, once there is one. Raises `NotReached`."""
        if self._connected is not None and not self._connected.link.over.is_set():
            return self._connected
        if self.state is ServerState.DOWN and self._clock.monotonic() < self._again_at:
            raise NotReached(f"cannot be used now: {self.why}")
        waiting: asyncio.Future[Connected] = asyncio.get_running_loop().create_future()
        self._line.append(waiting)
        self.want()
        try:
            async with asyncio.timeout(self.terms.start_seconds + LOOK_SECONDS):
                return await waiting
        except TimeoutError:
            raise NotReached(f"was not ready within {self.terms.start_seconds:g} s") from None
        finally:
            with suppress(ValueError):
                self._line.remove(waiting)

    async def call(
        self, tool: str, arguments: Mapping[str, Json], progress: Progress, ask: Ask, late: Late | None = None
    ) -> Mapping[str, Json]:
        """What the tool gives; `ask` answers what it asks the person, and the time for that does not count; `late` is told what comes when the time
        is over. Raises a `CallTrouble`."""
        connected = await self.ready()
        self.calls += 1
        silence = self.terms.silence_seconds
        loop = asyncio.get_running_loop()
        request: asyncio.Task[Mapping[str, Json]] | None = None
        whole, heard_at = asyncio.timeout(self.terms.limit_seconds), connected.link.came
        try:
            async with whole, Limit(silence) as limit:
                open_questions = 0

                def live() -> None:
                    """It is not silent; nor is it as long as a person is asked something."""
                    limit.move(silence + (MOST_SECONDS if open_questions else 0))

                def heard(words: str) -> None:
                    nonlocal heard_at
                    heard_at = connected.link.came
                    live()
                    progress(words)

                async def asked(words: str, schema: Json, address: str) -> ToolAnswer:
                    nonlocal open_questions
                    if asked not in self._askers or whole.expired():
                        return ToolAnswer(AnswerAction.CANCEL, why="the time of the call is over")
                    began = loop.time()
                    open_questions += 1
                    live()
                    whole.reschedule((whole.when() or began) + MOST_SECONDS)
                    try:
                        return await ask(words, schema, address)
                    finally:
                        open_questions -= 1
                        if asked in self._askers and not whole.expired():
                            live()
                            whole.reschedule((whole.when() or began) - MOST_SECONDS + loop.time() - began)

                self._askers.append(asked)
                try:
                    request = loop.create_task(self._asked_for(connected, tool, arguments, heard, asked))
                    return await asyncio.shield(request)
                finally:
                    self._askers.remove(asked)
        except TimeoutError:
            self._doubted = True
            self._look.set()
            if request is not None and late is not None:
                self._wait_on(request, late)
            elif request is not None:
                request.cancel()
            came = connected.link.came - heard_at + connected.link.part
            without = "a sign of progress" if came else "a sign of life"
            why = f"{self.terms.limit_seconds:g} s in all" if whole.expired() else f"{silence:g} s without {without}"
            more = f"; {came:,} bytes came meanwhile, too slowly, and no whole answer" if came else ""
            raise Silent(f"gave no result within its time ({why}{more})") from None
        except asyncio.CancelledError:
            if request is not None:
                request.cancel()
            raise

    def _wait_on(self, request: asyncio.Task[Mapping[str, Json]], late: Late) -> None:
        """Hear what becomes of a call whose time is over."""

        async def waited() -> None:
            try:
                with suppress(TimeoutError, CallTrouble):
                    async with asyncio.timeout(LATE_SECONDS):
                        found = await request
                    log.info("mcp.late", server=self.terms.name)
                    await late(found)
            finally:
                request.cancel()

        task = asyncio.get_running_loop().create_task(waited(), name=f"mcp {self.terms.name}: late")
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _asked_for(
        self, connected: Connected, tool: str, arguments: Mapping[str, Json], heard: Progress, ask: Ask
    ) -> Mapping[str, Json]:
        """A tool of the server, or of ours about what it has to read."""
        match next((one.resources for one in self.listing.tools if one.name == tool), ""):
            case "list":
                return resource_list(await connected.resources())
            case "read":
                return resource_parts(await connected.read(str(arguments.get("uri") or "")))
            case _:
                return await connected.call(tool, arguments, heard, ask)

    async def _ask(self, words: str, schema: Json, address: str) -> ToolAnswer:
        """The server asks something and does not say for which call: it is asked where only one can be meant."""
        if len(self._askers) != 1:
            log.warning("mcp.not_asked", server=self.terms.name, calls=len(self._askers))
            return ToolAnswer(AnswerAction.CANCEL, why="it is not known which of several calls it is about")
        return await self._askers[0](words, schema, address)

    # ------------------------------------------------------------------ the owner

    def leave(self) -> None:
        """Begin it no more. Whoever ends `run` says so before: a connection that breaks in that moment swallows that its task is cancelled."""
        self._left = True
        self._wanted.set()

    async def run(self) -> None:
        """Look after it until cancelled, or left."""
        try:
            while not self._left:
                await self._wanted.wait()
                self._wanted.clear()
                if not self._left:
                    await self._begin()
        finally:
            self._connected = None
            for task in self._late:
                task.cancel()
            self._tell_line(NotReached("is being ended with the gateway"))

    async def _begin(self) -> None:
        """One connection, from its beginning to its end."""
        self.state = ServerState.STARTING
        self.begun += 1
        link = self._link = McpLink()
        reached = False
        try:
            session = await asyncio.to_thread(importlib.import_module, "agent_core.tools.mcp.session")
            way = session.connection(self.terms, link, self._lifeline, self._notified, ask=self._ask)
            async with way as made:
                connected = cast("Connected", made)
                async with asyncio.timeout(self.terms.start_seconds):
                    await self._list(connected)
                reached = True
                self._failures = 0
                self._connected, self.state, self.why = connected, ServerState.READY, ""
                self.about = connected.about
                log.info(
                    "mcp.ready", server=self.terms.name, about=self.about, tools=len(self.listing.tools), pid=link.pid
                )
                self._tell_line(connected)
                await self._watch(connected, link)
        except Exception as error:  # noqa: BLE001 - the border to a program of somebody else's: whatever it does is told
            link.closing(link.refused or link.failed or in_words(error, self._program))
        except BaseException:
            link.closing("it is ended with the gateway")
            raise
        finally:
            self._connected, self._link = None, None
            self.last_lines = tuple(link.last_lines)
        self.why = link.why
        if reached:
            self.state = ServerState.RESTING
            log.warning("mcp.ended", server=self.terms.name, why=self.why)
            return
        self._failures += 1
        pause = CONNECT.seconds(self._failures)
        self._again_at = self._clock.monotonic() + pause
        self.state = ServerState.DOWN
        log.error(
            "mcp.not_reached", server=self.terms.name, why=self.why, pause_seconds=round(pause, 1), last=self._last()
        )
        self._tell_line(NotReached(f"cannot be used now: {self.why}"))

    @property
    def _program(self) -> str:
        return self.terms.command[0] if self.terms.command else ""

    def _last(self) -> str:
        return self.last_lines[-1] if self.last_lines else ""

    def _tell_line(self, found: Connected | NotReached) -> None:
        line, self._line = self._line, []
        self._wanted.clear()  # whoever wanted it knows
        for waiting in line:
            if waiting.done():
                continue
            if isinstance(found, NotReached):
                waiting.set_exception(found)
            else:
                waiting.set_result(found)

    async def _watch(self, connected: Connected, link: McpLink) -> None:
        """Until it is over: look whether it answers, and what its tools are, when there is a reason to."""
        over = asyncio.ensure_future(link.over.wait())
        listening = asyncio.ensure_future(self._listen(connected))
        look: asyncio.Future[Literal[True]] | None = None
        try:
            while not link.over.is_set():
                look = asyncio.ensure_future(self._look.wait())
                await asyncio.wait([over, look], return_when=asyncio.FIRST_COMPLETED)
                if link.over.is_set():
                    return
                self._look.clear()
                await self._looked(connected, link)
        finally:
            over.cancel()
            listening.cancel()
            if look is not None:
                look.cancel()

    async def _listen(self, connected: Connected) -> None:
        """Hear of changes from a server that tells them to subscribers alone; what was missed between two subscriptions is looked for."""
        lost = 0
        with suppress(Lost, ServerRefused, Unreadable):
            while await connected.listen(self._notified):
                lost += 1
                await asyncio.sleep(CONNECT.seconds(lost))
                self._notified()

    async def _looked(self, connected: Connected, link: McpLink) -> None:
        doubted, relist = self._doubted, self._relist
        self._doubted = self._relist = False
        try:
            async with Limit(LOOK_SECONDS):
                await self._list(connected)
        except TimeoutError:
            link.broke(f"it hangs: it answered nothing within {LOOK_SECONDS:g} s")
        except (Lost, ServerRefused, Unreadable) as error:
            if doubted or isinstance(error, Lost):
                link.broke(f"its tools cannot be listed: {error}")
        if relist:
            await asyncio.sleep(RELIST_SECONDS)

    def _notified(self) -> None:
        """The server says that its tools are others now."""
        self._relist = True
        self._look.set()

    async def _list(self, connected: Connected) -> None:
        found = read_listing(await connected.tools(MOST_TOOLS + 1), connected.link.left_out)
        if connected.has_resources:
            found = with_resources(found, self.terms.name)
        if found == self.listing:
            return
        before = {tool.name for tool in self.listing.tools}
        names = {tool.name for tool in found.tools}
        log.info(
            "mcp.tools", server=self.terms.name, tools=len(names), added=sorted(names - before)[:20],
            gone=sorted(before - names)[:20], not_offered=found.left_out[:20],
        )  # fmt: skip
        self.listing = found
        self._changed(self)


def in_words(error: BaseException, program: str) -> str:
    """Why a server could not be reached or was lost, in a few words; of a group the first that says something."""
    if isinstance(error, BaseExceptionGroup):
        leaves = [*_leaves(cast("BaseExceptionGroup[BaseException]", error))]
        error = next((one for one in leaves if str(one).strip()), leaves[0])
    if isinstance(error, FileNotFoundError):
        return f"there is no program {program}, or no folder for it to run in"
    if isinstance(error, PermissionError):
        return f"{program} may not be run"
    if isinstance(error, TimeoutError):
        return "it did not say what it can do in time"
    words = label(harmless(storable(str(error))), WORDS_CHARS)
    return words or type(error).__name__


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """What is in a group, and in those within."""
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[BaseException]", one))
        else:
            yield one
