"""What an operator can do about each way in which a turn or a delivery fails. Pure and exhaustive: one table for `outspoken triage`."""

from __future__ import annotations

from typing import assert_never

from adapters.contract.chat import Cause
from agent_core.turn.exits import ExitCode

_PROVIDER = "Look at the provider's status page; add a second model ([model] fallbacks) so that turns go on elsewhere."
_BUG = (
    "A mistake in the program. Find the reference in the log, and report it with `outspoken replay TURN --export FILE`."
)
_LOOPS = (
    "See with `outspoken replay TURN` what the tool returned: a tool that cannot work is better left out of [tools]."
)


def action_for(code: ExitCode) -> str:
    """What to do about turns that end so (or would, if no remedy had helped)."""
    match code:
        case ExitCode.ANSWERED | ExitCode.HANDED_TO_CLIENT:
            return "Nothing: these ended well."
        case ExitCode.BROKEN_BEFORE_TEXT | ExitCode.BROKEN_IN_TEXT | ExitCode.PROVIDER_DOWN:
            return _PROVIDER
        case ExitCode.BROKEN_IN_TOOL_CALL | ExitCode.SAME_STALL_AGAIN:
            return (
                "The model's stream stalls on large tool calls. Put another model or provider first; if a proxy is in between, "
                "raise its idle limit, and [model] stall_seconds if the model is only slow."
            )
        case ExitCode.EMPTY_REPLY | ExitCode.EMPTY_AFTER_TOOLS | ExitCode.THINKING_ONLY:
            return (
                "The model says nothing. Raise [model] max_output_tokens if it thinks long, or put another model first."
            )
        case ExitCode.PROMISED_WITHOUT_ACTING:
            return "The model announces and does not act. Put a model first that is better at tool calls."
        case ExitCode.CUT_BY_LENGTH | ExitCode.TOOL_CALL_CUT_BY_LENGTH:
            return "Raise [model] max_output_tokens (or the limit that the client asks for)."
        case ExitCode.REFUSED | ExitCode.REFUSED_MIDWAY:
            return "The provider's content filter said no. Nothing to mend here, unless the system prompt provokes it."
        case ExitCode.UNKNOWN_TOOL | ExitCode.UNREADABLE_ARGUMENTS:
            return "The model is bad at tool calls. Put another model first, or offer it fewer tools."
        case ExitCode.REPEATING_FAILING_CALL | ExitCode.FAILING_TOOL | ExitCode.NO_PROGRESS | ExitCode.GOING_IN_CIRCLES:
            return _LOOPS
        case ExitCode.STEP_LIMIT | ExitCode.TIME_LIMIT:
            return "If these turns were useful, raise the limit ([model] max_steps, [model] turn_seconds); else see why they are long."
        case ExitCode.SPEND_LIMIT:
            return (
                "A limit of tokens or money was reached. If these turns were useful, raise it ([budgets] turn_tokens)."
            )
        case ExitCode.RATE_LIMITED:
            return "Over the provider's limits. Ask for higher ones, add a key or a fallback model, or see who asks so much."
        case ExitCode.PROVIDER_GARBAGE:
            return "The answer is no chat completion. Is base_url right (often it must end in /v1)? `outspoken doctor` looks."
        case ExitCode.NOT_AUTHORISED:
            return "The key is refused. Renew it (`outspoken setup model`) and see that it may use this model."
        case ExitCode.PAYMENT_REQUIRED:
            return "The provider wants money: top up the account, or add a key of another one."
        case ExitCode.MODEL_NOT_FOUND:
            return "There is no such model at this address. Correct [model] name; `outspoken doctor` shows which there are."
        case ExitCode.BAD_REQUEST:
            return (
                "The provider refuses the request: `outspoken explain TURN --show-text` has its words. In one conversation alone "
                "it is something in its history, and /new (or /undo) ends that; everywhere it is often an option in extra_body."
            )
        case ExitCode.CONTEXT_OVERFLOW | ExitCode.REQUEST_TOO_LARGE:
            return (
                "Conversations outgrow the model. Set [model] context_tokens to its real size, or take a larger model."
            )
        case ExitCode.STOPPED | ExitCode.SUPERSEDED | ExitCode.APPROVAL_DENIED:
            return "Nothing: a person wanted it so."
        case ExitCode.APPROVAL_EXPIRED:
            return "Nobody answered the question in time. Raise [tools] approval_seconds if people need longer."
        case ExitCode.INTERRUPTED_BY_RESTART:
            return "The process was restarted, and nothing safe was left to go on with. See why (memory? a deploy?) in the service manager's log."
        case ExitCode.INTERNAL_ERROR:
            return _BUG
        case ExitCode.NOT_STARTED:
            return "Messages were not run: too many waited, or they were too old. See what held the queue up."
        case _:
            assert_never(code)


def delivery_action(cause: Cause) -> str:
    """What to do about parts that a platform refused for good."""
    match cause:
        case Cause.BLOCKED:
            return "The person has blocked the bot. Nothing to mend."
        case Cause.NO_RIGHTS | Cause.NO_CHAT:
            return "The bot may not write there, or is not there any more. Let it in again, with the right to write."
        case Cause.NO_THREAD | Cause.NO_MESSAGE | Cause.UNEDITABLE:
            return "What it belonged to was deleted or closed. Nothing to mend."
        case Cause.FILE:
            return "The file is too large, empty or gone. See the platform's limit."
        case Cause.FORM | Cause.TOO_LONG:
            return "The platform refused even the plain form: report it with the words."
        case Cause.UNREADABLE:
            return (
                "The platform's answers cannot be read, so nobody knows whether the parts are there: look into the chats. Bring the "
                "platform's library up to date, or report it with the log's `delivery.unreadable`."
            )
        case Cause.NOT_LET_IN:
            return "The platform refuses the bot's token. Renew it: `outspoken setup`, then `outspoken doctor`."
        case Cause.NONE | Cause.UNCHANGED | Cause.MOVED | Cause.NOT_GROWING | Cause.OTHER:
            return "See the platform's words. `outspoken doctor` looks at the bot's rights."
        case _:
            assert_never(cause)
