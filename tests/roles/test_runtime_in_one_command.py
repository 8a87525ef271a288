"""A runtime's file is written and taken up in one command: a kill comes before or after both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpufleet.facts.model import ManagedFile, Runtime, Service
from gpufleet.node.catalog import load_catalog
from gpufleet.toolkit.operations import configure_runtime
from gpufleet.toolkit.plan import plan_toolkit
from gpufleet.toolkit.settings import ToolkitSettings
from tests.unit.hosts import bare_host

FILES = {"docker": "/etc/docker/daemon.json", "containerd": "/etc/containerd/config.toml"}


@pytest.mark.parametrize("name", FILES)
def test_the_command_that_writes_also_activates(carry_out: Callable[..., Any], name: str) -> None:
    version = {"docker": "27.5.1", "containerd": "1.7.27"}[name]
    runtime = Runtime(name, version, f"{name}.service", FILES[name], running=True)
    runtime = replace(runtime, live_restore=True)
    facts = bare_host(
        files={runtime.config_path: ManagedFile(runtime.config_path, None)},
        runtimes={name: runtime},
        services={runtime.unit: Service(runtime.unit, "loaded", "active", "enabled")},
    )
    (plan,) = plan_toolkit(ToolkitSettings(), facts, load_catalog()).runtimes
    assert (bool(plan.changes), plan.activation) == (True, "restart")
    sent = carry_out(lambda: configure_runtime("Configure", facts, plan)).commands
    (last,) = [text for text in sent if "gpufleet-runtime_config" in text]
    assert "&& sh -c" in last.split("gpufleet-runtime_config")[1]
    assert "gpufleet-activate" in last
    assert sent.index(last) == len(sent) - 1
