"""What is written of people and of private chats."""

from __future__ import annotations

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Op
from agent_core.store.people.rows import PersonRow, PersonState, PlaceRow


@dataclass(frozen=True, slots=True)
class PutPerson(Op[None]):
    """Who is revoked is joined with no other account from then on."""

    person: PersonRow

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        facts.put(t.PERSON, self.person)
        if self.person.state is PersonState.REVOKED:
            facts.unlinked.add((self.person.account, self.person.person))


@dataclass(frozen=True, slots=True)
class PutPlace(Op[None]):
    """A private chat is known; whose it is never changes."""

    place: PlaceRow

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        facts.put(t.PLACE, self.place)


@dataclass(frozen=True, slots=True)
class Unlink(Op[None]):
    account: str
    person: str

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        facts.unlinked.add((self.account, self.person))
