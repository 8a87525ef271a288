"""A user's configuration of containerd, merged with the requirements of the kubelet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.kubernetes.role import ROLE
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.toolkit.record import ToolkitEntry
from gpufleet.toolkit.role import ROLE as TOOLKIT
from tests.unit.hosts import record_of
from tests.unit.kubernetes.cluster_hosts import CONFIG, CONTAINERD, codes, host, node_of

DEFAULTS = Path(__file__).resolve().parents[1] / "toolkit" / "defaults"
CRI, CRI_2 = "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"
IMAGES = "io.containerd.cri.v1.images"
MIRRORS = {"registry.k8s.io": "http://mirror/v2/registry.k8s.io"}
SHIM = "io.containerd.runc.v2"
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
    """In the first run already, in which a later role sets it for `runc` in the main file."""
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


def test_from_2_1_on_the_folder_of_mirrors_is_alone() -> None:
    """The default file of 2.2.0 has two folders, which pulls by the transfer service take for
    one."""
    folders = "/etc/containerd/certs.d:/etc/docker/certs.d"
    text = f"version = 3\n[plugins.'{IMAGES}'.registry]\nconfig_path = '{folders}'\n"
    plan = node_of(with_files("2.2.9", text), registry_mirrors=MIRRORS)
    assert codes(plan) == []
    assert written(plan)["plugins"][IMAGES]["registry"]["config_path"] == "/etc/containerd/certs.d"
    alone = written(node_of(with_files("2.2.9", text)))["plugins"][IMAGES]["registry"]
    assert alone["config_path"] == folders


@pytest.mark.parametrize("option", ["use_local_image_pull", "discard_unpacked_layers"])
def test_from_2_1_on_another_folder_of_mirrors_stops_ours(option: str) -> None:
    text = f"version = 3\n[plugins.'{IMAGES}'.registry]\nconfig_path = '/etc/site'\n"
    facts = with_files("2.2.9", text)
    assert codes(node_of(facts)) == []
    assert codes(node_of(facts, registry_mirrors=MIRRORS)) == ["GF091"]
    local = f"version = 3\n[plugins.'{IMAGES}']\n{option} = true\n"
    plan = node_of(with_files("2.2.9", f"{local}registry.config_path = '/etc/site'\n"),
                   registry_mirrors=MIRRORS)  # fmt: skip
    assert codes(plan) == []
    both = written(plan)["plugins"][IMAGES]["registry"]["config_path"]
    assert both == "/etc/site:/etc/containerd/certs.d"


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
        (
            f"[plugins.'{CRI}'.containerd.runtimes.nvidia]\nruntime_type = '{SHIM}'\n",
            ["GF089"],
        ),
        ("disabled_plugins = ['io.containerd.cri.v1.images']\n", ["GF945"]),
    ],
)
def test_files_that_are_imported_count(drop_in: str, expected: list[str]) -> None:
    main = "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n"
    plan = node_of(with_files("2.2.9", main, **{DROP_IN: f"version = 3\n{drop_in}"}))
    assert codes(plan) == expected


@pytest.mark.parametrize("plugin", [CRI, "io.containerd.cri.v1.images"])
def test_mirrors_in_an_imported_file_stop_others(plugin: str) -> None:
    main = "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n"
    table = f"[plugins.'{plugin}'.registry.mirrors.'docker.io']\nendpoint = ['http://m']\n"
    facts = with_files("2.2.9", main, **{DROP_IN: f"version = 3\n{table}"})
    assert codes(node_of(facts)) == []
    assert codes(node_of(facts, registry_mirrors=MIRRORS)) == ["GF090"]


def test_a_node_with_the_toolkit_gets_the_driver_of_the_kubelet_in_its_drop_in() -> None:
    """`gpufleet apply` wrote the drop-in before the host became a node."""
    text = (DEFAULTS / "containerd-2.2.9.toml").read_text()
    facts = with_files("2.2.9", text)
    settings, _ = load_node_settings({})
    assert settings is not None
    first = plan_node(settings, facts, load_catalog(), 0).of(TOOLKIT)
    assert first is not None
    (runtime,) = first.runtimes
    assert runtime.change is not None
    before = runtime.change.after or ""
    assert "SystemdCgroup" not in before
    record = record_of(toolkit=ToolkitEntry(runtimes={"containerd": runtime.as_record()}).as_json())
    files = {**facts.files, runtime.config: ManagedFile(runtime.config, before)}
    plan = node_of(replace(facts, files=files, provenance=record))
    assert codes(plan) == []
    later = plan.of(TOOLKIT)
    assert later is not None
    assert later.runtimes[0].change is not None
    assert "SystemdCgroup = true" in (later.runtimes[0].change.after or "")


def test_the_finding_names_the_file_that_defines_the_runtime() -> None:
    main = "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n"
    runtimes = f"version = 3\n[plugins.'{CRI}'.containerd.runtimes"
    later = f"{runtimes}.kata]\nruntime_type = 'kata'\n"
    ours = f"{runtimes}.nvidia]\nruntime_type = '{SHIM}'\n"
    facts = with_files(
        "2.2.9", main, **{DROP_IN: ours, "/etc/containerd/conf.d/60-kata.toml": later}
    )
    (finding,) = node_of(facts).parts[-1].findings
    assert (finding.code, finding.message.count(DROP_IN)) == ("GF089", 1)
    assert DROP_IN in finding.remedy


def test_the_folder_of_mirrors_is_that_of_the_last_file() -> None:
    """containerd merges the files: a drop-in overrides the main file."""
    table = f"[plugins.'{IMAGES}'.registry]\n"
    main = f"version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n{table}"
    for folders, drop_in, expected in (
        ("/etc/site", "/etc/containerd/certs.d", []),
        ("/etc/containerd/certs.d", "/etc/site", ["GF091"]),
        ("/etc/site:/etc/containerd/certs.d", "", ["GF091"]),
    ):
        text = f"version = 3\n{table}config_path = '{drop_in}'\n" if drop_in else "version = 3\n"
        facts = with_files("2.2.9", f"{main}config_path = '{folders}'\n", **{DROP_IN: text})
        assert codes(node_of(facts, registry_mirrors=MIRRORS)) == expected
