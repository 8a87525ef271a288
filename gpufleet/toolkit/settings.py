"""Settings of the container toolkit role: data keys `toolkit_*`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gpufleet.core.settings import (
    Fingerprint,
    HostFile,
    RoleSettings,
    ToolkitUrl,
    in_quotes,
    split_names,
    whole_version,
)

RequestedToolkit = Annotated[str, in_quotes("1.18.0"), whole_version("1.18.0")]
Runtime = Literal["docker", "containerd", "crio"]
Runtimes = Annotated[Literal["auto"] | tuple[Runtime, ...], BeforeValidator(split_names)]


class ToolkitSettings(RoleSettings):
    """The container toolkit of a host."""

    prefix = "toolkit_"

    enabled: bool = Field(True, description="Install the container toolkit.")
    version: RequestedToolkit | None = Field(
        None, description="Exact toolkit version. Default: the newest in the catalog for the host."
    )
    runtimes: Runtimes = Field(
        "auto", description="Runtimes to configure; `auto`: all installed ones."
    )
    default_runtime: bool = Field(
        False, description="Make `nvidia` the default runtime of docker, containerd and CRI-O."
    )
    cdi: bool = Field(True, description="Generate CDI specs and enable CDI where supported.")
    containerd_config: HostFile | None = Field(
        None, description="Path of containerd's configuration file. Default: detected."
    )
    restart: bool = Field(
        True, description="Restart a runtime after a configuration change; else report the need."
    )
    allow_disruption: bool = Field(
        False,
        description="Restart docker, or remove the toolkit, even if that stops running containers.",
    )
    allow_change: bool = Field(
        False,
        description="Change an installed toolkit to the version that the settings select, on all "
        "hosts of the run at once. `gpufleet upgrade --toolkit` needs no such permission.",
    )
    repo_url: ToolkitUrl | None = Field(
        None,
        description="URL of a mirror of the toolkit's repository: the folder that has `gpgkey` and "
        "`stable/`.",
    )
    repo_key_fingerprint: Fingerprint | None = Field(
        None,
        description="Fingerprint of the mirror's signing key, if it is not NVIDIA's.",
    )
    repo_logins: str | None = Field(
        None,
        description="Path on the controller of a netrc file with names and passwords for "
        "that mirror; only its owner may read it.",
    )
    hold: bool = Field(True, description="Hold the toolkit packages at the installed version.")
