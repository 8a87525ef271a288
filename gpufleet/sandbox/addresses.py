"""Addresses in the sandbox's network, chosen before a host starts and kept over its reboots."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection


def gateway(subnet: str) -> str:
    return str(next(ipaddress.ip_network(subnet).hosts()))


def free_address(subnet: str, used: Collection[str]) -> str:
    """The first address of the network that is neither the gateway's nor in `used`."""
    for address in ipaddress.ip_network(subnet).hosts():
        if str(address) not in used and str(address) != gateway(subnet):
            return str(address)
    raise ValueError(f"no free address left in {subnet}")
