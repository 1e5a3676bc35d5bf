"""The secrets of the configuration, for the redactor."""

from __future__ import annotations

from agent_core.redaction import Redactor
from gateway.configmodel import Config


def redactor_of(config: Config) -> Redactor:
    """Knows every secret of the configuration."""
    secrets = [key.get_secret_value() for choice in config.model.chain() for key in choice.api_keys]
    if config.server.api_key is not None:
        secrets.append(config.server.api_key.get_secret_value())
    return Redactor.of(secrets)
