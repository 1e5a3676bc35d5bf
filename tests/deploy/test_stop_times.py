"""Whoever stops a gateway waits for as long as a stop may take: every file of deploy/, and every command of the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from gateway.chats.supervisor import CLOSE_SECONDS
from gateway.config.server import BEYOND_DRAIN_SECONDS, DRAIN_SECONDS
from gateway.daemon import DELIVERY_SECONDS
from gateway.http.server import SHUTDOWN_SECONDS
from gateway.observe.traces import SEND_SECONDS
from gateway.queues.draining import LEAVE_SECONDS
from tests.deploy.test_systemd import setting
from tests.docs.pages import pages

DEPLOY = Path(__file__).parents[2] / "deploy"
NEEDED = DRAIN_SECONDS + BEYOND_DRAIN_SECONDS


def given() -> Iterator[tuple[str, float]]:
    """Each place that says how long to wait, and what it says."""
    yield "systemd", float(setting("TimeoutStopSec"))
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text("utf-8")):
            if document["kind"] == "Deployment":
                yield file.name, document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    for file in sorted(DEPLOY.glob("compose*.yaml")):
        services: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))["services"]
        for name, service in services.items():
            if "build" in service:
                yield f"{file.name}: {name}", float(service["stop_grace_period"].removesuffix("s"))
    for page in pages():
        for block in page.blocks:
            for command in block.text.replace("\\\n", " ").splitlines():
                if re.search(r"\b(podman|docker) run\b", command):
                    found = re.search(r"--stop-timeout[ =](\d+)", command)
                    yield f"{page.name}:{block.line}", float(found[1]) if found else 10.0


def test_everybody_waits_for_the_drain_and_for_what_a_stop_takes_besides() -> None:
    places = dict(given())
    assert len(places) >= 4
    assert {place: seconds for place, seconds in places.items() if seconds < NEEDED} == {}


def test_what_a_stop_takes_besides_is_enough_for_its_parts() -> None:
    parts = (LEAVE_SECONDS, DELIVERY_SECONDS, SHUTDOWN_SECONDS, CLOSE_SECONDS, SEND_SECONDS)
    assert sum(parts) <= BEYOND_DRAIN_SECONDS
