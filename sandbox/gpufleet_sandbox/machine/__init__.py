"""The simulated machine under a sandbox host: kernel modules, PCI bus, NVML.

`build(cache)` compiles the folder that hosts mount at /usr/lib/sim; `nvidia_smi(cache)` returns the
real nvidia-smi of this machine's distribution.
"""

from gpufleet_sandbox.machine.build import build
from gpufleet_sandbox.machine.nvidia import nvidia_smi, nvml_header

__all__ = ["build", "nvidia_smi", "nvml_header"]
