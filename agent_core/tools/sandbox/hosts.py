"""Which hosts a rule names: ``example.org``, ``*.example.org`` for what is below it, either with a port behind a colon. Pure.

A rule without a port is for 80 and 443. Names are compared in small letters and without a last dot; an address is no name, and stands for itself only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

PORTS = (80, 443)
RULE = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9])?(?::[0-9]{1,5})?")


def read_host(text: str, port: int) -> tuple[str, int]:
    """The host and the port of ``host:port``. Raises `ValueError`."""
    host, colon, number = text.rpartition(":")
    if not colon or "]" in number:
        return text.strip("[]"), port
    return host.strip("[]"), int(number)


def may_call(host: str, port: int, rules: Sequence[str]) -> bool:
    """Whether one of the rules names it."""
    name = host.lower().removesuffix(".")
    return any(_fits(name, port, rule.lower()) for rule in rules)


def _fits(name: str, port: int, rule: str) -> bool:
    wanted, colon, number = rule.partition(":")
    if (port != int(number)) if colon else (port not in PORTS):
        return False
    if wanted.startswith("*."):
        return name.endswith(wanted[1:]) and len(name) > len(wanted) - 1
    return name == wanted
