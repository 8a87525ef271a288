"""A node by k3s: its files, its plan, its removal. k3s itself has never been run here."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from errno import EACCES
from pathlib import Path
from typing import Any

import pytest

from gpufleet.kubernetes.k3s.config import node_files
from gpufleet.kubernetes.k3s.plan import STATE
from gpufleet.kubernetes.notes import BEGUN
from gpufleet.kubernetes.role import ROLE
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, steps
from gpufleet.node.removal import plan_removal
from gpufleet.node.settings import load_settings
from tests.unit.hosts import record_of
from tests.unit.kubernetes.cluster_hosts import PLANE, WORKER, codes, joined
from tests.unit.kubernetes.k3s_hosts import (
    FULL,
    IMAGES,
    K3S,
    VERSION,
    a_node,
    bare,
    data,
    node_of,
    plan_of,
    settings_of,
    with_paths,
)

GOLDEN = Path(__file__).parent / "golden"


def written(part: str, version: str = VERSION, **more: Any) -> str:
    """The files of a node, one after the other, with path and mode."""
    known = load_catalog().kubernetes.k3s
    parts = node_files(settings_of(**more), known, version, part)  # type: ignore[arg-type]
    return "\n".join(f"==> {each.path} {each.mode:04o}\n{each.content}" for each in parts)


@pytest.mark.parametrize("part", ["control-plane", "worker"])
@pytest.mark.parametrize("kind", ["least", "full"])
def test_the_files_of_a_node(part: str, kind: str) -> None:
    name = f"k3s-{'server' if part == 'control-plane' else 'agent'}-{kind}.txt"
    assert written(part, **(FULL if kind == "full" else {})) == (GOLDEN / name).read_text()


@pytest.mark.parametrize("name", ["disable", "disable+", "etcd-s3-bucket", "kube-apiserver-arg"])
def test_an_agent_gets_no_option_that_it_ends_over(name: str) -> None:
    """k3s ends over an option of its configuration that the command does not know."""
    config = {name: ["x"], "kubelet-arg": ["max-pods=200"]}
    agent, server = (written(part, k3s_config=config) for part in ("worker", "control-plane"))
    assert f"\n{name}:\n- x\n" in server
    assert f"\n{name}:" not in agent
    assert "\nkubelet-arg:\n- max-pods=200\n" in agent


def shown(node: NodePlan) -> str:
    """Steps and findings of the role."""
    found = [f"{each.code} {each.message}" for part in node.parts if part.role is ROLE
             for each in part.findings]  # fmt: skip
    lines = [line for line in steps(node) if line.startswith("kubernetes:")]
    return "\n".join([*lines, *found]) + "\n"


def cases() -> dict[str, NodePlan]:
    """What the golden plans are of."""
    begun = with_paths(BEGUN, f"{K3S}/config.yaml")
    return {
        "server": node_of(bare()),
        "agent": node_of(bare(), WORKER),
        "converged": node_of(a_node()),
        "broken-off": node_of(bare(cluster_host=begun)),
        "changed": node_of(a_node(), registry_mirrors=FULL["registry_mirrors"]),
        "upgrade-refused": node_of(a_node(), version="v1.32.3+k3s1"),
        "servers-refused": node_of(
            bare(), replace(PLANE, control_planes=("gpu-01", "gpu-02", "gpu-03")),
            endpoint="k8s.lab.example.com",
        ),
    }  # fmt: skip


def test_plans() -> None:
    found = "\n".join(f"==> {name}\n{shown(node)}" for name, node in cases().items())
    assert found == (GOLDEN / "k3s-plans.txt").read_text()


def test_a_node_of_ours_is_converged() -> None:
    for place in (PLANE, WORKER):
        facts = a_node(place)
        assert codes(node_of(facts, place)) == []
        assert plan_of(facts, place).converged


def test_what_is_taken_out_of_the_inventory_ends_on_the_host() -> None:
    """k3s uses the files as long as they are there."""
    own = {"registry_mirrors": FULL["registry_mirrors"], "k3s_containerd": FULL["k3s_containerd"]}
    facts = a_node(**own)
    assert plan_of(facts, **own).converged
    digests = {path: each.sha256 for path, each in facts.files.items()}
    recorded = facts.provenance.model_copy(update={"files": digests})
    plan = plan_of(replace(facts, provenance=recorded))
    assert {each.path.rpartition("/")[2]: each.content for each in plan.files} == {
        "registries.yaml": "mirrors: {}\n",
        "config-v3.toml.tmpl": '{{ template "base" . }}\n\n\n',
    }
    assert plan.restarts


def test_no_containerd_is_installed_for_it() -> None:
    node = node_of(bare())
    assert [part.role.name for part in node.wanted if part.role.name == "containerd"] == []
    assert not node.blockers


def test_a_reset_takes_files_and_release_too() -> None:
    """They were installed before the run broke off, and go with the reset."""
    plan = plan_of(replace(a_node(), cluster_host=with_paths(BEGUN, STATE)))
    assert (plan.reset, plan.joined) == (True, False)
    assert plan.files == plan.wanted_files
    assert plan.missing == plan.release


@pytest.mark.parametrize(("version", "name"), [
    ("v1.30.4+k3s1", "config.toml.tmpl"),
    ("v1.31.5+k3s1", "config.toml.tmpl"),
    ("v1.31.6+k3s1", "config-v3.toml.tmpl"),
    ("v1.32.1+k3s1", "config.toml.tmpl"),
    ("v1.32.2+k3s1", "config-v3.toml.tmpl"),
    ("v1.36.3+k3s1", "config-v3.toml.tmpl"),
])  # fmt: skip
def test_containerds_template_is_named_by_its_version(version: str, name: str) -> None:
    assert load_catalog().kubernetes.k3s.template_of(version) == name
    assert f"/containerd/{name} " in written("worker", version, k3s_containerd="root = 'x'")


def test_files_of_this_machine_are_read_and_compared(tmp_path: Path) -> None:
    (tmp_path / "k3s").write_bytes(b"program")
    (tmp_path / IMAGES).write_bytes(b"images")
    (tmp_path / "sha256sum-amd64.txt").write_text("")
    digest = hashlib.sha256(b"program").hexdigest()
    own = {"k3s_files": [f"{tmp_path}/*"], "k3s_url": None, "k3s_sha256": {"k3s": digest}}
    plan = plan_of(bare(), **own)
    assert [(each.name, each.mode, each.url) for each in plan.missing] == [
        ("k3s", "755", ""), (IMAGES, "644", ""),
    ]  # fmt: skip
    assert plan.missing[0].sha256 == digest
    (tmp_path / "k3s").write_bytes(b"another")
    assert codes(node_of(bare(), **own)) == ["GF906"]


def test_a_mirror_has_the_version_in_its_path() -> None:
    urls = {each.name: each.url for each in plan_of(bare()).missing}
    assert urls["k3s"] == "https://mirror.example.com/k3s/v1.32.2%2Bk3s1/k3s"
    assert set(urls) == {"k3s", IMAGES}


def test_no_secret_is_in_the_files_and_none_can_be_set() -> None:
    names = ("token", "agent-token", "token-file", "server", "datastore-endpoint", "t", "s", "d")
    more = ("server+", "datastore-endpoint+", "vpn-auth", "etcd-s3-secret-key", "https-listen-port")
    for name in (*names, *more):
        settings, problems = load_settings(data(k3s_config={name: "x"}))
        assert settings is None
        assert "kubernetes_k3s_config" in problems[0].message
    assert "token-file: /etc/rancher/k3s/token" in written("worker")


@pytest.mark.parametrize("key", ["k3s_config", "kubelet", "kube_proxy"])
def test_a_field_that_no_file_can_have_is_refused(key: str) -> None:
    own = {"kubernetes_enabled": True, f"kubernetes_{key}": {"root-dir": Path("/data")}}
    settings, problems = load_settings(own)
    assert settings is None
    assert "only texts, numbers, lists and mappings" in problems[0].message


def test_the_files_are_of_one_release(tmp_path: Path) -> None:
    """Two programs would take turns: each run would install one over the other."""
    for version in ("v1.32.2", "v1.32.3"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "k3s").write_text(version)
    settings, problems = load_settings(data(k3s_files=[f"{tmp_path}/*/k3s"]))
    assert settings is None
    assert "there are several files k3s" in problems[0].message


def test_what_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k3s").touch()

    def refuse(path: str, size: int, changed: int) -> str:
        raise PermissionError(EACCES, "Permission denied")

    monkeypatch.setattr("gpufleet.kubernetes.k3s.files._sha256", refuse)
    settings, problems = load_settings(data(k3s_files=[str(tmp_path / "k3s")]))
    assert settings is None
    assert "cannot be read: Permission denied" in problems[0].message


def test_a_destruction_takes_k3s_away() -> None:
    settings, _ = load_settings(data())
    assert settings
    begun = bare(
        cluster_host=with_paths(BEGUN, f"{K3S}/config.yaml"),
        provenance=record_of(driver={"version": "580.95.05"}),
    )
    for facts in (a_node(), begun):
        done = plan_removal(settings, facts, load_catalog(), place=PLANE)
        removal = done.of(ROLE)
        assert (removal.distribution, removal.reset, removal.turn) == ("k3s", True, "last")
    done = plan_removal(settings, joined(provenance=record_of(kubernetes={"version": "1.36.3"})),
                        load_catalog(), place=PLANE)  # fmt: skip
    assert done.of(ROLE).distribution == "kubeadm"
