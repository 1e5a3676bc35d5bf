"""The words of the house, each with its one meaning, printed from the source: ``python -m tests.glossary`` gives what stands in ``docs/architecture.md``.

A word's meaning is the first sentence of what carries it: a class, a function, a constant or a module.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.rooms import ROOT, modules, room_of
from tests.source import nodes, tree

WORDS: Mapping[str, str] = {
    "Bad time": "gateway.schedule.times.BadTime",
    "Cannot open": "agent_core.store.errors.CannotOpen",
    "Amount": "agent_core.limits.budgets.Amount",
    "Accepting": "gateway.sessions.accepting.Accepting",
    "Inbox state": "agent_core.store.inbox.rows.InboxState",
    "Portion": "gateway.sharing.portion.Portion",
    "Schedule row": "agent_core.store.schedules.rows.ScheduleRow",
    "Slice": "agent_core.store.slices.rows.SliceRow",
    "Ticket": "adapters.contract.base.Ticket",
    "Turn state": "agent_core.store.turns.rows.TurnState",
    "Outbox": "gateway.delivery.outbox.Outbox",
    "Tool spec": "agent_core.tools.base.ToolSpec",
    "Session policy": "gateway.config.types.SessionPolicy",
    "Budget": "agent_core.limits.spend.Budget",
    "Budget level": "agent_core.limits.budgets.Level",
    "Budget rules": "agent_core.limits.budgets.BudgetRules",
    "Measure": "agent_core.limits.spend.Measure",
    "Accepted": "agent_core.store.inbox.rows.Accepted",
    "Adapter sight": "adapters.contract.chat.AdapterSight",
    "Chat message": "adapters.contract.chat.ChatMessage",
    "Inbound": "adapters.contract.base.Inbound",
    "From a chat": "adapters.contract.base.FromChat",
    "From the API": "adapters.contract.base.FromApi",
    "Input message": "agent_core.messages.InputMessage",
    "Activity": "agent_core.turn.state.Activity",
    "Approval answered": "agent_core.turn.events.ApprovalAnswered",
    "Limit": "agent_core.patience.Limit",
    "Queues": "gateway.queues.queues.Queues",
    "Waiting": "gateway.queues.queue.Waiting",
    "Workers": "agent_core.workers.pool.Workers",
    "Ability": "adapters.contract.chat.Ability",
    "Advice": "agent_core.failures.remedies.Advice",
    "Bell": "agent_core.bell.Bell",
    "Break cause": "agent_core.causes.BreakCause",
    "Bubble": "agent_core.turn.view.Bubble",
    "Bubble kind": "agent_core.turn.view.BubbleKind",
    "Call broke": "agent_core.turn.events.CallBroke",
    "Caller": "adapters.contract.callers.Caller",
    "Call failed": "adapters.contract.chat.CallFailed",
    "Cause": "adapters.contract.chat.Cause",
    "Chat address": "adapters.contract.chat.ChatAddress",
    "Chat kind": "adapters.contract.chat.ChatKind",
    "Chat origin": "adapters.contract.chat.ChatOrigin",
    "Chat person": "adapters.contract.chat.ChatPerson",
    "Chat port": "adapters.contract.chat.ChatPort",
    "Clock": "agent_core.ports.Clock",
    "Config": "gateway.config.sections.Config",
    "Content": "adapters.contract.chat.Content",
    "Content kind": "adapters.contract.chat.ContentKind",
    "Delivery": "agent_core.store.deliveries.rows.Delivery",
    "Delivery row": "agent_core.store.deliveries.rows.DeliveryRow",
    "Delivery state": "agent_core.store.deliveries.rows.DeliveryState",
    "Effect class": "agent_core.tools.base.EffectClass",
    "Endpoint": "agent_core.model.endpoints.Endpoint",
    "Exit": "agent_core.failures.exits.Exit",
    "Exit code": "agent_core.failures.exits.ExitCode",
    "Failure": "agent_core.failures.remedies.Failure",
    "Fate": "adapters.contract.chat.Fate",
    "Finding": "adapters.checks.findings.Finding",
    "Fresh": "agent_core.store.sessions.asides.Fresh",
    "HTTP route": "adapters.http.routes.HttpRoute",
    "Hub": "gateway.sessions.hub.Hub",
    "Ids": "agent_core.ports.Ids",
    "Inbox row": "agent_core.store.inbox.rows.InboxRow",
    "Incident": "agent_core.store.troubles.rows.IncidentRow",
    "Journal row": "agent_core.store.turns.rows.JournalRow",
    "Not accepted": "adapters.contract.notaccepted.NotAccepted",
    "Not accepted, code": "adapters.contract.notaccepted.NotAcceptedCode",
    "Not started": "agent_core.failures.notices.NotStarted",
    "Owner": "gateway.delivery.owners.Owner",
    "Paths": "gateway.config.paths.Paths",
    "Phase": "agent_core.turn.state.Phase",
    "Platform": "adapters.contract.platforms.Platform",
    "Pot": "agent_core.limits.budgets.Pot",
    "Quota kind": "agent_core.limits.quotas.QuotaKind",
    "Quotas": "gateway.limits.quotas.Quotas",
    "Reasoning arrived": "agent_core.turn.events.ReasoningArrived",
    "Redactor": "agent_core.text.redaction.Redactor",
    "Reach": "agent_core.tools.base.Reach",
    "Remedy": "agent_core.failures.remedies.Remedy",
    "Reply finished": "agent_core.turn.events.ReplyFinished",
    "Lasting": "agent_core.rules.consents.Lasting",
    "Running": "gateway.queues.queue.Running",
    "Retry": "agent_core.retry.Retry",
    "Route": "agent_core.settings.Route",
    "Session": "agent_core.store.sessions.rows.SessionRow",
    "Session key": "adapters.contract.base.SessionKey",
    "Session queue": "gateway.queues.queue.SessionQueue",
    "Storage unavailable": "agent_core.store.errors.StorageUnavailable",
    "Store": "agent_core.store.store.Store",
    "Styled": "adapters.text.styled.Styled",
    "Surface": "gateway.delivery.surface.Surface",
    "Text arrived": "agent_core.turn.events.TextArrived",
    "Tool arguments arrived": "agent_core.turn.events.ToolArgumentsArrived",
    "Tool call named": "agent_core.turn.events.ToolCallNamed",
    "Tool context": "agent_core.tools.base.ToolContext",
    "Tool registry": "agent_core.tools.registry.ToolRegistry",
    "Tool status": "agent_core.tools.base.ToolStatus",
    "Traits": "adapters.contract.chat.Traits",
    "Trouble": "agent_core.failures.troubles.Trouble",
    "Turn": "agent_core.machine.turn.Turn",
    "Turn driver": "agent_core.driver.driver.TurnDriver",
    "Turn identity": "agent_core.driver.closing.TurnIdentity",
    "Turn closed": "agent_core.signals.TurnClosed",
    "Turn ended": "agent_core.turn.events.TurnEnded",
    "Turn opened": "agent_core.turn.events.TurnOpened",
    "Turn row": "agent_core.store.turns.rows.TurnRow",
    "Turn settings": "agent_core.settings.TurnSettings",
    "Unreadable journal": "agent_core.failures.errors.UnreadableJournal",
    "Verdict": "agent_core.turn.events.Verdict",
    "View": "agent_core.turn.view.View",
}
"""A word, and what carries it: ``module.Class``, ``module.Class.field`` or a module."""

WIDELY = 5
"""A class that more rooms than this import has to be among the words."""


def meaning(carrier: str, root: Path = ROOT) -> str:
    """The first sentence of what carries a word.

    :raises LookupError: there is no such thing, or it has no words.
    """
    known = modules(root)
    parts = carrier.split(".")
    for cut in range(len(parts), 0, -1):
        module = ".".join(parts[:cut])
        if module in known:
            return _sentence(_found(tree(known[module].read_text()), parts[cut:]), carrier)
    raise LookupError(f"no module holds {carrier}")


def _found(scope: ast.AST, names: list[str]) -> str | None:
    """The docstring of what these names lead to."""
    if not names:
        assert isinstance(scope, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        return ast.get_docstring(scope)
    body: list[ast.stmt] = getattr(scope, "body", [])
    for at, node in enumerate(body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == names[0]:
            return _found(node, names[1:])
        if len(names) == 1 and names[0] in _assigned(node):
            behind = body[at + 1] if at + 1 < len(body) else None
            if (
                isinstance(behind, ast.Expr)
                and isinstance(behind.value, ast.Constant)
                and isinstance(behind.value.value, str)
            ):
                return behind.value.value
    return None


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _sentence(words: str | None, carrier: str) -> str:
    if not words:
        raise LookupError(f"{carrier} has no words of its own")
    first = " ".join(words.split("\n\n")[0].split())
    end = first.find(". ")
    return (first if end < 0 else first[:end]).rstrip(".")


def classes(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """(module, name) of every public class of the house."""
    for module, path in modules(root).items():
        for node in tree(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield module, node.name


def doubled(root: Path = ROOT) -> dict[str, list[str]]:
    """Names that several public classes have, with their modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, name in classes(root):
        found[name].append(module)
    return {name: places for name, places in found.items() if len(places) > 1}


