"""Settings of the containerd role: data keys `containerd_*`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gpufleet.core.settings import Fingerprint, RoleSettings, Url


class ContainerdSettings(RoleSettings):
    """containerd, on hosts that need it for Kubernetes and have none."""

    prefix = "containerd_"

    install: Literal["auto", "distribution", "docker", "never"] = Field(
        "auto",
        description="The source of a containerd that is missing. `distribution`: its package "
        "`containerd`. `docker`: `containerd.io` from Docker's repository. `auto`: the "
        "distribution's if it is new enough, else Docker's.",
    )
    repo_url: Url | None = Field(
        None, description="URL of a mirror of `https://download.docker.com/linux`."
    )
    repo_key_fingerprint: Fingerprint | None = Field(
        None, description="Fingerprint of the mirror's signing key, if it is not Docker's."
    )
