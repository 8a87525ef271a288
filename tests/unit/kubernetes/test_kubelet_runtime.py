"""containerd as people have it, beside what the kubelet requires."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.kubernetes.role import ROLE
from gpufleet.node.plan import NodePlan
from gpufleet.toolkit.role import ROLE as TOOLKIT
from tests.unit.kubernetes.cluster_hosts import CONFIG, CONTAINERD, codes, host, node_of

DEFAULTS = Path(__file__).resolve().parents[1] / "toolkit" / "defaults"
CRI, CRI_2 = "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"
MIRRORS = {"registry.k8s.io": "http://mirror/v2/registry.k8s.io"}
DROP_IN = "/etc/containerd/conf.d/50-site.toml"


def with_files(version: str, text: str, **others: str) -> NodeFacts:
    files = {path: ManagedFile(path, content) for path, content in others.items()}
    return host(
        runtimes={"containerd": replace(CONTAINERD, version=version)},
        files={CONFIG: ManagedFile(CONFIG, text), **files},
    )


def written(plan: NodePlan) -> dict[str, Any]:
    found = plan.of(ROLE)
    assert found is not None
    assert found.containerd is not None
    assert found.containerd.change is not None
    return tomlkit.parse(found.containerd.change.after or "").unwrap()


@pytest.mark.parametrize("version", ["2.2.9", "2.3.7"])
def test_the_drop_in_of_the_toolkit_has_the_driver_of_the_kubelet(version: str) -> None:
    """In the first run: `runc` in the main file gets it by a later role."""
    text = (DEFAULTS / f"containerd-{version}.toml").read_text()
    plan = node_of(with_files(version, text))
    assert codes(plan) == []
    assert "bin_dir" not in set(_changed(text, written(plan)))
    toolkit = plan.of(TOOLKIT)
    assert toolkit is not None
    (runtime,) = toolkit.runtimes
    assert runtime.config != CONFIG
    assert runtime.change is not None
    assert "SystemdCgroup = true" in (runtime.change.after or "")


def _changed(text: str, after: dict[str, Any]) -> list[str]:
    cni = tomlkit.parse(text).unwrap()["plugins"][CRI]["cni"]
    return [key for key, value in after["plugins"][CRI]["cni"].items() if cni.get(key) != value]


# github.com/containerd/containerd/pull/11311: containerd 2.1 and newer do not start with both
@pytest.mark.parametrize(
    ("version", "cni", "wanted"),
    [
        (
            "2.2.9",
            "bin_dirs = ['/opt/site/cni']\n",
            {"bin_dirs": ["/opt/site/cni", "/opt/cni/bin"]},
        ),
        ("2.2.9", "bin_dir = '/usr/lib/cni'\n", {"bin_dir": "/opt/cni/bin"}),
        ("2.2.9", "", {"bin_dirs": ["/opt/cni/bin"]}),
        ("2.0.14", "", {"bin_dir": "/opt/cni/bin"}),
    ],
)
def test_programs_of_cni_are_found_in_the_way_of_the_version(
    version: str, cni: str, wanted: dict[str, Any]
) -> None:
    text = f"version = 3\n[plugins.'{CRI}'.cni]\nconf_dir = '/etc/cni/net.d'\n{cni}"
    found = written(node_of(with_files(version, text)))["plugins"][CRI]["cni"]
    assert found == {"conf_dir": "/etc/cni/net.d", **wanted}


# as apecloud/kubeblocks writes it (containerd.config.toml.tpl, read 2026-11-27)
def test_folders_of_registries_stay_and_ours_comes_last() -> None:
    folders = "/etc/site/certs.d:/etc/docker/certs.d"
    text = f"version = 2\n[plugins.'{CRI_2}'.registry]\nconfig_path = '{folders}'\n"
    facts = with_files("1.7.24", text)
    alone = written(node_of(facts))["plugins"][CRI_2]["registry"]
    assert alone == {"config_path": folders}
    both = written(node_of(facts, registry_mirrors=MIRRORS))["plugins"][CRI_2]["registry"]
    assert both == {"config_path": f"{folders}:/etc/containerd/certs.d"}


def test_mirrors_in_the_file_stay_and_stop_others() -> None:
    """`mirrors` cannot be set when `config_path` is: the CRI plugin does not load."""
    table = f"plugins.'{CRI_2}'.registry.mirrors.'docker.io'"
    text = f"version = 2\n[{table}]\nendpoint = ['http://mirror:5000']\n"
    facts = with_files("1.7.24", text)
    alone = node_of(facts)
    assert codes(alone) == []
    assert "config_path" not in written(alone)["plugins"][CRI_2]["registry"]
    assert codes(node_of(facts, registry_mirrors=MIRRORS)) == ["GF090"]


@pytest.mark.parametrize(
    ("drop_in", "expected"),
    [
        (f"[plugins.'{CRI}'.containerd.runtimes.runc.options]\nSystemdCgroup = false\n", ["GF089"]),
        (f"[plugins.'{CRI}'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n", []),
        (f"[plugins.'{CRI}'.containerd.runtimes.kata]\nruntime_type = 'kata'\n", []),
        ("disabled_plugins = ['io.containerd.cri.v1.images']\n", ["GF945"]),
    ],
)
def test_files_that_are_imported_count(drop_in: str, expected: list[str]) -> None:
    main = "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n"
    plan = node_of(with_files("2.2.9", main, **{DROP_IN: f"version = 3\n{drop_in}"}))
    assert codes(plan) == expected
