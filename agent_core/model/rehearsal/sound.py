"""What the rehearsal model hears, and what it says aloud: no AI, a sentence and a hum. Pure."""

from __future__ import annotations

import math
import struct

RATE = 8_000


def heard(data: bytes) -> str:
    """What it hears in a sound."""
    return f"This is what the rehearsal model hears: a sound of {len(data)} bytes."


def hummed(text: str) -> bytes:
    """A WAV that is as long as its text."""
    count = RATE * min(5, 1 + len(text) // 20)
    samples = b"".join(struct.pack("<h", int(6_000 * math.sin(n * 0.35) * math.sin(n * 0.0008))) for n in range(count))
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16, b"data", len(samples))  # fmt: skip
    return head + samples
