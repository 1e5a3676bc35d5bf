"""Who calls, where a surface is tested without a gateway: whoever has the one key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapters.contract.callers import Allowance, Caller
from gateway.people.keys import who


class OneKey:
    """Implements `adapters.contract.callers.Callers`; no key is needed if it is None."""

    def __init__(self, key: str | None) -> None:
        self._key = key

    @property
    def keyless(self) -> bool:
        return self._key is None

    def who(self, shown: str, headers: Mapping[str, str]) -> Caller | None:
        return who(shown, headers, self._key, {}, 0, keyless=self.keyless)

    def left(self, caller: Caller) -> Sequence[Allowance]:
        return ()

    def holds(self, caller: Caller) -> bool:
        return not caller.key
