"""Composes a turn's model calls: from the turn's wish and the session's memory to a request, and back to events.

The words and the order are decided by `transcript`, sizes by `compaction`, patience by `agent_core.settings`; this file brings them
together with the client.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace

import orjson

from agent_core.causes import BreakCause
from agent_core.driver.media import MediaKeeper
from agent_core.driver.spending import Spending
from agent_core.failures.complaints import NOTHING_SAID
from agent_core.failures.leftout import Suspect, doubted, suspects, without
from agent_core.failures.remedies import DONE_SECONDS
from agent_core.jsonvalue import Json
from agent_core.judging.compaction import (
    ELIDE_RESULTS_OVER_CHARS,
    Group,
    SessionMemory,
    digest,
    estimate_tokens,
    groups_of,
    plan,
    summary_request,
    summary_words,
)
from agent_core.machine.turn import Turn
from agent_core.messages import Message, ToldConversation
from agent_core.model.client import ModelClient, ModelRequest, Sink
from agent_core.model.made import FILES
from agent_core.patience import Limit
from agent_core.ports import Clock
from agent_core.records import NONE, dataclass
from agent_core.rules.promising.done import done_question, read_done
from agent_core.rules.replies import Finish, finish_of
from agent_core.settings import ASSUMED_WINDOW_TOKENS, CONNECT_SECONDS, Route, patience
from agent_core.signals import CANCELLED, ModelCalled, Tell, nobody
from agent_core.text.shown import something_to_see
from agent_core.turn.effects import AskDone, CallModel
from agent_core.turn.events import (
    CallBroke,
    Compacted,
    DoneSaid,
    Event,
    ReplyFinished,
    SpendRefused,
    TextArrived,
    TextTakenBack,
    ToolCallCut,
    ToolCallNamed,
)
from agent_core.turn.rounds import RoundsOver
from agent_core.turn.standing import Silence
from agent_core.turn.state import AssistantItem, CallItem
from agent_core.turn.transcript import alternating, call_ids, repaired, request_messages

REFUSALS = frozenset({BreakCause.BAD_REQUEST, BreakCause.REFUSED, BreakCause.TOO_LARGE, BreakCause.CONTEXT_OVERFLOW})
"""What a provider says of what it was sent."""
DOUBTFUL = frozenset(
    {
        BreakCause.NO_CONTENT,
        BreakCause.STALLED,
        BreakCause.DROPPED,
        BreakCause.ENDED_EARLY,
        BreakCause.GARBAGE,
        BreakCause.BAD_PIECE,
        BreakCause.UNREADABLE_CALL,
        BreakCause.ERROR_IN_STREAM,
        BreakCause.SERVER_ERROR,
    }
)
"""What also something in the conversation may lead to, without a word of it."""
OVERLOADED = frozenset({503, 504, 529})
"""Statuses that say that it is the server."""
SUMMARY_SECONDS = 60.0
SLOW_ARGUMENTS_FACTOR = 4.0


@dataclass(frozen=True)
class OfferedTools:
    """The tools that a turn offers to the model, and in whose words."""

    names: tuple[str, ...] = ()
    schemas: tuple[Mapping[str, Json], ...] = ()

    def without(self, names: frozenset[str]) -> OfferedTools:
        """The same offer without these tools."""
        if not names & set(self.names):
            return self
        kept = [(n, schema) for n, schema in zip(self.names, self.schemas, strict=True) if n not in names]
        return OfferedTools(tuple(n for n, _ in kept), tuple(schema for _, schema in kept))

    def beside(self, other: OfferedTools) -> OfferedTools:
        """Both; of two tools with one name this offer's."""
        if not self.names:
            return other
        more = other.without(frozenset(self.names))
        return OfferedTools((*self.names, *more.names), (*self.schemas, *more.schemas))

    @functools.cached_property
    def encoded(self) -> bytes:
        """The schemas as a JSON array, empty if there are none."""
        return orjson.dumps(self.schemas) if self.schemas else b""

    @functools.cached_property
    def known(self) -> frozenset[str]:
        """The names."""
        return frozenset(self.names)


