"""How hosted providers' streams go wrong, or otherwise than one expects."""

from __future__ import annotations

from agent_core.turn.exits import ExitCode
from tests.e2e.faults.playing import FINE, Fault
from tests.e2e.upstream import HEAD, delta, event, text

STREAMS: tuple[Fault, ...] = (
    Fault(
        "openrouter ends a reply in the middle with an error beside the finish reason error",
        "https://openrouter.ai/docs/api/reference/errors-and-debugging",
        (
            (
                HEAD,
                text("All is "),
                event(
                    {
                        "id": "cmpl-abc123",
                        "object": "chat.completion.chunk",
                        "created": 1234567890,
                        "model": "gpt-3.5-turbo",
                        "provider": "openai",
                        "error": {"code": "server_error", "message": "Provider disconnected unexpectedly"},
                        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
                    }
                ),
            ),
            (HEAD, text("well."), delta("stop")),
        ),
    ),
    Fault(
        "openrouter has no credits left",
        "https://openrouter.ai/docs/api/reference/errors-and-debugging",
        ((HEAD, event({"error": {"code": 402, "message": "Insufficient credits"}})),),
        "credit",
        ExitCode.PAYMENT_REQUIRED,
        other=ExitCode.ANSWERED,
    ),
    Fault("nothing is wrong", "https://openrouter.ai/docs/api/reference/streaming", (FINE,)),
)
