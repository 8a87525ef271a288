"""k3s and RKE2 add the runtime nvidia when they start, unless a template of the user's omits it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.facts.model import NodeFacts
from tests.unit.hosts import bare_host
from tests.unit.toolkit.toolkit_setup import codes, file, installed, plan, runtime

PATH = "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"
PLUGIN = "plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes"
WITHOUT = f"version = 3\n[{PLUGIN}.runc]\nruntime_type = 'io.containerd.runc.v2'\n"
WITH = f"{WITHOUT}[{PLUGIN}.'nvidia']\nruntime_type = 'io.containerd.runc.v2'\n"


def node(text: str | None) -> NodeFacts:
    """A node of RKE2 with the toolkit, which a user installed."""
    rke2 = runtime("containerd", "2.1.4", unit="rke2-agent.service", config_path=PATH)
    return installed(bare_host(runtimes=rke2, files=file(PATH, text)), "1.20.1")


@pytest.mark.parametrize(("text", "code"), [(WITH, "GF410"), (WITHOUT, "GF447"), (None, "GF410")])
def test_the_generated_file_says_whether_the_runtime_is_there(text: str | None, code: str) -> None:
    """rancher/rke2#8752: it was not restarted. NVIDIA/gpu-operator#992: its template is another."""
    done = plan(node(text))
    assert codes(done) == [code]
    assert done.runtimes[0].activation == "none"


def test_a_first_installation_restarts_it() -> None:
    done = plan(replace(node(WITHOUT), packages={}))
    assert codes(done) == ["GF410"]
    assert done.runtimes[0].activation == "restart"
