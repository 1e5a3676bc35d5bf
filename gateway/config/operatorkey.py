"""The operators' key: what opens `status`, `access`, `send`, the metrics and the console, and is no key for talking.

Why two keys: whoever may chat may not approve strangers, send as the bot, or read what others do. Where only this machine can call and
no `[server] api_key` is set, whoever sits at it is taken for the operator; no key is needed then.
A key that nobody chose is made at the first start and lies beside the database, readable for the gateway's user alone; the commands
on the same machine find it there.
"""

from __future__ import annotations

from pydantic import SecretStr

from gateway.config.keyfiles import key_in, made_key
from gateway.config.paths import Paths
from gateway.config.sections import Config

FILE_NAME = "operator.key"


def operator_key_of(config: Config) -> str | None:
    """The key that operators must send; None if there is none."""
    return config.server.operator_key.get_secret_value() if config.server.operator_key else None


def with_operator_key(config: Config, paths: Paths, *, make: bool = False) -> Config:
    """The configuration with the operators' key that lies in the state directory, if one is needed and none is set.

    `make` it if it is not there. Raises OSError if that cannot be done.
    """
    server = config.server
    if server.operator_key is not None or server.keyless:
        return config
    key = key_in(paths.state_dir / FILE_NAME)
    if not key and make:
        key = made_key(paths.state_dir / FILE_NAME)
    if not key:
        return config
    return config.model_copy(update={"server": server.model_copy(update={"operator_key": SecretStr(key)})})
