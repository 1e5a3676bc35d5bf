"""The rehearsal model: an embedded OpenAI-compatible server that follows a script. No AI, no network; the tools are real.

It is what answers when no model is configured, so that somebody new sees within a minute what this program does when a model
fails; and it is a model server for tests, over real HTTP and server-sent events.
"""

from agent_core.model.rehearsal.server import RehearsalServer, rehearsal_server

__all__ = ["RehearsalServer", "rehearsal_server"]
