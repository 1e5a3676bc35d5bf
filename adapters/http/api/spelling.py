"""What an endpoint has to say of itself: how its requests are read, and how what becomes of one is spelled.

A `Spelling` is made for one request and told in order what happens to it; what it gives goes out as it is. It asks nobody anything and
does nothing, so that the same sights always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from adapters.contract.base import Ended, LeftOpen, Queued, Showing, Ticket
from adapters.http.api.asked import ApiRequest, KnownItems, Referring
from adapters.http.api.spoken import Spoken, TextPiece
from adapters.http.common import Problem
from adapters.http.errorsas import ErrorsAs
from agent_core.jsonvalue import Json
from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class ApiJob:
    """An accepted request."""

    asked: ApiRequest
    ticket: Ticket
    request_id: str
    created: int
    """Seconds."""
    headers: Mapping[str, str]
    keyed: bool
    """The client has named the request, and can come back to it."""
    errors: ErrorsAs
    """How failures are told to the client."""
    thinking: bool = False
    """It is shown what the model thinks."""
    seal: Callable[[Json], str] | None = None
    """Makes of what the model thought what nobody but the gateway reads, for clients that keep the conversation themselves."""
    placed: bool = False
    """The numbers of its events stand for places, so that it can be gone on with behind each of them."""
    after: int = -1
    """A stream goes on behind the event with this number."""

    @property
    def waits(self) -> bool:
        """A stream begins only when something was produced, so that its status can be real. Who asks for the background wants the id first."""
        return self.errors is ErrorsAs.STATUS and not self.asked.background

    @property
    def data(self) -> bool:
        """Nothing but the data that it asked for may be said."""
        return self.asked.structured and self.errors is ErrorsAs.STATUS


class Spelling(Protocol):
    """One request's answer in the words of its endpoint: a stream, or one object at the end."""

    def listening(self) -> Spoken:
        """What tells views apart for it."""
        ...

    def begins(self) -> bytes:
        """The first of a stream."""
        ...

    def queued(self, queued: Queued) -> bytes: ...

    def says(self, pieces: Sequence[TextPiece]) -> bytes:
        """What is new. As nearly always it is one piece of the model's, many times a second."""
        ...

    def thinks(self, text: str, behind: str) -> bytes:
        """What the model thinks, and behind which bubble; asked only where that is shown."""
        ...

    def ended(self, ended: Ended, rest: Sequence[TextPiece]) -> bytes:
        """The end of a stream, with what of it was not said yet."""
        ...

    def left(self, left: LeftOpen, rest: Sequence[TextPiece]) -> bytes:
        """The end of a stream whose turn goes on in the next process."""
        ...

    def broken(self, reference: str) -> bytes:
        """The end of a stream that the gateway itself could not go on with; the log has it under the reference."""
        ...

    def failed(self, problem: Problem) -> bytes:
        """The end of a stream that has nothing to show but an error."""
        ...

    def whole(self, ended: Ended) -> dict[str, Json]:
        """The answer as one object."""
        ...

    def unfinished(self, sight: Queued | Showing | LeftOpen | None) -> dict[str, Json]:
        """The object of a turn that goes on, here or in the next process; None: nothing is known of it yet."""
        ...


@dataclass(frozen=True, slots=True)
class ApiEndpoint:
    """One way in."""

    read: Callable[[bytes, str, KnownItems], ApiRequest | Problem | Referring]
    """A request from its body and the session that a header names, and what it may refer to."""
    spelling: Callable[[ApiJob], Spelling]
