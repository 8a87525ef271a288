"""Settings of an upgrade of a host's driver: data keys `upgrade_*`."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from gpufleet.core.settings import RoleSettings
from gpufleet.host.window import Window

_PERCENT = re.compile(r"0*([1-9]\d?|100)%")


def check_share(value: str | int) -> str | int:
    """Raises ValueError if the value is neither a number of hosts nor a percentage."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise ValueError("must be at least 1")
    elif not _PERCENT.fullmatch(str(value)):
        raise ValueError('must be a number of hosts, or a share such as "10%"')
    return value


def _window(value: str) -> str:
    Window.parse(value, "UTC")
    return value


def _zone(value: str) -> str:
    Window.parse("Mon-Sun 00:00-24:00", value)
    return value


def _url(value: str) -> str:
    """Raises ValueError if the value is not a server's URL, or contains a login: settings are
    shown."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an address such as http://prometheus.example:9090")
    if parts.username or parts.password:
        raise ValueError("must have no login: use an address that needs none")
    return value


def _names(value: str) -> str:
    """Raises ValueError if the value is not a regular expression."""
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"must be a regular expression: {error}") from error
    return value


def _words(value: str) -> str:
    if not shlex.split(value):
        raise ValueError('must be a command, such as "scontrol update nodename={host} …"')
    return value


Share = Annotated[str | int, AfterValidator(check_share)]
Command = Annotated[str, AfterValidator(_words)]
Step = Literal["look", "prepare", "take", "change", "restore"]
Subject = Literal["driver", "toolkit", "reboot", "sharing"]  # of an upgrade


class UpgradeSettings(RoleSettings):
    """How the drivers of a fleet are changed. Every default is the conservative choice."""

    prefix = "upgrade_"

    skip: bool = Field(False, description="Leave this host as it is.")
    canaries: int = Field(
        1, ge=1, description="Hosts of each group that go first, while the rest of it waits."
    )
    wave: Share = Field(
        "10%", description="Size of a wave, as a number of hosts or a share of all of them."
    )
    wave_by: str | None = Field(
        None,
        description="Data key, such as `rack`: a wave has only hosts with the same value of it.",
    )
    max_unavailable: Share = Field(
        1,
        description="Maximum number or share of hosts out of service at a time, including hosts "
        "whose roll-back failed. Ready nodes that others cordoned do not count.",
    )
    soak: int = Field(
        300, ge=0, description="Seconds from the end of a wave to the beginning of the next."
    )
    max_failed: int = Field(3, ge=1, description="Stop the run after this many failed hosts.")
    max_failed_in_a_row: int = Field(
        2, ge=1, description="Stop the run after this many failed hosts in a row."
    )
    window: Annotated[str, AfterValidator(_window)] | None = Field(
        None,
        description="When hosts may be taken out of service, for example "
        "`Mon-Thu 09:00-16:30`; several are separated by commas. Hosts in progress are finished.",
    )
    window_zone: Annotated[str, AfterValidator(_zone)] = Field(
        "UTC", description="Time zone of the window, such as `Europe/Berlin`."
    )
    alerts: Annotated[str, AfterValidator(_url)] | None = Field(
        None,
        description="Address of a Prometheus: while an alert fires there, or while it does not "
        "answer, no host is taken out of service. Alerts of severity info, with the label "
        "`upgrade: ignore`, and about hosts that the run has out of service do not count.",
    )
    alerts_ignored: Annotated[str, AfterValidator(_names)] = Field(
        "Watchdog|InfoInhibitor",
        description="Regular expression for alert names to ignore. The default alerts always "
        "fire, or only accompany others.",
    )
    wait: int = Field(
        3600,
        ge=0,
        description="Seconds to wait for GPU work on a host to end. If it does not end, the host "
        "is not changed.",
    )
    drain: Literal["auto", "gpu", "all"] = Field(
        "auto",
        description="Pods to evict from a Kubernetes node. `gpu`: pods that use GPUs; no step "
        "reboots the node. `all`: all pods. `auto`: `all` if the node may be rebooted "
        '(`node_reboot = "if_needed"`), else `gpu`. `--reboot` always uses `all`. DaemonSet pods '
        "that use GPUs leave last and return before the node does; other DaemonSet pods stay.",
    )
    jobs: Literal["wait", "evict"] = Field(
        "wait",
        description="Pods of Jobs, and pods with GPUs of controllers other than ReplicaSet, "
        "ReplicationController and StatefulSet: wait for their end, or evict them.",
    )
    evict_empty_dir: bool = Field(
        False,
        description="Evict pods with an emptyDir on a disk, whose data is lost. Pods with only an "
        "emptyDir in memory (`medium: Memory`) are evicted anyway.",
    )
    evict_unmanaged: bool = Field(
        False, description="Evict pods without a controller: nothing creates them again."
    )
    gpu_image: str = Field(
        "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0",
        description="Image of the pod that uses a GPU of a changed node before it is returned. It "
        "is pulled before the node is disturbed.",
    )
    node_timeout: int = Field(
        300,
        ge=1,
        description="Seconds to wait for a changed node to advertise its GPUs, and for that pod to "
        "finish.",
    )
    drain_command: Command | None = Field(
        None,
        description="Command on the controller that takes a host out of service and ends when it "
        "is idle; `{host}` is replaced by its name. May be run again.",
    )
    ready_command: Command | None = Field(
        None,
        description="Command on the controller that returns a host to service; as "
        "`upgrade_drain_command`.",
    )
    check_command: Command | None = Field(
        None,
        description="Command on the controller, run without a shell, that checks a changed host "
        "before it is returned; `{host}` is replaced by its name. An exit status other than 0 "
        "rolls it back.",
    )
    command_timeout: int = Field(
        900,
        ge=1,
        description="Seconds that a command on the controller may take, beyond `upgrade_wait`.",
    )
    validation_timeout: int = Field(
        120, ge=1, description="Seconds in which nvidia-smi has to answer after a change."
    )
    step: Step | None = Field(None, description="The step; `gpufleet upgrade` sets it.")
    subject: Subject = Field(
        "driver", description="What the run changes; `gpufleet upgrade` sets it."
    )
    run: str | None = Field(None, description="Name of the run; `gpufleet upgrade` sets it.")
