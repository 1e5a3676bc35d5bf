"""Whether gateways were started with the same settings: each tells a short sum of every section, so that any of them can name those that differ.

Secrets are not in it, but for whether there are any; nor is what a machine has of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import cast

import orjson

from gateway.config.reading import redacted
from gateway.config.sections import Config

OWN_SECTIONS = frozenset({"storage", "log", "telemetry"})
OWN_KEYS = frozenset({"host", "port", "public_url"})
FILES = ("_file", "_files")
DIGITS = 8


def sums(config: Config) -> dict[str, str]:
    """By section. Pure."""
    own = {section: _paths(keys) for section, keys in config.model_dump().items()}
    return {
        section: _sum({key: _placeless(value) for key, value in keys.items() if key not in OWN_KEYS | own[section]})
        for section, keys in redacted(config).items()
        if section not in OWN_SECTIONS
    }


def _paths(keys: Mapping[str, object]) -> frozenset[str]:
    """Where something lies may be another place on each machine."""
    return frozenset(key for key, value in keys.items() if isinstance(value, Path) or key.endswith(FILES))


def _placeless(value: object) -> object:
    """A value without the places of files, which entries of lists and tables name as well."""
    if isinstance(value, list):
        return [_placeless(one) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        entry = cast("dict[object, object]", value).items()
        return {key: _placeless(one) for key, one in entry if not _places(key, one)}
    return value


def _places(key: object, value: object) -> bool:
    return isinstance(value, str | list) and str(key).endswith(FILES)


def _sum(keys: Mapping[str, object]) -> str:
    words = orjson.dumps(keys, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return sha256(words).hexdigest()[:DIGITS]
