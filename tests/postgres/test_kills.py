"""Gateways that are killed with `SIGKILL`, again and again, on a server that is not."""

from __future__ import annotations

from tests.postgres import suite_of

globals().update(suite_of("tests.kills.test_kills", ["test_killed_gateways_lose_nothing_and_do_nothing_twice"]))
