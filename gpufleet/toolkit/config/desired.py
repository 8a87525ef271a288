"""The input of a merge: the desired settings of one runtime."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpufleet.toolkit.config.layers import Layers


@dataclass(frozen=True, slots=True)
class Reads:
    """docker: non-JSON texts that the program accepts."""

    blank: bool = True  # empty, or only white space
    mark: bool = True  # a byte order mark before the object


@dataclass(frozen=True, slots=True)
class DesiredRuntime:
    """The desired configuration of one runtime, from settings, facts and catalog."""

    file: str  # path of the file, for messages
    name: str = "nvidia"
    binary: str = "/usr/bin/nvidia-container-runtime"
    default: bool = False  # make it the default runtime
    cdi: bool = False  # enable CDI explicitly: not if it is on by default or unsupported
    layers: Layers = field(default_factory=Layers)  # the files that the runtime reads, as they are
    fills_maps: bool = True  # containerd: built-in runtimes stay if a file names another one
    new_version: int = 2  # containerd: `version` of a configuration file that we create
    newest_version: int = 4  # containerd: the newest `version` that the program supports
    reads: Reads = Reads()
    systemd_cgroups: bool = False  # containerd: a kubelet will use systemd's control groups