class Heard:
    """What came of one call's content, on its way to `sink`."""

    __slots__ = ("_clock", "_sink", "content_at", "silent")

    def __init__(self, clock: Clock, sink: Sink) -> None:
        self._clock = clock
        self._sink = sink
        self.content_at = 0
        """When the first of it came, ms."""
        self.silent = True
        """Nothing of it was to be seen, and none of it a call."""

    def take(self, events: Sequence[Event]) -> None:
        """It has come."""
        self.content_at = self.content_at or self._clock.now_ms()
        self.silent = self.silent and not any(map(_says, events))
        self._sink(events)


@dataclass(slots=True)
class ModelCaller:
    """Makes the model calls of one turn."""

    client: ModelClient
    clock: Clock
    system_prompt: str
    memory: SessionMemory
    offer: OfferedTools
    connect_seconds: float = CONNECT_SECONDS
    silence_seconds: float = 0
    """How long the call that was made last may be silent at most, connecting included."""
    silence: Silence | None = None
    """The same, before its first content and between two pieces; None before the first."""
    spending: Spending | None = None
    """What pays for the calls; None if nobody counts."""
    turn: str = ""
    """Whose calls they are, for signals."""
    session: str = ""
    tell: Tell = nobody
    media: MediaKeeper | None = None
    """Keeps the pictures and the sound of replies; None: nobody does."""
    _summaries: int = 0
    _questions: int = 0
    _rounds: RoundsOver | None = None
    """Of a turn that has more than one: what is over of it, as it is sent."""
    _ids_before: frozenset[str] | None = None
    """Of the calls before the turn."""

    def offered(self, turn: Turn) -> tuple[str, ...]:
        """The tools that the turn may use."""
        return tuple([name for name in self.offer.names if name not in turn.withheld])

    async def call(self, turn: Turn, effect: CallModel, sink: Sink) -> ReplyFinished | CallBroke | SpendRefused:
        """One model call, as the turn wants it, if there is room for it in the budgets. Content goes to `sink`."""
        request, tokens = self._request(turn, effect)
        window = self.client.endpoint(effect.route.endpoint).context_tokens
        if window and tokens > window * 1.05 and turn.compacted is None:
            words = f"about {tokens} of {window} tokens"
            broke = CallBroke(at=self.clock.now_ms(), cause=BreakCause.CONTEXT_OVERFLOW, detail=words)
            return self._accused(broke, turn, request.messages)
        heard = Heard(self.clock, sink)
        ending = await self._paid(request, f"{effect.number}", tokens, heard)
        if isinstance(ending, ReplyFinished) and ending.made:
            ending = replace(ending, made=await self._kept(dict(ending.made), effect.number))
        return self._accused(ending, turn, request.messages, silent=heard.silent)

    def _request(self, turn: Turn, effect: CallModel) -> tuple[ModelRequest, int]:
        """What is asked, and about how many tokens that is."""
        assert turn.opened is not None
        endpoint = self.client.endpoint(effect.route.endpoint)
        messages = self._messages(turn, effect)
        if effect.left_out:
            messages = without(messages, effect.left_out, self._answered(turn))
        offer = self.offer.without(turn.withheld)
        tools = offer.encoded if effect.offer_tools else b""
        tokens = estimate_tokens(messages, len(tools))
        slow = SLOW_ARGUMENTS_FACTOR if endpoint.slow_arguments else 1.0
        parameters = dict(turn.opened.request)
        if not tools:
            for key in ("tool_choice", "parallel_tool_calls"):
                parameters.pop(key, None)
        elif turn.step > 1 and parameters.get("tool_choice") != "auto":
            # It has had the call that it wanted; asked for one at each step, no turn would end
            parameters.pop("tool_choice", None)
        self.silence = first_content, stall = turn.may_be_silent(tokens, slow)
        self.silence_seconds = self.connect_seconds + max(first_content, stall)
        request = ModelRequest(
            route=effect.route,
            number=effect.number,
            messages=messages,
            tools=tools,
            parameters=parameters,
            first_content_seconds=first_content,
            stall_seconds=stall,
            connect_seconds=self.connect_seconds,
            taken_ids=self._taken_ids(turn),
            parse_text_calls=bool(self.offer.names),
            offered=offer.known if tools else NONE,
        )
        return request, tokens

    def _taken_ids(self, turn: Turn) -> frozenset[str]:
        """What calls are known by in all that the model is told: providers refuse two with one id."""
        if self._ids_before is None:
            assert turn.opened is not None
            own = turn.opened.own_history
            before = self.memory.call_ids if own is None else (call for one in own for call in call_ids(one))
            self._ids_before = frozenset(before)
        return self._ids_before.union(_call_ids(turn))

    async def _kept(self, made: dict[str, Json], number: int) -> dict[str, Json]:
        if self.media is None:
            return {name: value for name, value in made.items() if name != FILES}
        return await self.media.keep(made, number)

    def _accused(
        self,
        ending: ReplyFinished | CallBroke | SpendRefused,
        turn: Turn,
        messages: Sequence[Message],
        *,
        silent: bool = True,
    ) -> ReplyFinished | CallBroke | SpendRefused:
        """A refusal, or a failure before any content, with what of the conversation may be meant by it."""
        match ending:
            case CallBroke() if ending.cause in REFUSALS:
                by_size = ending.cause in (BreakCause.TOO_LARGE, BreakCause.CONTEXT_OVERFLOW)
                found = suspects(messages, ending.complaint, self._answered(turn), by_size=by_size)
                return replace(ending, suspects=found)
            case ReplyFinished() if finish_of(ending.reason) is Finish.FILTER:
                return replace(ending, suspects=suspects(messages, NOTHING_SAID, self._answered(turn)))
            case CallBroke() if silent and _doubtful(ending):
                return replace(ending, suspects=self._doubted(turn, messages, results=ending.status == 500))
            case ReplyFinished() if silent:
                return replace(ending, suspects=self._doubted(turn, messages, results=False))
            case _:
                return ending

    def _doubted(self, turn: Turn, messages: Sequence[Message], *, results: bool) -> tuple[Suspect, ...]:
        return doubted(messages, self._answered(turn), results=results)

    def _answered(self, turn: Turn) -> int:
        """Where the message that is answered begins in what is sent: behind the system's words and the history."""
        assert turn.opened is not None
        asked = [message.to_message() for message in turn.opened.input]
        results = sum(message.get("role") == "tool" for message in asked)
        return max(0, len(alternating(repaired([*self._past(turn)[0], *asked]))) - (results or 1))

    def _paid(
        self, request: ModelRequest, name: str, prompt_tokens: int, heard: Heard
    ) -> Awaitable[ReplyFinished | CallBroke | SpendRefused]:
        """Every call of a turn goes through here."""
        if self.spending is None:
            return self._told(request, name, heard, heard.take)
        endpoint = self.client.endpoint(request.route.endpoint)
        body = {**endpoint.extra_body, "": endpoint.max_output_tokens, **request.parameters}
        limits = [body.get(key) for key in ("max_completion_tokens", "max_tokens", "")]
        most = next((limit for limit in limits if isinstance(limit, int) and limit > 0), 0)

        def listen(counted: Sink) -> Awaitable[ReplyFinished | CallBroke]:
            return self._told(request, name, heard, counted)

        return self.spending.ask(name, request.route.model, prompt_tokens, most, listen, heard.take)

    async def _told(self, request: ModelRequest, name: str, heard: Heard, sink: Sink) -> ReplyFinished | CallBroke:
        """Make the call, and tell of it, however it ends."""
        began_at = self.clock.now_ms()
        told: ReplyFinished | CallBroke | None = None
        try:
            told = await self.client.ask(request, sink)
            return told
        finally:
            self._tell(request, name, began_at, heard.content_at, told)

    def _tell(
        self, request: ModelRequest, name: str, began_at: int, content_at: int, told: ReplyFinished | CallBroke | None
    ) -> None:
        broke = told if isinstance(told, CallBroke) else None
        called = ModelCalled(
            turn=self.turn, session=self.session, name=name, endpoint=request.route.endpoint, model=request.route.model,
            began_at=began_at, ended_at=self.clock.now_ms(), content_at=content_at,
            reason=told.reason if isinstance(told, ReplyFinished) else "",
            error=CANCELLED if told is None else broke.cause.value if broke is not None else "",
            status=broke.status if broke is not None else 0,
            input_tokens=told.input_tokens if told is not None else 0,
            output_tokens=told.output_tokens if told is not None else 0,
            cached_tokens=told.cached_tokens if told is not None else 0,
        )  # fmt: skip
        self.tell(called)

    def _messages(self, turn: Turn, effect: CallModel) -> Sequence[Message]:
        """The conversation of one call."""
        assert turn.opened is not None
        own = turn.opened.own_history is not None
        begun = [] if own else self._begun()
        if turn.compacted is not None or begun is None or not (own or _asked_by_person(turn)):
            history, elide_over = self._past(turn)
            return request_messages("", history, turn, effect, elide_results_over=elide_over)
        if turn.step > 2:  # else none of its rounds is over
            self._rounds = self._rounds or RoundsOver()
            rounds, many = self._rounds.told(turn, lambda: self._past(turn)[0] if own else ())
            if many:
                return ToldConversation([*begun, rounds], self._rounds.behind(turn, effect))
        return ToldConversation(begun, request_messages("", self._past(turn)[0] if own else (), turn, effect))

    def _begun(self) -> list[bytes] | None:
        """What stands before a turn of the session as it is sent; None if that has to be put together anew."""
        sent = self.memory.sent
        if sent is None:
            return None
        system = orjson.dumps(self._system())[1:-1]
        return [part for part in (system, sent) if part]

    def _system(self) -> list[Message]:
        """What the gateway puts before everything, with the summary of what is not told any more."""
        system: list[Message] = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        if self.memory.summary:
            system = _with_summary(system, self.memory.summary)
        return system

    def _past(self, turn: Turn) -> tuple[list[Message], int]:
        """What stands before the turn, with what a compaction left of it; over how many characters results are shortened."""
        system, groups = self._history(turn)
        elide_over = 0
        if turn.compacted is not None:
            kept = turn.compacted.kept_turns
            groups = groups[len(groups) - kept :] if kept else []
            elide_over = ELIDE_RESULTS_OVER_CHARS
            if turn.compacted.summary:
                system = _with_summary(system, turn.compacted.summary)
        return [*system, *(message for group in groups for message in group)], elide_over

    def _history(self, turn: Turn) -> tuple[list[Message], list[Group]]:
        """System messages and earlier groups: the client's own, or the session's."""
        assert turn.opened is not None
        if turn.opened.own_history is not None:
            system, groups = groups_of(turn.opened.own_history)
            return one_system(self.system_prompt, system), groups
        return self._system(), self.memory.groups

    async def compact(self, turn: Turn) -> Compacted:
        """Shorten the history: by a summary of the model's, or, if that fails, by a plain digest."""
        _, groups = self._history(turn)
        window = self.client.endpoint(turn.route.endpoint).context_tokens or ASSUMED_WINDOW_TOKENS
        told = turn.last_break.complaint.window if turn.last_break is not None else 0
        window = min(window, told or window)
        probe = CallModel(number=0, route=turn.route, offer_tools=False)
        current = request_messages("", [], turn, probe)
        tokens = estimate_tokens([message for group in groups for message in group]) + estimate_tokens(current)
        chosen = plan(groups, current, window)
        if not chosen.helps:
            return Compacted(at=self.clock.now_ms(), summary="", helped=False, tokens_before=tokens)
        summary = ""
        if chosen.given_up:
            summary = await self._summary(turn, chosen.given_up)
        return Compacted(
            at=self.clock.now_ms(), summary=summary, kept_turns=len(chosen.kept), helped=True, tokens_before=tokens
        )

    async def ask_done(self, turn: Turn, effect: AskDone) -> DoneSaid:
        """The model's word whether a reply is finished; none if it does not come in time, or if there is no room for the question."""
        self._questions += 1
        messages: list[Message] = [{"role": "user", "content": done_question(effect.text)}]
        said, ending = await self.briefly(turn, f"done{self._questions}", messages, DONE_SECONDS, effect.route)
        finished = read_done(said) if isinstance(ending, ReplyFinished) else None
        told = ending if isinstance(ending, ReplyFinished | CallBroke) else None
        return DoneSaid(
            at=self.clock.now_ms(),
            finished=finished,
            said=said[:40],
            input_tokens=told.input_tokens if told is not None else 0,
            output_tokens=told.output_tokens if told is not None else 0,
        )

    async def briefly(
        self, turn: Turn, name: str, messages: list[Message], seconds: float, route: Route | None = None
    ) -> tuple[str, ReplyFinished | CallBroke | SpendRefused | None]:
        """A question about a turn, and not of it: what was said, and how that ended; None if there was no word in time."""
        text: list[str] = []

        def collect(events: Sequence[Event]) -> None:
            for event in events:
                if isinstance(event, TextArrived):
                    text.append(event.text)
                elif isinstance(event, TextTakenBack):
                    text.clear()

        request = ModelRequest(
            route=route or turn.route,
            number=0,
            messages=messages,
            first_content_seconds=min(seconds, turn.settings.first_content_seconds),
            stall_seconds=min(seconds, turn.settings.stall_seconds),
            connect_seconds=min(seconds, self.connect_seconds),
            parse_text_calls=False,
        )
        ending: ReplyFinished | CallBroke | SpendRefused | None = None
        try:
            async with Limit(seconds):
                ending = await self._paid(request, name, estimate_tokens(messages), Heard(self.clock, collect))
        except TimeoutError:
            pass  # no word in time
        return "".join(text).strip(), ending

    async def _summary(self, turn: Turn, given_up: Sequence[Group]) -> str:
        text: list[str] = []

        def collect(events: Sequence[Event]) -> None:
            for event in events:
                if isinstance(event, TextArrived):
                    text.append(event.text)
                elif isinstance(event, TextTakenBack):
                    text.clear()

        messages = summary_request(self.memory.summary, given_up)
        tokens = estimate_tokens(messages)
        grown = patience(tokens)  # what is summarised is long nearly always
        request = ModelRequest(
            route=turn.route,
            number=0,
            messages=messages,
            first_content_seconds=min(SUMMARY_SECONDS, turn.settings.first_content_seconds) * grown,
            stall_seconds=min(SUMMARY_SECONDS, turn.settings.stall_seconds) * grown,
            connect_seconds=self.connect_seconds,
            parse_text_calls=False,
        )
        self._summaries += 1
        ending = await self._paid(request, f"summary{self._summaries}", tokens, Heard(self.clock, collect))
        summary = "".join(text).strip()
        if isinstance(ending, ReplyFinished) and ending.reason == "stop" and summary:
            return summary
        return digest(self.memory.summary, given_up)


