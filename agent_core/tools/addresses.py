"""Which network addresses a tool may call: public ones only. Pure.

`ipaddress.is_global` alone says yes to addresses that lead inside by another name (NAT64, 6to4, IPv4-compatible, Teredo) and to
multicast; what is embedded is taken out and judged as well.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

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
