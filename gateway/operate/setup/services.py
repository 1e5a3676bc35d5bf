"""What ``outspoken setup`` can set up: the model, whose steps stand beside this, and the platforms, whose stand in their folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from adapters.contract.platforms import Asker, Key, Platform, SetupResult
from adapters.platforms import platforms
from agent_core.records import dataclass
from gateway.operate.setup.model import KEY, NAME, URL, model

if TYPE_CHECKING:
    from gateway.config.sections import Config


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line gives."""

    values: Mapping[Key, str] = field(default_factory=dict[Key, str], repr=False)


@dataclass(frozen=True, slots=True)
class Service:
    """Something that can be set up."""

    name: str
    title: str
    question: str
    keys: tuple[Key, ...]
    """What it writes; without the first of them it has nothing to write."""
    ask: Callable[[Asker, Config], SetupResult | None]


# --- all of it ---


def services() -> Mapping[str, Service]:
    """What there is to set up, by name: a model, and each platform."""
    return {_MODEL.name: _MODEL, **{one.name: _service(one) for one in platforms()}}


_MODEL = Service(
    "model",
    "Model",
    "Set up a model? Without one, the rehearsal model answers, which is a script.",
    (URL, KEY, NAME),
    model,
)


def _service(one: Platform) -> Service:
    return Service(
        one.name,
        one.title,
        f"Set up {one.title}?",
        tuple((one.name, key) for key in one.setup_keys),
        lambda asker, config: config.of(one).ask(asker),
    )
