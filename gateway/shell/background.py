"""What people see of commands that go on in the background of their conversation, and how they end them."""

from __future__ import annotations

from pathlib import Path

from adapters.contract.base import Inbound
from agent_core.records import dataclass
from agent_core.text.shown import shortened
from agent_core.text.tongue import speak, speak_many
from gateway.limits.whose import workspace_of
from gateway.shell.shell import ShellTools

SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class BackgroundCommands:
    """Those of all conversations, of which each sees its own."""

    shell: ShellTools
    workspaces: Path

    def going_on(self, inbound: Inbound) -> str:
        """Which commands of a message's conversation go on, and what ends them; empty if there are none."""
        commands = self.shell.commands
        live = commands.live_of(workspace_of(inbound, self.workspaces)) if commands is not None else []
        if not live:
            return ""
        named = ", ".join(f"{one.record.command} ({shortened(one.record.shown, SHOWN_CHARS)})" for one in live)
        return speak_many(
            "{count} command goes on in the background: {named}. “{/stop commands}” ends it.",
            "{count} commands go on in the background: {named}. “{/stop commands}” ends them.",
            len(live),
            named=named,
        )

    async def end(self, inbound: Inbound) -> str:
        """End them all; what came of it, empty if there are none."""
        commands = self.shell.commands
        if commands is None:
            return ""
        ended, still = await commands.end_all(workspace_of(inbound, self.workspaces))
        words = [
            speak_many("{count} command was ended: {named}.", "{count} commands were ended: {named}.", len(ended), named=", ".join(ended))
            if ended else "",
            speak("Asked to end, and not over yet: {named}.", named=", ".join(still)) if still else "",
        ]  # fmt: skip
        return "\n".join(filter(None, words))
