"""Settings of the driver role: data keys `driver_*`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from gpufleet.core.settings import (
    DriverUrl,
    Fingerprint,
    RoleSettings,
    in_quotes,
    must_match,
    whole_version,
)


def _text_of_int(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


RequestedBranch = Annotated[
    str,
    BeforeValidator(_text_of_int),
    in_quotes("580"),
    must_match(r"[0-9]{3}", "three digits, such as 580; driver_version takes a whole version"),
]
RequestedDriver = Annotated[str, in_quotes("580.95.05"), whole_version("580.95.05")]


class DriverSettings(RoleSettings):
    """The driver of a host. Every default is the conservative choice."""

    prefix = "driver_"

    enabled: bool = Field(True, description="Install the driver.")
    branch: RequestedBranch | None = Field(
        None,
        description='Driver branch, for example "580". Default: the newest long-term branch '
        "that supports the host's distribution and GPUs and still gets fixes, else the newest.",
    )
    version: RequestedDriver | None = Field(
        None, description='Exact driver version, for example "580.178.04".'
    )
    modules: Literal["auto", "open", "proprietary"] = Field(
        "auto", description="Kernel modules; `auto` selects by GPU and branch."
    )
    build: Literal["dkms", "precompiled"] = Field(
        "dkms", description="Kernel modules: built by DKMS on the host, or precompiled."
    )
    profile: Literal["compute", "full"] = Field(
        "compute", description="`compute`: without X and GL packages. `full`: the complete driver."
    )
    source: Literal["nvidia", "distro"] = Field(
        "nvidia", description="NVIDIA's network repository, or the distribution's own packages."
    )
    repo_url: DriverUrl | None = Field(
        None,
        description="URL of a mirror of NVIDIA's CUDA repositories, up to `ubuntu2204/x86_64/`.",
    )
    repo_key_fingerprint: Fingerprint | None = Field(
        None, description="Fingerprint of the mirror's signing key, if it is not NVIDIA's."
    )
    repo_logins: str | None = Field(
        None,
        description="Path on the controller of a netrc file with names and passwords for "
        "that mirror and the one of `node_archives_url`; only its owner may read it.",
    )
    hold: bool = Field(True, description="Hold the driver packages at the installed version.")
    persistence: bool = Field(True, description="Run nvidia-persistenced.")
    allow_disruption: bool = Field(
        False, description="Change the driver even if GPU work is running on the host."
    )
    allow_mig_loss: bool = Field(
        False,
        description="Change the driver of a host with MIG devices that are not of `gpu_mig`, which "
        "destroys them.",
    )
    allow_change: bool = Field(
        False,
        description="Change an installed driver to the version, branch or modules that the "
        "settings select, on all hosts of the run at once. `gpufleet upgrade` needs no such "
        "permission: it goes host by host.",
    )
    allow_unknown: bool = Field(
        False,
        description="Install a branch that the catalog does not have, or a version that looks "
        "incomplete, from your own repository.",
    )
    mok_enrolled: bool = Field(
        False, description="With Secure Boot: the signing key of DKMS is enrolled in the firmware."
    )
