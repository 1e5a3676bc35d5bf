"""What the process that watches over a command needs of any sandbox; who makes one implements it."""

from __future__ import annotations

from typing import Protocol

from agent_core.tools.sandbox.ends import EndCause


class NoSandbox(Exception):
    """The sandbox cannot be made; the words say why."""


class LockedCommand(Protocol):
    """One command and its sandbox. Its methods are called in their order here, but for `hear`; none is called from two threads."""

    start_seconds: float
    """So long it may take from `start` until it is `ready`."""

    def start(self, out: int) -> int:
        """Begin to make the sandbox; what the command prints goes to `out`. Gives a descriptor from which `hear` is to be fed.

        Raises `NoSandbox`, `OSError`.
        """
        ...

    def hear(self, chunk: bytes) -> None:
        """What the sandbox says of itself."""
        ...

    @property
    def ready(self) -> bool:
        """The sandbox is made."""
        ...

    def go(self) -> None:
        """Have the limits hold, then have the command begin, if it waits for that. Raises `OSError`."""
        ...

    def passed(self) -> EndCause | None:
        """Which limit it has passed of those that are looked at from outside, in memory and processes."""
        ...

    def ask(self) -> None:
        """Ask all of it to end."""
        ...

    def kill(self) -> None:
        """End all of it. Harmless when it is over."""
        ...

    @property
    def over(self) -> bool:
        """All of it is over."""
        ...

    @property
    def status(self) -> int | None:
        """The command's exit status, once it is known."""
        ...

    def close(self) -> EndCause:
        """Give back what it took. Why it is over as far as the sandbox knows, if nobody ended it."""
        ...

    def complaint(self, printed: bytes) -> str:
        """What the sandbox said in place of beginning; `printed` is the end of what came out where the command prints."""
        ...
