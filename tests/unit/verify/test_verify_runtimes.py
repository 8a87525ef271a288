"""The path at which the checks read a runtime's configuration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.verify.runtimes import configuration_path

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
