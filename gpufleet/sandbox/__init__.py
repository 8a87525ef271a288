"""Test hosts on this machine: systemd containers with a simulated kernel and GPU.

sandbox = Sandbox("test").up(["ubuntu2204"])
host = sandbox.hosts["ubuntu2204"]
host.run("lspci -nn").stdout
with host.fault("apt-lock"): ...
host.reset()
sandbox.down()
"""

from gpufleet.sandbox.errors import SandboxError
from gpufleet.sandbox.host import Host
from gpufleet.sandbox.kinds import GPU_KINDS, KINDS, MIRROR
from gpufleet.sandbox.sandbox import Sandbox
from gpufleet.sandbox.state import load_state

__all__ = ["GPU_KINDS", "KINDS", "MIRROR", "Host", "Sandbox", "SandboxError", "load_state"]
