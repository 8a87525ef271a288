"""A user's entries of NVIDIA's repositories stay unless a package is installed from there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.facts.model import ManagedFile, NodeFacts, OsRelease, Package
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.toolkit.plan import ToolkitPlan, plan_toolkit
from gpufleet.toolkit.role import ROLE as TOOLKIT
from tests.unit.hosts import bare_host, converged_host, plan_for, record_of

ROCKY = OsRelease("rocky", "9.4", ("rhel",), "", "Rocky Linux 9.4")
# DGX OS and NVIDIA's own instructions name the same archive under other keyrings and file names
CUDA_KEY = "/usr/share/keyrings/cuda_debian_prod.gpg"
CUDA_PLACES = [
    ("cuda-compute-repo.list", f"deb [signed-by={CUDA_KEY}] {{url}} /\n"),
    (
        "cuda-compute-repo.sources",
        f"Types: deb\nURIs: {{url}}\nSuites: /\nSigned-By: {CUDA_KEY}\n",
    ),
]
MIRROR = "https://nexus.example/nvidia"
LIST = "/etc/apt/sources.list.d/nvidia-container-toolkit.list"
REPO = "/etc/yum.repos.d/nvidia-container-toolkit.repo"


def toolkit_plan(facts: NodeFacts, **data: object) -> ToolkitPlan:
    settings, problems = load_node_settings(data)
    assert settings, problems
    return plan_toolkit(settings.of(TOOLKIT), facts, load_catalog())


def with_toolkit(facts: NodeFacts) -> NodeFacts:
    """The host with all packages of the toolkit at their version."""
    plan = toolkit_plan(facts)
    there = {name: Package(name, f"{plan.target}-1", "amd64") for name in plan.transaction.packages}
    return replace(facts, packages=facts.packages | there)


def with_file(facts: NodeFacts, path: str, text: str) -> NodeFacts:
    return replace(facts, files=facts.files | {path: ManagedFile(path, text)})


def blocking(facts: NodeFacts, **data: object) -> list[str]:
    settings, problems = load_node_settings(data)
    assert settings, problems
    found = plan_node(settings, facts, load_catalog(), facts.clock).blockers
    return [finding.code for finding in found]


@pytest.mark.parametrize(("name", "text"), CUDA_PLACES)
def test_a_complete_driver_with_another_keyring_is_left_alone(name: str, text: str) -> None:
    repository = plan_for(bare_host()).repository.repository
    assert repository
    host = converged_host()
    gone = {path: file for path, file in host.files.items() if path != repository.file}
    path = f"/etc/apt/sources.list.d/{name}"
    host = with_file(replace(host, files=gone), path, text.format(url=repository.url))
    plan = plan_for(host)
    assert plan.action == "none"
    assert (plan.repository.needed, plan.repository.source) == (False, None)
    assert not plan.repository.findings


def test_a_complete_toolkit_with_another_keyring_is_left_alone() -> None:
    facts = with_toolkit(bare_host())
    repository = toolkit_plan(facts).repository.repository
    assert repository
    line = f"deb [signed-by=/etc/apt/keyrings/nvidia-container-toolkit.asc] {repository.url} /\n"
    plan = toolkit_plan(with_file(facts, "/etc/apt/sources.list.d/libnvidia.list", line))
    assert plan.action == "none"
    assert (plan.repository.needed, plan.repository.source) == (False, None)
    assert not plan.repository.findings


@pytest.mark.parametrize(("name", "text"), CUDA_PLACES)
def test_with_something_to_install_only_the_users_file_is_named(name: str, text: str) -> None:
    repository = plan_for(bare_host()).repository.repository
    assert repository
    path = f"/etc/apt/sources.list.d/{name}"
    host = with_file(bare_host(), path, text.format(url=repository.url))
    (finding,) = [found for found in plan_for(host).findings if found.blocks]
    assert finding.code == "GF301"
    assert path in finding.message
    assert repository.file not in finding.remedy
    assert "driver_enabled = False" in finding.remedy
    assert "GF301" in blocking(host)
    assert "GF301" not in blocking(host, driver_enabled=False)


def test_a_mirror_in_nvidias_list_stays() -> None:
    line = f"deb [signed-by=/k.gpg] {MIRROR}/deb/$(ARCH) /\n"
    facts = with_file(bare_host(), LIST, line)
    plan = toolkit_plan(with_toolkit(facts))
    assert (plan.repository.needed, plan.repository.source) == (False, None)
    assert not plan.repository.findings
    (finding,) = [f for f in toolkit_plan(facts).repository.findings if f.blocks]
    assert finding.code == "GF333"
    for word in (LIST, MIRROR, "nvidia.github.io"):
        assert word in finding.message
    assert "toolkit_repo_url" in finding.remedy


def test_a_mirror_of_the_driver_stays() -> None:
    repository = plan_for(bare_host()).repository.repository
    assert repository
    line = f"deb [signed-by={repository.keyring}] {MIRROR}/cuda /\n"
    plan = plan_for(with_file(converged_host(), repository.file, line))
    recorded = repository.file in converged_host().provenance.files
    assert (recorded, plan.repository.needed, plan.repository.source) == (False, False, None)
    (finding,) = [
        f for f in plan_for(with_file(bare_host(), repository.file, line)).findings if f.blocks
    ]
    assert finding.code == "GF333"
    assert "driver_repo_url" in finding.remedy


def test_a_satellite_in_nvidias_repo_file_stays() -> None:
    host = replace(bare_host(), os=ROCKY, package_manager="dnf")
    text = (
        "[nvidia-container-toolkit]\nbaseurl=https://satellite.example/pulp/nvidia\n"
        "sslclientcert=/etc/pki/entitlement/1.pem\ngpgcheck=1\n"
    )
    facts = with_file(host, REPO, text)
    plan = toolkit_plan(with_toolkit(facts))
    assert (plan.action, plan.repository.needed, plan.repository.source) == ("none", False, None)
    assert [f.code for f in toolkit_plan(facts).repository.findings] == ["GF333"]


def test_the_users_url_and_a_recorded_file_are_written() -> None:
    facts = with_file(bare_host(), LIST, "deb https://old.example/deb/amd64 /\n")
    chosen = toolkit_plan(with_toolkit(facts), toolkit_repo_url=MIRROR).repository
    assert chosen.needed
    assert not [f for f in chosen.findings if f.blocks]
    ours = replace(facts, provenance=record_of(files={LIST: "0" * 64}))
    assert toolkit_plan(with_toolkit(ours)).repository.needed


def test_other_sections_of_a_repo_file_stay() -> None:
    host = replace(bare_host(), os=ROCKY, package_manager="dnf")
    url = "https://nvidia.github.io/libnvidia-container"
    experimental = (
        "[nvidia-container-toolkit-experimental]\n"
        f"baseurl={url}/experimental/rpm/$basearch\nenabled=1\n"
    )
    stable = f"[nvidia-container-toolkit]\nbaseurl={url}/stable/rpm/$basearch\n\n"
    source = toolkit_plan(with_file(host, REPO, stable + experimental)).repository.source
    assert source
    written = str(source.content)
    assert experimental in written
    assert written.count("[nvidia-container-toolkit]") == 1
    again = toolkit_plan(with_file(host, REPO, written)).repository.source
    assert again
    assert again.content == written


def test_other_lines_of_the_source_file_stay() -> None:
    """This holds for files of apt and of yum. Only gpufleet's previous URL is removed."""
    facts = bare_host()
    plan = plan_for(facts).repository
    assert plan.repository
    assert plan.source
    ours = str(plan.source.content)
    before = f"deb [signed-by={plan.repository.keyring}] http://mirror.before/ /\n"
    theirs = "# for the lab\ndeb [signed-by=/usr/share/keyrings/lab.gpg] http://lab/ stable main\n"
    there = with_file(facts, plan.source.path, theirs + before + ours)
    changed = plan_for(there).repository.source
    assert changed
    assert changed.content == theirs + ours
    again = plan_for(with_file(facts, plan.source.path, theirs + ours)).repository.source
    assert again
    assert again.content == theirs + ours
