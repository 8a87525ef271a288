"""Settings of a host as a whole: data keys `node_*`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gpufleet.core.settings import DriverUrl, Fingerprint, RoleSettings


class HostSettings(RoleSettings):
    """What holds for all roles of a host. Every default is the conservative choice."""

    prefix = "node_"
    reserved = False

    gpus: int | None = Field(
        None,
        ge=0,
        le=1024,
        description="How many GPUs the host must have; fewer are a fault. Default: the number at "
        "its last change.",
    )
    reboot: Literal["never", "if_needed"] = Field(
        "never", description="Whether to reboot a host if a change requires it."
    )
    reboot_timeout: int = Field(1800, ge=30, le=7200, description="Seconds to wait for a reboot.")
    lock_timeout: int = Field(
        300,
        ge=0,
        le=7200,
        description="Seconds to wait for another package manager, or another run, to finish.",
    )
    archives: bool = Field(
        False,
        description="Switch discontinued repositories (CentOS 7 base, updates, extras; EPEL 7) to "
        "their archives.",
    )
    archives_url: DriverUrl | None = Field(
        None,
        description="URL of a mirror of those archives, up to `7.9.2009/os/x86_64/` and "
        "`epel/7/x86_64/`; EPEL's key is at `epel/RPM-GPG-KEY-EPEL-7`. Its login is in the file "
        "that `driver_repo_logins` names.",
    )
    archives_key_fingerprint: Fingerprint | None = Field(
        None,
        description="Fingerprint of the key at the mirror's `epel/RPM-GPG-KEY-EPEL-7`, if it is "
        "not EPEL's.",
    )
