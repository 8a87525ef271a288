"""Addresses in the sandbox's network, assigned before a host starts and stable across reboots."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection


def gateway(subnet: str) -> str:
    return str(next(ipaddress.ip_network(subnet).hosts()))


def free_address(subnet: str, used: Collection[str]) -> str:
    """The first address of the network that is neither the gateway nor in `used`."""
    for address in ipaddress.ip_network(subnet).hosts():
        if str(address) not in used and str(address) != gateway(subnet):
            return str(address)
    raise ValueError(f"no free address left in {subnet}")


def hardware_address(address: str) -> str:
    """The MAC address of an IPv4 address: 02:67:0a:59:00:02 for 10.89.0.2."""
    return "02:67:" + ":".join(f"{byte:02x}" for byte in ipaddress.ip_address(address).packed)
