"""Facts of a host: the types that one command gathers and plan functions read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from gpufleet.core.distributions import Distribution
from gpufleet.core.entries import Modules, PackageManager
from gpufleet.core.versions import upstream_version
from gpufleet.facts.distribution import OsRelease as OsRelease
from gpufleet.facts.gpu import CdiSpec, Listed
from gpufleet.facts.health import ExporterAnswer, HostHealth, KubeletAnswer, RuntimeAnswer
from gpufleet.facts.record import EMPTY_RECORD, HostRecord

RUN_LOCK = "/run/gpufleet.lock"  # held by the run of gpufleet that changes the host
STEP_LOCK = f"{RUN_LOCK}.steps"  # held by each step, which may outlive a killed run


@dataclass(frozen=True, slots=True)
class Kernel:
    """The running kernel, and whether a module can be built for it."""

    release: str
    architecture: str  # as `uname -m` prints it
    headers: bool  # /lib/modules/<release>/build leads to a directory
    secure_boot: bool | None = None  # None if unreadable, or without EFI
    modules: bool = True  # /lib/modules/<release> exists


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One NVIDIA device on the PCI bus."""

    slot: str  # 0000:17:00.0
    device: int
    pci_class: int  # 24 bits: 0x030200
    driver: str | None = None  # kernel driver bound to it
    answers: bool = True  # False if its registers read as all ones


@dataclass(frozen=True, slots=True)
class ModuleOnDisk:
    """The output of `modinfo nvidia` for the running kernel."""

    version: str
    license: str  # "NVIDIA": proprietary; "Dual MIT/GPL": open
    path: str = ""
    signer: str = ""

    @property
    def flavour(self) -> Modules:
        return "proprietary" if self.license == "NVIDIA" else "open"


@dataclass(frozen=True, slots=True)
class DriverFile:
    """A file of the driver, and the packages that own it."""

    kind: str  # library, module, source (DKMS's)
    path: str
    owners: tuple[str, ...] | None  # packages, None if the database was not read


@dataclass(frozen=True, slots=True)
class DkmsModule:
    """One line of `dkms status`."""

    name: str
    version: str
    kernel: str  # "" if the module is only added
    state: str  # added, built, installed


@dataclass(frozen=True, slots=True)
class Package:
    """One package that gpufleet manages or examines."""

    name: str
    version: str  # apt: as dpkg prints it; rpm: [epoch:]version-release
    architecture: str
    state: str = "installed"  # apt: dpkg's second and third fields joined, when not "ok installed"

    @property
    def upstream(self) -> str:
        """The version without epoch and packaging revision: 580.95.05."""
        return upstream_version(self.version)


@dataclass(frozen=True, slots=True)
class ManagedFile:
    """A file with content that matters. `content` is None if the file does not exist."""

    path: str
    content: str | None
    mode: int = 0o644
    sha256: str = ""
    error: str = ""  # why it could not be read (not text, too large, permission)
    link: str = ""  # target, if the path is a symbolic link


@dataclass(frozen=True, slots=True)
class Service:
    """A systemd unit."""

    name: str
    load: str  # loaded, masked, error
    active: str  # active, inactive, failed
    enabled: str  # enabled, disabled, static, ""
    exec_start: str = ""  # the command line, for the runtimes and the persistence daemon
    started: str = ""  # microseconds from boot to its last start, "" if unknown
    changed: bool = False  # its files were changed since systemd read them
    with_containerd: bool = False  # it stops and starts with containerd.service

    @property
    def runs(self) -> bool:
        """True if it is active now and also after a reboot."""
        return self.active == "active" and self.enabled in ("enabled", "static")


@dataclass(frozen=True, slots=True)
class Runtime:
    """A container runtime found on the host."""

    name: Literal["docker", "containerd", "crio"]
    version: str
    unit: str  # docker.service, containerd.service, k3s.service, rke2-agent.service
    config_path: str
    running: bool
    containers: int = 0  # running now, 0 if unknown
    live_restore: bool = False
    runc_in_path: bool = True  # runc or crun, which nvidia-container-runtime calls


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that has an NVIDIA device open."""

    pid: int
    command: str  # as the kernel keeps it: at most 15 characters ("nvidia-persiste")
    devices: tuple[str, ...] = ()  # /dev/nvidia0, /dev/nvidiactl, …
    arguments: str = ""  # the first words of its command line
    cgroup: str = ""  # as in Daemon, "" if unknown

    def __str__(self) -> str:
        """The command line and process id, as users search for a process."""
        return f"{self.arguments or self.command} ({self.pid})"


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process that collects metrics or listens, and its cgroup."""

    pid: int
    command: str  # as the kernel keeps it: at most 15 characters
    cgroup: str = ""  # /system.slice/nvidia-dcgm.service, /system.slice/docker-<id>.scope, …

    @property
    def unit(self) -> str:
        """Its systemd service, or "" for a process of a container or a user."""
        last = self.cgroup.rsplit("/", 1)[-1]
        return last if last.endswith(".service") else ""

    @property
    def container(self) -> str:
        """The id of its container, 64 digits, or "" outside of containers."""
        found = re.search(r"[0-9a-f]{64}", self.cgroup)
        return found.group() if found else ""

    @property
    def in_pod(self) -> bool:
        return "kubepods" in self.cgroup


@dataclass(frozen=True, slots=True)
class Listener:
    """A TCP socket that listens on one of the requested ports."""

    address: str  # 127.0.0.1, 0.0.0.0, ::
    port: int
    daemon: Daemon | None = None  # its process, None if hidden


