"""How the checks read a runtime's configuration."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import testinfra

from gpufleet.verify.probe import HostProbe
from gpufleet.verify.runtimes import CheckedRuntime, configuration_path

DROP_IN = "/etc/containerd/conf.d/99-gpufleet-nvidia.toml"


@pytest.mark.parametrize(
    ("record", "name", "path"),
    [
        ({}, "docker", "/etc/docker/daemon.json"),  # wanted by the inventory, and not recorded
        ({}, "crio", "/etc/crio/crio.conf"),
        ({"docker": None}, "docker", "/etc/docker/daemon.json"),
        ({"docker": {"config": "/srv/d.json"}}, "docker", "/srv/d.json"),
        ({"docker": {"config": "/srv/d.json"}}, "containerd", "/etc/containerd/config.toml"),
        ({"containerd": {"config": DROP_IN}}, "containerd", "/etc/containerd/config.toml"),
    ],
)
def test_the_file_of_the_record_or_else_the_usual_one(
    record: dict[str, Any], name: str, path: str
) -> None:
    for toolkit in ({"runtimes": record}, *([] if record else [{}, {"runtimes": None}])):
        node: Any = SimpleNamespace(toolkit=toolkit, data={})
        assert configuration_path(node, name) == path


def test_the_inventory_names_another_file() -> None:
    node: Any = SimpleNamespace(toolkit={}, data={"toolkit_containerd_config": "/srv/c.toml"})
    assert configuration_path(node, "containerd") == "/srv/c.toml"
    assert configuration_path(node, "docker") == "/etc/docker/daemon.json"


@pytest.mark.parametrize(
    ("programs", "why"),
    [
        ({"crio": "echo [crio.runtime.runtimes.nvidia]"}, None),
        ({"crio": "exit 3", "crio-status": "echo [crio.runtime.runtimes.nvidia]"}, None),
        ({"crio": "echo [crio.runtime]"}, "`crio status config` has none"),
        (
            {"crio": "echo unknown; exit 3"},
            "its configuration is not known: unknown",
        ),
    ],
)
def test_the_configuration_of_a_running_cri_o(
    programs: dict[str, str], why: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cri-o/cri-o#6557: before 1.27 the program was crio-status."""
    for name, text in {"systemctl": "exit 0", **programs}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    probe = HostProbe(testinfra.get_host("local://"))
    sections = probe.script("runtimes.sh", "", "", "/etc/crio/crio.conf")
    node: Any = SimpleNamespace(runtime_sections=sections)
    assert CheckedRuntime("crio", node).ignorance == why
