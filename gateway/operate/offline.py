"""What can be asked and changed while no gateway runs, straight in its database; apart, because only this of the command needs the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from adapters.terminal.ask import GatewayRefused
from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.database.place import PostgresPlace, parse_place
from agent_core.store.store import open_store
from gateway.config.paths import Paths
from gateway.config.sections import Config
from gateway.config.tools.shell import COMMANDS
from gateway.config.tools.toolnames import known_names
from gateway.operate.context import prepare_places
from gateway.people import access
from gateway.people.keyring import Keyring
from gateway.people.keys import KeyRefused, Nameable
from gateway.people.members import everybody_of
from gateway.retention.forgetting import Forgetting, copies_beside, unknown
from gateway.sharing.portion import KEYS, PEOPLE
from gateway.version import program_version


async def people_of(config: Config, paths: Paths, verb: str, who: str) -> Sequence[Mapping[str, Json]]:
    """List everybody, or approve or revoke one person. Raises `GatewayRefused` if there is nobody."""
    prepare_places(paths)
    clock = SystemClock()
    where = config.storage.url or paths.database
    async with open_store(where, clock=clock, ids=SystemIds(clock), version=program_version()) as store:
        people = await store.people.all()
        if verb == "list":
            return [access.table_of(row) for row in await everybody_of(store, people)]
        now = clock.now_ms()
        if verb == "approve":
            found = access.to_approve(people, who, now)
        else:
            try:
                found = access.to_revoke(await everybody_of(store, people), who)
            except access.LetInElsewhere as error:
                raise GatewayRefused(str(error)) from None
        if found is None:
            raise GatewayRefused("There is no such code or person. Codes are valid for an hour.")
        changed = (
            access.approved(found, "operator", now) if verb == "approve" else access.revoked(found, "operator", now)
        )
        await store.people.put(changed)
        await _told(where, PEOPLE)
        return [access.table_of(changed)]


async def forget(config: Config, paths: Paths, account: str, person: str) -> list[str]:
    """Forget a person now, while no gateway runs; what came of it, in words."""
    prepare_places(paths)
    clock = SystemClock()
    ids = SystemIds(clock)
    where = config.storage.url or paths.database
    async with open_store(where, clock=clock, ids=ids, version=program_version()) as store:
        places = (config.tools.workspace or paths.workspaces, config.spool(paths), paths.state_dir / COMMANDS)
        forgetting = Forgetting(store, clock, ids, *places, alone=True)
        known = await store.forgotten.known([(account, person)])
        await forgetting.begin((account, person), "operator")
        told: list[str] = []
        for job in await store.forgotten.jobs():
            if job.done_at is None:
                told = (await forgetting.finish(job)).lines(copies_beside(paths.database))
        return told if known else [unknown(f"{account}/{person}"), *told]


async def keys_of(
    config: Config, paths: Paths, verb: str, name: str, more: Mapping[str, Json]
) -> tuple[Sequence[Mapping[str, Json]], str]:
    """All keys of the API (`list`), or make or change one: as they are then, and the new key itself. Raises `GatewayRefused`."""
    prepare_places(paths)
    clock = SystemClock()
    ids = SystemIds(clock)
    terms, keep = more.get("terms"), more.get("keep_seconds")
    asked = terms if isinstance(terms, dict) else {}
    async with open_store(
        config.storage.url or paths.database, clock=clock, ids=ids, version=program_version()
    ) as store:
        ring = Keyring(store, clock, ids)
        await ring.open()
        key = ""
        try:
            match verb:
                case "add":
                    table, key = await ring.add(name, asked, nameable(config))
                case "rotate":
                    table, key = await ring.rotate(name, keep if isinstance(keep, int) else 0)
                case "change":
                    table = await ring.change(name, asked, nameable(config))
                case "revoke":
                    table = await ring.revoke(name)
                case _:
                    return [one for one in await ring.tables(config.budgets.rules()) if isinstance(one, dict)], ""
        except KeyRefused as error:
            raise GatewayRefused(str(error)) from error
        await _told(config.storage.url or paths.database, KEYS)
        return [table], key


async def _told(where: str | Path, word: str) -> None:
    """Gateways that serve on other machines hear of it at once."""
    if isinstance(place := parse_place(where), PostgresPlace):
        from agent_core.store.slices.calls import call_once

        await call_once(place, word)


def nameable(config: Config) -> Nameable:
    """What the lists of a key may name, as far as the configuration says it."""
    chain = config.model.chain()
    names = [one.name for one in chain]
    models = (
        tuple(dict.fromkeys(["outspoken", *names, *(one.name for one in config.agents.each)]))
        if names and all(names)
        else ()
    )
    return Nameable(models, known_names(config))
