"""Test hosts on this machine: systemd containers with a simulated kernel and GPU.

sandbox = Sandbox("test").up(["ubuntu2204"])
host = sandbox.hosts["ubuntu2204"]
host.run("lspci -nn").stdout
with host.fault("apt-lock"): ...
host.reset()
sandbox.down()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpufleet_sandbox.errors import SandboxError
from gpufleet_sandbox.kinds import GPU_KINDS, KINDS, MIRROR
from gpufleet_sandbox.state import load_state

if TYPE_CHECKING:
    from gpufleet_sandbox.host import Host
    from gpufleet_sandbox.sandbox import Sandbox

__all__ = ["GPU_KINDS", "KINDS", "MIRROR", "Host", "Sandbox", "SandboxError", "load_state"]


def __getattr__(name: str) -> Any:
    """Import Host and Sandbox on first use: an inventory needs neither."""
    if name not in ("Host", "Sandbox"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{name.lower()}"), name)
