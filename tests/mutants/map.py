"""Which modules decide: of these mutants are made. And which tests are asked: those that run what is changed in their own process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]

DECIDING = (
    "agent_core/machine/*.py",
    "agent_core/judging/*.py",
    "agent_core/driver/*.py",
    "agent_core/turn/[!et]*.py",
    "agent_core/failures/remedies.py",
    "agent_core/rules/*.py",
    "agent_core/limits/*.py",
    "agent_core/retry.py",
    "agent_core/bell.py",
    "agent_core/patience.py",
    "agent_core/text/redaction.py",
    "agent_core/store/batch/*.py",
    "agent_core/store/budgets/*.py",
    "agent_core/store/deliveries/*.py",
    "agent_core/store/inbox/*.py",
    "agent_core/store/sessions/*.py",
    "agent_core/store/slices/*.py",
    "agent_core/store/turns/*.py",
    "agent_core/store/database/asks.py",
    "agent_core/store/database/lines.py",
    "agent_core/store/database/ownership.py",
    "agent_core/store/database/writer.py",
    "adapters/contract/*.py",
    "adapters/delivery/*.py",
    "adapters/discord/*.py",
    "adapters/slack/*.py",
    "adapters/telegram/*.py",
    "adapters/http/*.py",
    "adapters/http/api/*.py",
    "adapters/http/sessions/*.py",
    "gateway/chats/*.py",
    "gateway/commands/*.py",
    "gateway/delivery/*.py",
    "gateway/later/*.py",
    "gateway/laws/*.py",
    "gateway/limits/*.py",
    "gateway/queues/*.py",
    "gateway/recovery/*.py",
    "gateway/schedule/*.py",
    "gateway/sessions/*.py",
    "gateway/setaside/*.py",
    "gateway/several/*.py",
    "gateway/sharing/*.py",
    "gateway/succession/*.py",
    "gateway/webhooks/*.py",
)
"""As patterns of paths."""

ASKED = (
    "tests/agent_core",
    "tests/store",
    "tests/adapters",
    "tests/laws",
    "tests/mutants",
    "tests/gateway",
    "tests/webhooks",
    "tests/chats",
    "tests/e2e",
    "tests/several",
    "tests/storage",
    "tests/mcp",
    "tests/mcpserver",
    "tests/corpora/test_calls.py",
    "tests/corpora/test_endings.py",
    "tests/explore",
    "tests/sim/test_sim.py",
    "tests/sim/whole",
)


def deciding(only: Sequence[str] = ()) -> Sequence[str]:
    """The paths of all of these modules, or of those with one of these in their path."""
    paths = {str(file.relative_to(ROOT)) for pattern in DECIDING for file in ROOT.glob(pattern)}
    some = {path for path in paths if not only or any(piece in path for piece in only)}
    return sorted(path for path in some if not path.endswith("__init__.py"))
