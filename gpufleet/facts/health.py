"""The health of a host's GPUs: readings of nvidia-smi, and errors in the kernel's log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

BUSY_STATES = (0, 1, 2)  # performance states of a GPU that computes


@dataclass(frozen=True, slots=True)
class GpuHealth:
    """The readings of one GPU. None: the driver or the GPU does not have the reading."""

    slot: str  # 0000:17:00.0
    trouble: str = ""  # why it cannot be read: "GPU is lost. …", "Unknown Error"
    model: str | None = None
    uuid: str | None = None
    vbios: str | None = None
    persistence: str | None = None  # Enabled, Disabled; so are the modes
    mig_mode: str | None = None
    mig_pending: str | None = None
    ecc_mode: str | None = None
    ecc_pending: str | None = None
    # errors in memory since the driver was loaded or the GPU was reset
    ecc_volatile_corrected: int | None = None
    ecc_volatile_uncorrected: int | None = None
    sram_threshold_exceeded: bool | None = None
    memory_unrepairable: bool | None = None
    channel_repair_pending: bool | None = None
    tpc_repair_pending: bool | None = None
    remapped_uncorrected: int | None = None  # rows
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    remap_banks_exhausted: int | None = None  # banks without a spare row
    inforom_corrupted: bool | None = None  # None: nvidia-smi did not say so
    retired_pages: int | None = None
    retirement_pending: bool | None = None
    reset_required: bool | None = None  # until driver 570
    recovery_action: str | None = None  # None and Reset, Reboot, Drain P2P, Drain and Reset
    slowdowns: frozenset[str] | None = None  # active ones: hw_thermal_slowdown, sw_power_cap, …
    temperature: int | None = None  # °C
    temperature_margin: int | None = None  # °C below the slowdown
    memory_temperature: int | None = None
    memory_temperature_margin: int | None = None  # °C below the limit
    power_limit: int | None = None  # W
    power_limit_default: int | None = None
    utilization: int | None = None  # %
    performance_state: int | None = None  # 0 is the fastest
    pcie_generation: int | None = None  # lower on an idle GPU
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    memory_mib: int | None = None
    fabric_state: str | None = None  # Not Started, In Progress, Completed
    fabric_status: str | None = None  # Success, or an error
    fabric_bandwidth: str | None = None  # Full, Degraded
    fabric_route_unhealthy: bool | None = None
    nvlinks_active: int | None = None
    nvlinks_inactive: int | None = None
    nvlink_recoveries: int | None = None

    @property
    def busy(self) -> bool:
        """True if it works at a high clock: an idle GPU slows its PCIe link down."""
        return bool(self.utilization) and self.performance_state in BUSY_STATES


@dataclass(frozen=True, slots=True)
class RuntimeAnswer:
    """What a running container runtime says of itself."""

    answered: bool = False  # within its time
    default: str = ""  # default runtime
    runtimes: tuple[str, ...] = ()  # those that it knows, () if it does not say
    cri: Mapping[str, str] = field(default_factory=dict)  # containerd's plugins for CRI -> state
    # runtime -> cgroup driver: systemd, cgroupfs; under "" that of all, as CRI-O has it
    cgroups: Mapping[str, str] = field(default_factory=dict)

    @property
    def cgroup_driver(self) -> str:
        """The cgroup driver of the default runtime, or ""."""
        return self.cgroups.get(self.default, "") or self.cgroups.get("", "")


@dataclass(frozen=True, slots=True)
class KubeletAnswer:
    """The options of the running kubelet."""

    version: str  # v1.34.1, or ""
    cgroups: str  # cgroup driver: systemd, cgroupfs
    endpoint: str = ""  # socket of its runtime, or "" for its default


@dataclass(frozen=True, slots=True)
class ExporterAnswer:
    """The answer of an exporter of DCGM's metrics on its own port."""

    age: int  # seconds since its process was started
    port: int
    status: int = 0  # of HTTP, 0 without an answer in time
    samples: int = 0  # of DCGM's fields
    gpus: frozenset[str] = frozenset()  # UUIDs


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """A line of the kernel's log about an error of a GPU (xid) or an NVSwitch (sxid)."""

    kind: Literal["xid", "sxid"]
    code: int
    slot: str  # 0000:17:00.0
    time: int | None = None  # seconds since 1970, if the log has times
    text: str = ""  # the rest of the line
    fatal: bool | None = None  # of an SXid


@dataclass(frozen=True, slots=True)
class HostHealth:
    """The health of a host's GPUs."""

    gpus: tuple[GpuHealth, ...] = ()
    error: str | None = None  # of nvidia-smi: "" if it succeeded, None if it did not run
    # the newest since the boot or the last load of the driver, oldest first
    events: tuple[KernelEvent, ...] = ()
    log_since: int | None = None  # time of its first line, if it is readable
    log_complete: bool = False  # the log reaches back to the boot
    read_at: int | None = None  # by the host's clock, seconds since 1970
