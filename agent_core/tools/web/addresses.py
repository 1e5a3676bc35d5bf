"""Which network addresses a tool may call: public ones only. Pure.

`ipaddress.is_global` alone says yes to addresses that lead inside by another name (NAT64, 6to4, IPv4-compatible, Teredo) and to
multicast; what is embedded is taken out and judged as well.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias
from urllib.parse import urlsplit

Address: TypeAlias = IPv4Address | IPv6Address

_LONGEST = 253
"""Letters of a host's name; what is longer is no name."""
_INSIDE = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
"""Ends of the names of a network's own machines."""
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = IPv6Network("::/96")
_SPECIAL = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"), IPv4Network("100.64.0.0/10"))


def refusal(address: Address) -> str | None:
    """Why an address may not be called, or None if it is public."""
    if isinstance(address, IPv6Address):
        inner = _embedded(address)
        if inner:
            return next((why for each in inner if (why := refusal(each)) is not None), None)
    elif any(address in network for network in _SPECIAL):
        return f"{address} is reserved for networks themselves"
    if address.is_loopback or address.is_unspecified:
        return f"{address} is this machine"
    if address.is_multicast:
        return f"{address} is a multicast address"
    if address.is_link_local or address.is_private or address.is_reserved or not address.is_global:
        return f"{address} is not a public address"
    return None


def _embedded(address: IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses that an IPv6 address stands for, if it does."""
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address.sixtofour is not None:
        return [address.sixtofour]
    if address.teredo is not None:
        return list(address.teredo)
    low = IPv4Address(int(address) & 0xFFFFFFFF)
    if any(address in network for network in _NAT64):
        return [low]
    if address in _COMPATIBLE and int(address) > 1:
        return [low]
    return []


def parsed(host: str) -> Address | None:
    """A literal address (zone left out), or None."""
    try:
        return ip_address(host.split("%", 1)[0])
    except ValueError:
        return None


def picture_refusal(url: str) -> str | None:
    """Why a picture's address may not be handed to a model's server, which may fetch it from where it stands, or None.

    Data and public http(s) addresses go; names are not looked up.
    """
    if url[:5].lower() == "data:":
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "it is no address"
    if parts.scheme not in {"http", "https"} or not host:
        return "only http, https and data addresses are taken"
    address = parsed(host)
    return refusal(address) if address is not None else _name_refusal(host)


def is_number(host: str) -> bool:
    """Whether resolvers take a name for an address: by its last label, as browsers do.

    These are old spellings, in which few agree on what they mean (`2130706433`, `127.1`, `0x7f.1`).
    """
    last = host.rstrip(".").rpartition(".")[2].lower()
    digits = last.removeprefix("0x")
    return last.isascii() and (last.isdigit() or (digits != last and not digits.strip("0123456789abcdef")))


def _name_refusal(host: str) -> str | None:
    """Why a name that nobody looked up may not be handed on, or None. It is judged as those read it who will call it: in ASCII."""
    if len(host) > _LONGEST:
        return "its host is too long for a name"
    try:
        name = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        return f"{host} is no name of a host"
    if is_number(name):
        return f"{host} is a number and no name"
    return f"{host} is inside a network" if f".{name}".endswith(_INSIDE) else None