def widely_used(root: Path = ROOT) -> set[str]:
    """The classes, as ``module.Name``, that more than `WIDELY` rooms import from a module."""
    known = modules(root)
    there = {f"{module}.{name}" for module, name in classes(root)}
    users: dict[str, set[str]] = defaultdict(set)
    for module, path in known.items():
        for node in nodes(path.read_text()):
            if isinstance(node, ast.ImportFrom) and node.module in known:
                for alias in node.names:
                    users[f"{node.module}.{alias.name}"].add(room_of(module, known))
    return {name for name, rooms in users.items() if name in there and len(rooms) > WIDELY}


def identifiers(root: Path = ROOT) -> Counter[str]:
    """Every name that the source gives to a module, class, function, field or variable, with how often it does."""
    found: Counter[str] = Counter()
    for module, path in modules(root).items():
        found[module.rpartition(".")[2]] += 1
        for node in nodes(path.read_text()):
            match node:
                case (
                    ast.ClassDef(name=name)
                    | ast.FunctionDef(name=name)
                    | ast.AsyncFunctionDef(name=name)
                    | ast.Name(id=name)
                    | ast.Attribute(attr=name)
                    | ast.arg(arg=name)
                ):
                    found[name] += 1
                case _:
                    pass
    return found


def table() -> str:
    """All words, as a table."""
    out = ["| word | meaning | in |", "|---|---|---|"]
    out += [
        f"| {word} | {meaning(carrier).replace('|', chr(92) + '|')} | `{carrier}` |"
        for word, carrier in sorted(WORDS.items())
    ]
    return "\n".join(out)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
