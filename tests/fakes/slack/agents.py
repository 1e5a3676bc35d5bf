"""Methods of agents: sessions (`agents.sessions.*`) and the older threads of assistants (`assistant.threads.*`). No I/O.

https://docs.slack.dev/ai/agent-sessions
"""

from __future__ import annotations

from tests.fakes.common import Json, JsonObject
from tests.fakes.slack import checks
from tests.fakes.slack.errors import ApiError, bad
from tests.fakes.slack.objects import Channel, Prompt, Session, SessionStatus, Thinking
from tests.fakes.slack.params import Params
from tests.fakes.slack.shapes import as_objects, as_text
from tests.fakes.slack.world import THINKING_SECONDS, World

MAX_TITLE = 200
MAX_PROMPTS = 4
MAX_LOADING_MESSAGES = 10
STOP_EVENT = "agent_session_stopped"
NO_STOP = "missing_agent_session_stopped_event_subscription"
"""The warning that people cannot stop the agent because it would not hear of it."""


def read_status(word: str) -> SessionStatus:
    """One of the four words.

    Raises:
        ApiError: it is none of them.
    """
    try:
        return SessionStatus(word)
    except ValueError:
        raise bad("must be one of: active, processing, suspended, closed", "status") from None


def set_session(world: World, channel: Channel, thread_ts: str, status: SessionStatus) -> Session:
    """The session of a thread has this status from now on; it is made if there was none."""
    session = channel.sessions.setdefault(thread_ts, Session(status))
    session.status = status
    session.history.append(status)
    world.changed()
    return session


def set_status(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/agents.sessions.setStatus"""
    name, word = params.required("channel_id", "status")
    params.passed("icon_emoji", "icon_url", "username")
    status = read_status(word)
    title = checks.short(params.text("title"), MAX_TITLE, "title")
    channel = checks.writable_channel(world, name)
    root = checks.required_thread(world, channel, params)
    initiator = params.text("initiator_user_id")
    if initiator and initiator not in channel.members:
        raise ApiError("user_not_in_channel")
    is_new = root.ts not in channel.sessions
    session = set_session(world, channel, root.ts, status)
    if is_new:
        session.title, session.initiator = title, initiator or None
    body: JsonObject = {"status": status.value, "agent_status": status.value, "title": session.title}
    if STOP_EVENT not in world.settings.subscribed:
        warnings: list[Json] = [NO_STOP]
        body.update({"warning": NO_STOP, "response_metadata": {"warnings": warnings}})
    return body


def rename(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/agents.sessions.rename"""
    name, title = params.required("channel_id", "title")
    checks.short(title, MAX_TITLE, "title", least=1)
    channel = checks.writable_channel(world, name)
    root = checks.required_thread(world, channel, params)
    session = channel.sessions.get(root.ts)
    if session is None:
        raise ApiError("session_not_found")
    session.title = title
    world.changed()
    return {"title": title}


# --- assistants ---


def set_thinking(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/assistant.threads.setStatus; an empty status takes it away, and so does an answer."""
    (name,) = params.required("channel_id")
    params.passed("icon_emoji", "icon_url", "username")
    text, loading = params.text("status"), params.structure("loading_messages")
    if "status" not in params.values:
        raise bad("missing required field: status")
    words = [as_text(word) for word in loading] if isinstance(loading, list) else []
    if len(words) > MAX_LOADING_MESSAGES:
        raise bad(f"no more than {MAX_LOADING_MESSAGES} items allowed", "loading_messages")
    channel = checks.writable_channel(world, name)
    root = checks.required_thread(world, channel, params)
    if text:
        until = world.clock.monotonic() + THINKING_SECONDS
        channel.thinking[root.ts] = Thinking(text, until, tuple(words))
    else:
        channel.thinking.pop(root.ts, None)
    world.changed()
    return {}


def set_title(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/assistant.threads.setTitle"""
    name, title = params.required("channel_id", "title")
    channel = checks.writable_channel(world, name)
    root = checks.required_thread(world, channel, params)
    channel.titles[root.ts] = title
    world.changed()
    return {}


def set_prompts(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts; without a thread: for the direct messages."""
    name, _ = params.required("channel_id", "prompts")
    prompts = [
        Prompt(as_text(one.get("title")), as_text(one.get("message")))
        for one in as_objects(params.structure("prompts"))
    ]
    params.passed("title")
    if not 1 <= len(prompts) <= MAX_PROMPTS or not all(prompt.title and prompt.message for prompt in prompts):
        raise bad(f"must be 1 to {MAX_PROMPTS} prompts with title and message", "prompts")
    channel = checks.writable_channel(world, name)
    root = checks.thread(world, channel, params.text("thread_ts"))
    channel.prompts[root.ts if root else ""] = prompts
    world.changed()
    return {}
