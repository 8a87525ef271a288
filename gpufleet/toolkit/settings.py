"""Settings of the container toolkit role: data keys `toolkit_*`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gpufleet.core.settings import (
    Fingerprint,
    HostFile,
    RoleSettings,
    ToolkitUrl,
    ToolkitVersion,
    several,
)

Runtime = Literal["docker", "containerd", "crio"]
Runtimes = Annotated[Literal["auto"] | tuple[Runtime, ...], BeforeValidator(several)]


class ToolkitSettings(RoleSettings):
    """How containers get GPUs on a host."""

    prefix = "toolkit_"

    enabled: bool = Field(True, description="Install the container toolkit at all.")
    version: ToolkitVersion | None = Field(
        None, description="Exact toolkit version. Default: the catalog's newest for the host."
    )
    runtimes: Runtimes = Field(
        "auto", description="Runtimes to configure; `auto`: those that are installed."
    )
    default_runtime: bool = Field(
        False, description="Make `nvidia` the default runtime of docker, containerd and CRI-O."
    )
    cdi: bool = Field(True, description="Write CDI specs and switch CDI on where it can be.")
    containerd_config: HostFile | None = Field(
        None, description="containerd's configuration file, where it is not found by itself."
    )
    restart: bool = Field(
        True, description="Restart a runtime whose configuration changed; else say it is needed."
    )
    allow_disruption: bool = Field(
        False, description="Restart docker although that stops the containers that run."
    )
    repo_url: ToolkitUrl | None = Field(
        None, description="Mirror of the toolkit's repository; the part before `stable/deb/`."
    )
    repo_key_fingerprint: Fingerprint | None = Field(
        None,
        description="Fingerprint of the mirror's own signing key, when it is not NVIDIA's.",
    )
    repo_logins: str | None = Field(
        None,
        description="Path, where gpufleet runs, of a file with names and passwords for "
        "that mirror, in netrc's form, readable by its owner alone.",
    )
    hold: bool = Field(True, description="Hold the toolkit's packages at the installed version.")
