"""The numbers that one turn is decided by. They travel in the turn's first event, so a replay decides as the turn did."""

from __future__ import annotations

from dataclasses import field

from agent_core.records import dataclass
from agent_core.retry import MODEL
from agent_core.tools.base import EffectClass, Reach, WhenTainted

RULES = 17
"""The rules of turns that begin now. Each later set says what it changes:

1: a restart ends a turn in which a tool with effects was under way, and counts as a failure of the model call that it broke off.
2: such a tool's outcome is not known, and the turn goes on with that. A restart is no failure of the model.
3: a reply's calls beyond `CALLS_A_REPLY` are not run.
4: about a call of which something decisive cannot be shown whole nobody is asked; it is not run.
5: a finish reason that nobody knows, and one that says "tools" without any, is no end of a reply.
6: calls of one reply that fail are one failure of their tool; progress told beside housekeeping may be a promise as any other text.
7: what was judged stands in the journal, and whoever reads it takes that. (Of older journals it is inferred: `agent_core.journal.old`.)
8: what a provider refuses of a conversation is left out, and the model is asked again.
9: of a reply that may only promise something the model is asked whether it is finished.
10: what earlier failures taught is tried once and never takes a remedy away; more failures ask the next model. (Also what an older turn decides from now on.)
11: a model that brings nothing when it is to go on from a text is asked as often as one that brings nothing at all; for a call that is too
long the next model is asked. (Older turns too, from now on.)
12: a filter that cuts a reply by an error ends the turn as one that does so by a finish reason. (Older turns too, from now on.)
13: a reply of characters that nobody sees is empty; the same call with an effect again and again is a loop. (Older turns too, from now on.)
14: a model that has nothing to add when it is to go on from a text has said that the text was whole; a text whose finish reason speaks of a call
that is not there is an answer; a reply that cannot be either is empty.
15: where nothing else helps against a model that brings nothing, what of the conversation may be the reason is left out. (Older turns too.)
16: a model that says it sees nothing to go on from has brought nothing. (Turns under 14 and later.)
17: what reaches outside needs a person's word once the model has read words of others; so does the repetition of an effect whose outcome nobody
knows. A call for a client's program that no program can read is asked for again, not handed over.
"""

REPLY_CHARS = 600_000
"""What is kept of one reply, thoughts and arguments included. No model that is known says so much in one."""
ASSUMED_WINDOW_TOKENS = 128_000
"""The context window of a model whose size nobody configured."""
CONNECT_SECONDS = 10
"""For so long a connection may take, where the operator says nothing else."""
SILENCE_SECONDS = 120
"""For so long a model may be silent before its first content, and between two pieces, where the operator says nothing else."""
CALLS_A_REPLY = 64
"""Far more than any task needs at once. Each call is a row, a line on the screen and work on the loop that all turns share."""


@dataclass(frozen=True, slots=True)
class Route:
    """One way to a model: which model, at which endpoint, with which credential. Holds no secret."""

    model: str
    endpoint: str
    """A short label of the endpoint (its host), for fingerprints and notices."""
    credential: str = ""
    """The credential's id (never its value); the same key at the same host always has the same id."""
    window: int = 0
    """The model's context in tokens; 0 if nobody knows."""


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What the machine needs to know of a tool."""

    name: str
    effect: EffectClass
    housekeeping: bool = False
    needs_approval: bool = False
    reach: Reach = Reach.HERE
    """Who sees anything of a call."""
    links: bool = False
    """Addresses in its results were written elsewhere."""
    foreign: bool = False
    """Its declaration holds words of others."""
    tainted: WhenTainted = WhenTainted.ASK
    """What becomes of a call that reaches outside, once the model has read words of others."""


@dataclass(frozen=True, slots=True)
class LadderCounts:
    """How often each remedy is tried within one step."""

    retry: int = 3
    continue_text: int = 2
    tool_call_retry: int = 1
    tool_call_advice: int = 1
    empty_retry: int = 1
    empty_nudge: int = 2
    continue_thinking: int = 2
    promise_nudge: int = 1
    promise_question: int = 1
    continue_length: int = 3
    tool_call_length_advice: int = 2
    unknown_tool: int = 3
    unreadable_arguments: int = 3
    compact: int = 1
    leave_out: int = 6
    same_stall_rounds: int = 3
    """From the n-th time on that a tool's call stalls (in steps of a turn, in turns), the last remedy is to ask for text, and the end has a name."""


