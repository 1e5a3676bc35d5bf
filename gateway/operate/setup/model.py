"""The steps of ``outspoken setup model``: address, key and name of a model at an OpenAI-compatible endpoint.

Each answer is tried before the next question. What was typed stays as the default of the same question; what a look has shown to be good is not
asked again, and nothing is asked whose answer a failure has made useless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from pydantic import SecretStr, ValidationError

from adapters.checks.probe import NoReply, Probe, ServerReply, environment_proxy
from adapters.contract.platforms import Asker, Key, SetupResult
from agent_core.model.endpoints import first_to_talk
from agent_core.records import dataclass
from gateway.config.model import NO_KEY, OPENAI_URL, Model, endpoints_of
from gateway.operate.setup.givenup import GivenUp

if TYPE_CHECKING:
    from agent_core.model.endpoints import Endpoint
    from gateway.config.sections import Config
    from gateway.operate.doctor.model import Listed, ModelSeen

SHOWN_MODELS = 20
LOCAL_SERVERS: Mapping[int, str] = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
"""Ports of this machine at which such servers listen by default."""
LOCAL_SECONDS = 1.0
URL, KEY, NAME, MORE_KEYS = ("model", "base_url"), ("model", "api_key"), ("model", "name"), ("model", "api_keys")
INTRODUCTION = (
    "\nAny OpenAI-compatible endpoint will do: a provider's, or a local server's (Ollama, llama.cpp, vLLM, LM Studio)."
)


def model(asker: Asker, config: Config) -> SetupResult | None:
    """Ask, try, and give what is to be written. Raises `GivenUp`."""
    from gateway.config.reading import redactor_of
    from gateway.operate.doctor import model as doctor_model
    from gateway.operate.doctor.model import CALL_SECONDS

    asker.say(INTRODUCTION)
    now = config.model
    first = now.credentials[0].get_secret_value() if now.credentials else ""
    before = now.base_url or (OPENAI_URL if first else "")
    steps = _Steps(asker, before, first, now.name)

    def attempt() -> ModelSeen:
        early = steps.ask()
        if early is not None:
            return steps.learnt(early)
        asker.say(f"Trying it, for {CALL_SECONDS:.0f} s at most …")
        endpoint = _endpoint(steps.url, steps.key, steps.name)
        return steps.learnt(asker.look(doctor_model.check(endpoint, redactor_of(config))))

    asker.tried(attempt)
    # Further keys were given for the address before, and belong to no other.
    further = {MORE_KEYS: ""} if now.api_keys and steps.url != before else {}
    return SetupResult({URL: steps.url, KEY: steps.key, NAME: steps.name, **further})


@dataclass(slots=True)
class _Steps:
    """What was typed so far, and what of it is known to be good."""

    asker: Asker
    url: str
    key: str = field(repr=False)
    name: str
    good: frozenset[Key] = frozenset()

    def ask(self) -> ModelSeen | None:
        """Ask for what is not known to be good; what was found if it is no use to ask on. Raises `GivenUp`."""
        from gateway.operate.doctor.model import ModelSeen, judged_list

        if URL not in self.good:
            self._ask_url()
            seen = self._routed()
            if not seen.reached:
                return ModelSeen(tuple(seen.findings))
        if KEY not in self.good:
            present = SecretStr(self.key) if self.key else None
            self.key = self.asker.secret(*KEY, "Key" if present else "Key (empty: none)", present, needed=False)
        replies = self._replies(self.url)
        seen = judged_list(_endpoint(self.url, self.key, ""), replies)
        if seen.findings:
            return ModelSeen(tuple(seen.findings))
        given = self.asker.value(*NAME)
        if given or not self.asker.asks:
            self.name = given or self.name
        else:
            self._ask_name(seen.names, replies)
        return None

    def learnt(self, seen: ModelSeen) -> ModelSeen:
        """What a look says of the answers. Raises `GivenUp` if what was given, and not typed, is no good: it would be tried in vain again."""
        from adapters.checks.findings import Severity

        bad = {one.check for one in seen.findings if one.level is Severity.PROBLEM}
        about = {"model.reach": URL, "model.key": KEY, "model.name": NAME}
        wrong = next((about[name] for name in about if name in bad), None)
        if wrong is not None and self.asker.value(*wrong):
            words = " ".join(f"{one.what} {one.fix}" for one in seen.findings if one.level is Severity.PROBLEM)
            raise GivenUp(f"nothing was written. {words}")
        self.good = {URL: frozenset[Key](), KEY: frozenset({URL}), NAME: frozenset({URL, KEY})}.get(
            wrong or URL, frozenset()
        )
        return seen

    def _ask_url(self) -> None:
        before, given = self.url, self.asker.value(*URL)
        default = self.url or ("" if given or not self.asker.asks else _local(self.asker)) or OPENAI_URL
        while True:
            url = given or (self.asker.question("Address of the API", default) if self.asker.asks else default)
            try:
                self.url = Model(base_url=url).base_url
                break
            except ValidationError as error:
                words = error.errors(include_url=False, include_input=False)[0]["msg"]
            if given or not self.asker.asks:
                raise GivenUp(f"the address {words}; nothing was written.")
            self.asker.say(f"The address {words}, as in http://127.0.0.1:11434/v1.")
        if before and self.url != before:  # a key and a name belong to their endpoint
            self.key, self.name = "", ""

    def _routed(self) -> Listed:
        """What the address says, or the one below it that is the API's."""
        if not self.url.endswith("/v1") and _missing(self._replies(self.url)):
            below = f"{self.url.rstrip('/')}/v1"
            if not _missing(self._replies(below)):
                self.asker.say(f"The API is at {below}.")
                self.url = below
        return self._list(self.url)

    def _list(self, url: str) -> Listed:
        from gateway.operate.doctor.model import judged_list

        return judged_list(_endpoint(url, self.key, ""), self._replies(url))

    def _replies(self, url: str) -> Sequence[ServerReply | NoReply]:
        from gateway.operate.doctor.model import listed

        endpoint = _endpoint(url, self.key, "")
        return self.asker.look(listed(endpoint, Probe(endpoint.label, proxy=environment_proxy(endpoint.base_url))))

    def _ask_name(self, there: Sequence[str], replies: Sequence[ServerReply | NoReply]) -> None:
        if not there:
            self.asker.say(
                f"It does not say which models it has{_unlisted(replies)}. Type the name as its documentation has it."
            )
        if there:
            more = f" and {len(there) - SHOWN_MODELS} more" if len(there) > SHOWN_MODELS else ""
            self.asker.say(f"It has: {', '.join(there[:SHOWN_MODELS])}{more}")
        self.name = self.asker.question("Name of the model", self.name or first_to_talk(there))


def _missing(replies: Sequence[ServerReply | NoReply]) -> bool:
    """Something answers, and it has no list of models there."""
    return any(isinstance(one, ServerReply) and (one.status in (404, 405) or _no_list(one)) for one in replies)


def _no_list(reply: ServerReply) -> bool:
    """A page for people, for example."""
    return reply.status == 200 and not isinstance(reply.table.get("data"), list)


def _unlisted(replies: Sequence[ServerReply | NoReply]) -> str:
    """Why there is no list, as far as that tells whether the address is right."""
    for reply in replies:
        if isinstance(reply, ServerReply) and reply.status != 200:
            return f" (HTTP {reply.status})"
        if isinstance(reply, ServerReply) and _no_list(reply):
            return ": what answers is no API of models, so the address may be wrong (it often ends in /v1)"
    return ""


def _endpoint(url: str, key: str, name: str) -> Endpoint:
    """The endpoint as the gateway would have it."""
    made = Model(base_url=url, name=name, api_key=SecretStr(key) if key else None)
    return endpoints_of(made.chain())[0]


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