def _asked_by_person(turn: Turn) -> bool:
    """Its first words are a person's, so that nothing of it is joined with what stands before it."""
    return turn.opened is not None and bool(turn.opened.input) and turn.opened.input[0].role == "user"


def _says(event: Event) -> bool:
    """It is a call, or text with something to see."""
    said = event.text if isinstance(event, TextArrived) else ""
    return something_to_see(said) or isinstance(event, ToolCallNamed | ToolCallCut)


def _doubtful(broke: CallBroke) -> bool:
    overloaded = broke.status in OVERLOADED or broke.retry_after_seconds > 0
    return broke.cause in DOUBTFUL and not overloaded


def one_system(own: str, brought: Sequence[Message]) -> list[Message]:
    """The operator's words and the client's behind them, as one message: many templates take no second one."""
    contents: list[Json] = [own] if own else []
    contents += [content for message in brought if (content := message.get("content"))]
    texts = [content for content in contents if isinstance(content, str)]
    if len(texts) == len(contents):
        words = "\n\n".join(texts)
        return [{"role": "system", "content": words}] if words else []
    parts = [part for content in contents for part in _as_parts(content)]
    return [{"role": "system", "content": parts}]


def _as_parts(content: Json) -> list[Json]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _with_summary(system: list[Message], summary: str) -> list[Message]:
    words = summary_words(summary)
    if not system:
        return [{"role": "system", "content": words}]
    first = system[0]
    content = first.get("content")
    more: Json = [*content, *_as_parts(words)] if isinstance(content, list) else f"{content}\n\n{words}"
    return [{**first, "content": more}, *system[1:]]


def _call_ids(turn: Turn) -> list[str]:
    calls: list[CallItem] = [c for item in turn.items if isinstance(item, AssistantItem) for c in item.calls]
    return [call.call for call in calls]


def own_tools(names: Sequence[str], schemas: Sequence[Mapping[str, Json]]) -> OfferedTools:
    """An offer of the gateway's own tools."""
    return OfferedTools(tuple(names), tuple(schemas))


def client_tools(schemas: Sequence[Mapping[str, Json]]) -> OfferedTools:
    """An offer of the tools that an API client brought."""
    names: list[str] = []
    for schema in schemas:
        function = schema.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str):
            names.append(name)
    return OfferedTools(tuple(names), tuple(schemas))
