"""Several gateways of one database, as the status tells of them in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agent_core.jsonvalue import Json
from agent_core.text.durations import duration

Table = Mapping[str, Json]
SILENT_SECONDS = 2.5
"""A pulse beats each second."""


def node_lines(nodes: Sequence[Table]) -> list[str]:
    """A line for each, and what is wrong with all of them together."""
    return [*(_node(one) for one in nodes), *(f"{what} {fix}" for what, fix in unlike(nodes))]


def _node(one: Table) -> str:
    states = {str(adapter.get("name")): f" ({adapter.get('state')})" for adapter in _tables(one.get("adapters"))}
    has = "".join(f", {held}{states.get(name, '')}" for name, held in _held(_words(one.get("has"))))
    up, silent = one.get("uptime_seconds"), one.get("silent_seconds")
    since = f", up for {duration(up)}" if isinstance(up, int) else ""
    machine = f" on {one.get('machine')}" if one.get("machine") else ""
    here = ", this one" if one.get("here") else ""
    turns, waiting = one.get("running_turns"), one.get("waiting_messages")
    words = f"Gateway {one.get('node')} at {one.get('address')}{machine} ({one.get('version')}{since}{here}): {one.get('chats')}/64 of the chats{has}"
    words += f"; running turns: {turns}" if turns is not None else ""
    words += " (when it was last known)" if one.get("last_known") else ""
    words += f"; waiting messages: {waiting}" if waiting else ""
    words += "; it ends" if one.get("leaves") else ""
    words += "; the model does not answer there" if one.get("model_answers") is False else ""
    words += "".join(f"; not ready: {problem}" for problem in _words(one.get("problems")))
    words += f"; silent for {silent:.0f} s" if isinstance(silent, int | float) and silent > SILENT_SECONDS else ""
    return words


def _held(has: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What a gateway has beside chats, by name and in words; the connections of an account that has several by their numbers."""
    found: dict[str, list[str]] = {}
    for name, _, number in (one.removeprefix("account/").partition("#") for one in has):
        found.setdefault(name, []).append(number or "0")
    for name, numbers in found.items():
        if name == "house":
            yield name, "the house"
        elif numbers == ["0"]:
            yield name, name  # the only one, as far as anybody here knows
        else:
            yield name, f"{name} connection{'s' if len(numbers) > 1 else ''} {' '.join(sorted(numbers, key=int))}"


def unlike(nodes: Sequence[Table]) -> Iterator[tuple[str, str]]:
    """What gateways do not have in common although they should: in words, and what to do. Pure."""
    numbers = {str(one.get("directory")) for one in nodes if one.get("directory")}
    if len(numbers) > 1:
        what = f"The gateways have {len(numbers)} directories for files: a turn that another one goes on with does not find its files."
        yield what, "Give all of them one directory: [tools] workspace"
    serves = {str(one.get("node")): {*_words(one.get("serves"))} for one in nodes if one.get("serves") is not None}
    every = {account for accounts in serves.values() for account in accounts}
    for node, accounts in serves.items():
        if missing := every - accounts:
            what = f"Gateway {node} does not serve {_listed(missing)}, so it is given no chats while another one serves all."
            yield what, "Give each gateway the same tokens."
    met = {
        answers: [str(one.get("node")) for one in nodes if one.get("model_answers") is answers]
        for answers in (True, False)
    }
    for node in met[False] if met[True] else ():
        what = f"Gateway {node} got nothing from the model in its last turns, while others did ({_listed(met[True])})."
        yield what, "Check its network, its proxy and its name server. If you stop it, the others take over its chats."
    here = [one for one in nodes if one.get("here")]
    for mine, theirs in ((mine, theirs) for mine in here for theirs in nodes):
        if mine.get("version") != theirs.get("version"):
            continue  # a version of its own may have settings of its own
        if other := _others(mine.get("settings"), theirs.get("settings")):
            what = f"Gateway {theirs.get('node')} has other settings than this one in {other}: what people are told depends on which runs their chat."
            yield what, "Start it again with the same settings."


def _others(mine: Json, theirs: Json) -> str:
    """The sections in which two gateways were not set alike."""
    if not isinstance(mine, dict) or not isinstance(theirs, dict):
        return ""
    return _listed(f"[{section}]" for section, said in mine.items() if theirs.get(section) != said)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _words(value: Json) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _tables(value: Json) -> list[Table]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
