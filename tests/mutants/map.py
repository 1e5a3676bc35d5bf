"""Which tests are asked about which module: the nearest first, so that most mutants cost seconds. Whatever these let through is a survivor."""

from __future__ import annotations

from collections.abc import Mapping

MACHINE = ("tests/agent_core/test_turn.py", "tests/agent_core/test_recovery.py", "tests/agent_core/test_turn_laws.py")
STORED = ("tests/store/test_transactions.py", "tests/store/test_delivery_rows.py", "tests/store/test_batches.py")
SHOWN = ("tests/adapters/test_reconcile.py", "tests/adapters/test_aftermath.py", "tests/adapters/test_patience.py")
SENT = ("tests/mutants/test_outbox.py", "tests/gateway/test_refused_parts.py", "tests/adapters/test_broken_surface.py")

MAP: Mapping[str, tuple[str, ...]] = {
    "agent_core/machine/taking.py": (*MACHINE, "tests/agent_core/test_turn_table.py"),
    "agent_core/machine/turn.py": (*MACHINE, "tests/agent_core/test_turn_table.py"),
    "agent_core/judging/judge.py": (*MACHINE, "tests/agent_core/test_taint.py"),
    "agent_core/judging/ends.py": MACHINE,
    "agent_core/driver/closing.py": ("tests/gateway/test_closing.py", "tests/mutants/test_outbox.py"),
    "agent_core/store/turns/ops.py": STORED,
    "agent_core/store/inbox/ops.py": (*STORED, "tests/store/test_charges.py"),
    "agent_core/store/sessions/ops.py": (*STORED, "tests/store/test_owned.py"),
    "agent_core/store/sessions/takeups.py": ("tests/store/test_owned.py", "tests/store/test_transactions.py", "tests/store/test_budgets.py"),
    "agent_core/store/budgets/ops.py": ("tests/store/test_budgets.py", "tests/store/test_charges.py"),
    "agent_core/store/deliveries/ops.py": STORED,
    "agent_core/store/deliveries/sql.py": STORED,
    "adapters/delivery/reconcile.py": SHOWN,
    "adapters/delivery/aftermath.py": SHOWN,
    "adapters/contract/intake.py": ("tests/adapters/test_entrance.py", "tests/adapters/test_offsets.py", "tests/adapters/test_backlog.py"),
    "gateway/delivery/sender.py": SENT,
    "gateway/delivery/ledger.py": SENT,
    "gateway/delivery/surface.py": SENT,
    "gateway/setaside/takeup.py": ("tests/gateway/test_takeup.py",),
    "gateway/queues/draining.py": ("tests/gateway/test_hub.py",),
}  # fmt: skip
