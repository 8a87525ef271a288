"""Settings of the driver role: data keys `driver_*`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gpufleet.core.settings import Branch, DriverUrl, DriverVersion, Fingerprint, RoleSettings


class DriverSettings(RoleSettings):
    """What driver a host should have. Every default is the careful choice."""

    prefix = "driver_"

    enabled: bool = Field(True, description="Install a driver at all.")
    branch: Branch | None = Field(
        None,
        description='Driver branch, for example "580". Default: the newest long-term branch that '
        "the host's distribution and GPUs can have.",
    )
    version: DriverVersion | None = Field(
        None,
        description='Exact driver version, for example "580.159.03"; installed exactly and held.',
    )
    modules: Literal["auto", "open", "proprietary"] = Field(
        "auto", description="Kernel modules; `auto` chooses by GPU and branch."
    )
    build: Literal["dkms", "precompiled"] = Field(
        "dkms", description="Modules built on the host by DKMS, or precompiled by the distributor."
    )
    profile: Literal["compute", "full"] = Field(
        "compute", description="`compute`: no X or GL packages. `full`: the whole driver."
    )
    source: Literal["nvidia", "distro"] = Field(
        "nvidia", description="NVIDIA's network repository, or the distribution's own packages."
    )
    repo_url: DriverUrl | None = Field(
        None,
        description="Mirror of NVIDIA's CUDA repositories; the part before `ubuntu2204/x86_64/`.",
    )
    repo_key_fingerprint: Fingerprint | None = Field(
        None,
        description="Fingerprint of the mirror's own signing key, when it is not NVIDIA's.",
    )
    repo_logins: str | None = Field(
        None,
        description="Path, where gpufleet runs, of a file with names and passwords for "
        "that mirror and the one of the archives, in netrc's form, readable by its owner alone.",
    )
    archives: bool = Field(
        False,
        description="Switch repositories that are gone (CentOS 7 base, updates, extras; EPEL 7) to "
        "their archives.",
    )
    archives_url: DriverUrl | None = Field(
        None,
        description="Mirror of those archives: the part before `7.9.2009/os/x86_64/` and "
        "`epel/7/x86_64/`; EPEL's key is at `epel/RPM-GPG-KEY-EPEL-7` there.",
    )
    archives_key_fingerprint: Fingerprint | None = Field(
        None,
        description="Fingerprint of the key at the mirror's `epel/RPM-GPG-KEY-EPEL-7`, when it is "
        "not EPEL's.",
    )
    hold: bool = Field(True, description="Hold the driver's packages at the installed version.")
    reboot: Literal["never", "if_needed"] = Field(
        "never", description="Whether a host may be rebooted when a driver change needs it."
    )
    reboot_timeout: int = Field(1800, ge=30, le=7200, description="Seconds to wait for a reboot.")
    persistence: bool = Field(True, description="Run nvidia-persistenced.")
    allow_disruption: bool = Field(
        False, description="Change the driver although GPU work runs on the host."
    )
    mok_enrolled: bool = Field(
        False,
        description="Under Secure Boot: the key that DKMS signs with is enrolled in the firmware.",
    )
    lock_timeout: int = Field(
        300,
        ge=0,
        le=7200,
        description="Seconds to wait for another package manager, or another run, to finish.",
    )