@dataclass(frozen=True, slots=True)
class GuardCounts:
    """When a loop is warned of and when it is stopped."""

    repeating_failing_warn: int = 2
    repeating_failing_stop: int = 4
    failing_tool_warn: int = 3
    failing_tool_stop: int = 7
    no_progress_warn: int = 2
    no_progress_stop: int = 4
    circles_warn: int = 2
    circles_stop: int = 4


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """Everything a turn's decisions depend on, beside its events."""

    routes: tuple[Route, ...]
    """The chain, in order; never empty."""
    tools: tuple[ToolFacts, ...] = ()
    client_tools: tuple[str, ...] = ()
    """Names of the tools that an API client brought: their calls are handed out to it."""
    first_content_seconds: float = SILENCE_SECONDS
    stall_seconds: float = SILENCE_SECONDS
    remedy_seconds: float = 60
    """The most that a call may be silent that is made after another one was silent for its whole limit."""
    turn_seconds: int = 1800
    max_steps: int = 50
    retry_min_seconds: float = MODEL.first
    retry_max_seconds: float = MODEL.most
    retry_after_max_seconds: float = 120
    approval_seconds: int = 600
    can_approve: bool = False
    """True if somebody can approve a tool on the surface that the turn came from."""
    client_output_limit: bool = False
    """The client set the output limit itself, so a reply cut by it is what was asked for."""
    rules: int = 1
    """Which rules decide the turn; a journal that does not say was written under the first."""
    most_calls: int = 0
    """After so many model calls no remedy is tried any more; 0: the ladder alone decides. A turn that has it is no incident."""
    most_tool_calls: int = 0
    """So many calls of the gateway's tools the client allows; 0: as many as the other limits do."""
    restarts_a_step: int = 8
    """A step that is broken off by more restarts ends the turn. (How often a turn may bring the process down is another number.)"""
    ladder: LadderCounts = field(default_factory=LadderCounts)
    guards: GuardCounts = field(default_factory=GuardCounts)

    def __hash__(self) -> int:
        """By what differs between the turns of a gateway: each turn asks for it several times, and most of its fields are its configuration's."""
        return hash((self.routes, self.client_tools, len(self.tools), self.rules, self.most_calls, self.can_approve))

    @property
    def goes_on(self) -> bool:
        """A turn goes on after a restart, also with what nobody knows."""
        return self.rules >= 2

    @property
    def questions_a_turn(self) -> int:
        """How often the model is asked whether a doubtful reply is finished."""
        return self.ladder.promise_question if self.rules >= 9 else 0

    @property
    def calls_a_reply(self) -> int | None:
        """How many calls of one reply are run; None: all."""
        return CALLS_A_REPLY if self.rules >= 3 else None

    @property
    def counts_failures_by_reply(self) -> bool:
        """Calls side by side that fail are one failure."""
        return self.rules >= 6

    @property
    def doubts_housekeeping(self) -> bool:
        """What was said beside housekeeping is an answer only if it promises nothing."""
        return self.rules >= 6

    @property
    def takes_nothing_for_an_end(self) -> bool:
        """That a model has nothing to add is told by what it says, or does not say."""
        return self.rules >= 14

    @property
    def doubts_the_finish(self) -> bool:
        """A finish reason is an end only if it is known to be one."""
        return self.rules >= 5

    @property
    def asks_only_what_is_shown(self) -> bool:
        """No person is asked about a call of which something decisive would have to be left out."""
        return self.rules >= 4

    @property
    def keeps_the_doubted(self) -> bool:
        """What was taken for a promise is not shown a second time if the model says it again."""
        return self.rules >= 9

    @property
    def leaves_out(self) -> bool:
        """What a provider refuses of the conversation is left out."""
        return self.rules >= 8

    @property
    def contains(self) -> bool:
        """What words of others bring about reaches nobody without a person's word."""
        return self.rules >= 17

    @property
    def hands_what_can_be_read(self) -> bool:
        """A client's program gets no call whose arguments it cannot read."""
        return self.rules >= 17

    @property
    def judged(self) -> bool:
        """What was judged stands in the turn's journal."""
        return self.rules >= 7

    def tool(self, name: str) -> ToolFacts | None:
        for tool in self.tools:
            if tool.name == name:
                return tool
        return None


def patience(prompt_tokens: int) -> float:
    """How much the silence limits grow with the prompt: ×1.5 over 50 000 tokens, ×2 over 100 000."""
    if prompt_tokens > 100_000:
        return 2.0
    return 1.5 if prompt_tokens > 50_000 else 1.0