@dataclass(frozen=True, slots=True)
class Keyring:
    """A key that the host's package manager trusts."""

    path: str  # file, or the name of the gpg-pubkey package on rpm systems
    fingerprints: tuple[str, ...] = ()  # upper case, 40 digits, or 8 if only these are known


@dataclass(frozen=True, slots=True)
class ClusterHost:
    """The host's properties that kubeadm requires, and its part in a cluster."""

    name: str = ""  # host name in the kernel
    cgroups: int = 2  # version of the control groups
    processors: int = 0  # 0: unknown
    memory: int = 0  # KiB; 0: unknown
    swap: tuple[str, ...] = ()  # devices and files in use
    macs: tuple[str, ...] = ()  # of network cards, () in a container
    paths: frozenset[str] = frozenset()  # of kubeadm, static pods, etcd, CNI and its links
    authorities: frozenset[str] = frozenset()  # of its cluster: digests of certificates
    server: str = ""  # https://host:port of its cluster's API server, as users reach it
    advertised: str = ""  # host:port of the API server that runs here


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Everything that the roles, preflight and the reports must know about one host."""

    os: OsRelease
    kernel: Kernel
    boot_id: str
    clock: int  # seconds since 1970, by the host's clock, when the facts were gathered
    package_manager: PackageManager | None
    pci: tuple[PciDevice, ...] = ()
    taken: tuple[str, ...] = ()  # slots of the driver's GPUs, even if off the bus
    modules: dict[str, str | None] = field(default_factory=dict)  # loaded: name -> version
    loaded_flavour: Modules | None = None  # of the loaded nvidia module
    module_on_disk: ModuleOnDisk | None = None
    listed: Listed | None = None  # None without a loaded module or nvidia-smi
    library: str | None = None  # version in the name of the installed libnvidia-ml.so
    dkms: tuple[DkmsModule, ...] = ()
    device_nodes: tuple[str, ...] = ()  # /dev/nvidia0, /dev/nvidiactl, …
    packages: dict[str, Package] = field(default_factory=dict)
    holds: frozenset[str] = frozenset()  # apt: held names; rpm: versionlock lines
    broken: str = ""  # packages that the manager reports as unfinished, or ""
    lock_holder: str = ""  # process that holds the package manager's lock
    files: dict[str, ManagedFile] = field(default_factory=dict)
    keyrings: tuple[Keyring, ...] = ()
    services: dict[str, Service] = field(default_factory=dict)  # units with a unit file
    runtimes: dict[str, Runtime] = field(default_factory=dict)
    rootless_docker: bool = False  # a user runs a docker without root
    gpu_processes: tuple[GpuProcess, ...] = ()
    collectors: tuple[Daemon, ...] = ()  # processes that collect metrics of the GPUs
    listeners: tuple[Listener, ...] = ()  # on the requested ports
    machine_id: str = ""
    cluster_host: ClusterHost = ClusterHost()
    kubelet: bool = False  # a kubelet (or k3s, RKE2) runs here
    gpu_pods: int = 0  # pods that visibly use a GPU device on this host
    gpu_containers: int = 0  # running containers with GPUs, used or not
    provenance: HostRecord = EMPTY_RECORD  # /var/lib/gpufleet/provenance.json
    # runtime -> part of `provenance` that an unfinished run noted before it wrote
    noted_runtimes: dict[str, Any] = field(default_factory=dict)
    free_bytes: dict[str, int] = field(default_factory=dict)  # by path: /, /boot, /var, /usr
    unattended_upgrades: bool = False
    runfile_install: bool = False  # installed by NVIDIA's .run file
    operator_driver: bool = False  # /run/nvidia/driver: the GPU Operator's driver container
    foreign_driver: str = ""  # evidence of a driver without packages, or ""
    # the driver's libraries and module, if no package with a usual name is installed
    driver_files: tuple[DriverFile, ...] = ()
    controller: bool = False  # the machine that runs gpufleet is this host
    cdi_specs: tuple[CdiSpec, ...] = ()
    privileged: bool = True  # gathered as root; otherwise many facts are incomplete
    run_lock: str = ""  # run that last changed something since the boot
    busy: bool = False  # that run, or a step of it, is still active, and it is not this run
    health: HostHealth | None = None  # this and what follows: gathered only on request
    answers: dict[str, RuntimeAnswer] = field(default_factory=dict)  # by runtime that was asked
    kubelet_answer: KubeletAnswer | None = None
    exporter_answers: tuple[ExporterAnswer, ...] = ()

    @property
    def distribution(self) -> Distribution | None:
        """The catalog's entry of the host's distribution, or None if it has no entry."""
        return self.os.distribution

    @property
    def texts(self) -> dict[str, str]:
        """The text of every configuration file that was readable, by path."""
        files = self.files.items()
        return {path: file.content for path, file in files if file.content is not None}

    @property
    def gpus(self) -> tuple[PciDevice, ...]:
        return tuple(device for device in self.pci if device.pci_class >> 8 in (0x0300, 0x0302))

    @property
    def nvswitches(self) -> tuple[PciDevice, ...]:
        return tuple(device for device in self.pci if device.pci_class >> 8 == 0x0680)

    @property
    def loaded_driver(self) -> str | None:
        """Version of the loaded nvidia module."""
        return self.modules.get("nvidia")

    @property
    def installed_flavour(self) -> Modules | None:
        """The flavour of the module on disk, or else of the loaded one."""
        return self.module_on_disk.flavour if self.module_on_disk else self.loaded_flavour
