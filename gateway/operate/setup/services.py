"""What ``outspoken setup`` can set up: the model, whose steps stand here, and the platforms, whose stand in their folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from pydantic import SecretStr, ValidationError

from adapters.checks.probe import Probe, ServerReply, environment_proxy
from adapters.contract.platforms import Asker, Key, Platform, SetupResult
from adapters.platforms import platforms
from agent_core.records import dataclass
from gateway.config.model import NO_KEY, OPENAI_URL, Model, endpoints_of

if TYPE_CHECKING:
    from agent_core.model.endpoints import Endpoint
    from gateway.config.sections import Config
    from gateway.operate.doctor.model import ModelSeen

SHOWN_MODELS = 20
LOCAL_SERVERS: Mapping[int, str] = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
"""Ports of this machine at which such servers listen by default."""
LOCAL_SECONDS = 1.0


class GivenUp(Exception):
    """Setting a service up was not brought to its end; the words say what that means."""


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


# --- the model ---


def model(asker: Asker, config: Config) -> SetupResult | None:
    """Address, key and name of a model at an OpenAI-compatible endpoint."""
    from gateway.config.reading import redactor_of
    from gateway.operate.doctor import model as doctor_model

    now = config.model
    asker.say(
        "\nAny OpenAI-compatible endpoint will do: a provider's, or a local server's (Ollama, llama.cpp, vLLM, LM Studio)."
    )
    values: dict[Key, str] = {}

    def attempt() -> ModelSeen:
        url = _address(asker, now)
        same = url == (now.base_url or OPENAI_URL)
        present = now.credentials[0] if now.credentials and same else None
        key = asker.secret("model", "api_key", "Key (empty: none)", present, needed=False)
        name = asker.value("model", "name") or (now.name if same else "")
        if asker.asks and not asker.value("model", "name"):
            name = _chosen(asker, _endpoint(url, key, ""), name)
        values.update({("model", "base_url"): url, ("model", "api_key"): key, ("model", "name"): name})
        asker.say("Trying it …")
        return asker.look(doctor_model.check(_endpoint(url, key, name), redactor_of(config)))

    asker.tried(attempt)
    return SetupResult(values)


def _address(asker: Asker, now: Model) -> str:
    """The address of the API, given or asked for until it can be one. Raises `GivenUp` if what was given cannot."""
    given = asker.value("model", "base_url")
    default = now.base_url or ("" if given or not asker.asks else _local(asker)) or OPENAI_URL
    while True:
        url = given or (asker.question("Address of the API", default) if asker.asks else default)
        try:
            return Model(base_url=url).base_url
        except ValidationError as error:
            words = error.errors(include_url=False, include_input=False)[0]["msg"]
        if given or not asker.asks:
            raise GivenUp(f"the address {words}; nothing was written.")
        asker.say(f"The address {words}.")


def _endpoint(url: str, key: str, name: str) -> Endpoint:
    """The endpoint as the gateway would have it."""
    made = Model(base_url=url, name=name, api_key=SecretStr(key) if key else None)
    return endpoints_of(made.chain(), context_known=False)[0]


def _chosen(asker: Asker, endpoint: Endpoint, name: str) -> str:
    """The name of the model, from the endpoint's list if it has one."""
    from gateway.operate.doctor.model import listed, names_of

    replies = asker.look(listed(endpoint, Probe(endpoint.label, proxy=environment_proxy(endpoint.base_url))))
    there = next((names_of(one) for one in replies if isinstance(one, ServerReply)), ())
    if there:
        more = f" and {len(there) - SHOWN_MODELS} more" if len(there) > SHOWN_MODELS else ""
        asker.say(f"It has: {', '.join(there[:SHOWN_MODELS])}{more}")
    return asker.question("Name of the model", name or next(iter(there), ""))


def _local(asker: Asker) -> str:
    """The address of a model server on this machine, if one answers."""
    import asyncio

    async def probe(port: int) -> str:
        address = f"http://127.0.0.1:{port}/v1"
        reply = await Probe("local").ask(
            "GET", f"{address}/models", {"Authorization": f"Bearer {NO_KEY}"}, None, LOCAL_SECONDS
        )
        listed = isinstance(reply, ServerReply) and reply.status == 200 and isinstance(reply.table.get("data"), list)
        return address if listed else ""

    async def found() -> list[str]:
        return await asyncio.gather(*(probe(port) for port in LOCAL_SERVERS))

    for address, server in zip(asker.look(found()), LOCAL_SERVERS.values(), strict=True):
        if address:
            asker.say(f"A model server answers on this machine at {address} ({server}'s port).")
            return address
    return ""


# --- all of it ---


def services() -> Mapping[str, Service]:
    """What there is to set up, by name: a model, and each platform."""
    return {_MODEL.name: _MODEL, **{one.name: _service(one) for one in platforms()}}


_MODEL = Service(
    "model",
    "Model",
    "Set up a model? Without one, the rehearsal model answers, which is a script.",
    (("model", "base_url"), ("model", "api_key"), ("model", "name")),
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
