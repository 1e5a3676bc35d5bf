"""From the configuration's models to the client's endpoints. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_core.model.endpoints import Credential, Endpoint, label_of
from agent_core.tools.base import Json
from gateway.config.sections import ASSUMED_CONTEXT_TOKENS, ModelChoice

NO_KEY = "none"
"""What a server that wants no key is sent: the SDK insists on one."""
REHEARSAL_LABEL = "rehearsal"


def endpoints_of(choices: Sequence[ModelChoice], *, context_known: bool) -> tuple[Endpoint, ...]:
    """One endpoint for each model of the chain, in order.

    A key has one id for each host, however many models use it, so that it is set aside for all of them. `context_known` says
    whether the first model's context window was configured, or is only assumed.
    """
    ids: dict[tuple[str, str], str] = {}
    labels: set[str] = set()
    endpoints: list[Endpoint] = []
    for choice in choices:
        host = label_of(choice.base_url)
        label = host if host not in labels else f"{host} {choice.name}"
        while label in labels:
            label += "'"
        labels.add(label)
        secrets = [key.get_secret_value() for key in choice.api_keys] or [NO_KEY]
        known = context_known or choice.context_tokens != ASSUMED_CONTEXT_TOKENS
        endpoints.append(
            Endpoint(
                label=label,
                base_url=choice.base_url,
                credentials=tuple(Credential(_id(ids, host, secret), secret) for secret in secrets),
                models=(choice.name,) if choice.name else (),
                headers=choice.extra_headers,
                extra_body=_plain(choice.extra_body),
                context_tokens=choice.context_tokens if known else 0,
                max_output_tokens=choice.max_output_tokens,
                temperature=choice.temperature,
                slow_arguments=choice.slow_arguments,
                known_bad=choice.known_bad,
            )
        )
    return tuple(endpoints)


def _id(ids: dict[tuple[str, str], str], host: str, secret: str) -> str:
    if secret == NO_KEY:
        return f"{host}/no-key"
    number = sum(1 for known_host, _ in ids if known_host == host) + 1
    return ids.setdefault((host, secret), f"{host}/key{number}")


def _plain(table: Mapping[str, object]) -> Mapping[str, Json]:
    """The table of the configuration, which pydantic has checked to be JSON."""
    return dict(table)  # pyright: ignore[reportReturnType] - pydantic's JsonValue is our Json under another name


def rehearsal_endpoint(base_url: str, api_key: str) -> Endpoint:
    """The embedded rehearsal model as an endpoint."""
    return Endpoint(
        label=REHEARSAL_LABEL,
        base_url=base_url,
        credentials=(Credential(REHEARSAL_LABEL, api_key),),
        models=(REHEARSAL_LABEL,),
    )
