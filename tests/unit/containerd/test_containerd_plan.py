"""containerd on a host without it: which package is installed, and how later roles plan for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.containerd.plan import (
    CONTAINERD_BEGUN_PATH,
    PACKAGED,
    PLAIN,
    disables_cri,
)
from gpufleet.containerd.role import ROLE
from gpufleet.facts.model import (
    ManagedFile,
    NodeFacts,
    OsRelease,
    Package,
    Runtime,
)
from gpufleet.kubernetes.role import ROLE as KUBERNETES
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_again, plan_node, plan_steps
from gpufleet.node.removal import plan_removal
from gpufleet.packages.transaction import PackageTransaction, resolve_transaction
from gpufleet.toolkit.role import ROLE as TOOLKIT
from tests.unit.containerd.containerd_plan_setup import (
    CONFIG,
    ROOM,
    host,
    node_of,
    plan_of,
    settings,
)
from tests.unit.hosts import record_of

pytestmark = pytest.mark.claim(
    "A host without containerd gets the distribution's, or Docker's if that is too old; "
    "an installed one stays.",
    level=1,
)

STUB = '#comment\ndisabled_plugins = ["cri"]\n'
DEBIAN_11 = OsRelease("debian", "11", (), "bullseye", "Debian 11")
AMAZON = OsRelease("amzn", "2023", ("fedora",), "", "Amazon Linux 2023")
ROCKY_9 = OsRelease("rocky", "9.4", ("rhel", "centos"), "", "Rocky Linux 9.4")
ENTRY = {
    "version": "1.7.28",
    "packages": {"containerd": "1.7.28-1"},
    "added": ["containerd", "runc"],
}


def installed(package: str, version: str, **changes: Any) -> NodeFacts:
    runtime = Runtime("containerd", version, "containerd.service", CONFIG, running=True)
    return host(
        runtimes={"containerd": runtime},
        packages={package: Package(package, f"{version}-1", "amd64")},
        **changes,
    )


def test_a_host_without_containerd_gets_the_distributions() -> None:
    node = node_of(host())
    plan = node.of(ROLE)
    assert plan
    assert (plan.package, plan.needed) == ("containerd", True)
    assert plan.repository.repository is None
    assert not node.blockers
    words = plan_steps(node)
    assert [each for each in words if each.startswith("containerd")] == [
        "containerd: install containerd (the repository is asked in the run)",
        "containerd: start containerd.service with the CRI plugin",
    ]
    order = [words.index(next(w for w in words if w.startswith(name))) for name in
             ("driver", "containerd", "toolkit", "kubernetes")]  # fmt: skip
    assert order == sorted(order)


def test_the_newest_version_of_the_repository_is_installed() -> None:
    there = {"containerd": ("1.7.27-0ubuntu1", "1.7.28-0ubuntu1")}
    chosen = resolve_transaction(plan_of(host()).transaction, there)
    assert isinstance(chosen, PackageTransaction)
    assert chosen.install == (("containerd", "1.7.28-0ubuntu1"),)


def test_the_roles_after_it_find_it() -> None:
    node = node_of(host())
    toolkit, kubernetes = node.of(TOOLKIT), node.of(KUBERNETES)
    assert toolkit
    assert kubernetes
    assert [each.key for each in toolkit.runtimes] == ["containerd"]
    assert toolkit.runtimes[0].change
    assert kubernetes.containerd
    assert kubernetes.containerd.change


@pytest.mark.parametrize(
    ("facts", "data", "package", "url", "suite"),
    [
        (
            host(os=ROCKY_9, package_manager="dnf"), {}, "containerd.io",
            "https://download.docker.com/linux/rhel/9/x86_64/stable/", "",
        ),
        (
            host(os=DEBIAN_11), {}, "containerd.io",
            "https://download.docker.com/linux/debian/", "bullseye stable",
        ),
        (
            host(), {"containerd_install": "docker"}, "containerd.io",
            "https://download.docker.com/linux/ubuntu/", "jammy stable",
        ),
        (
            host(),
            {"containerd_install": "docker", "containerd_repo_url": "https://mirror.lab/docker"},
            "containerd.io", "https://mirror.lab/docker/ubuntu/", "jammy stable",
        ),
    ],
)  # fmt: skip
def test_docker_serves_where_the_distribution_does_not(
    facts: NodeFacts, data: dict[str, Any], package: str, url: str, suite: str
) -> None:
    plan = plan_of(facts, **data)
    repository = plan.repository.repository
    assert repository
    assert (plan.package, repository.url, repository.suite) == (package, url, suite)
    assert repository.key_url == url.split("9/")[0] + "gpg"
    assert plan.repository.source
    if suite:
        assert f"{url} {suite}" in str(plan.repository.source.content)


def test_files_of_dockers_repository_are_the_roles() -> None:
    source = plan_of(host(), containerd_install="docker").repository.source
    assert source
    assert ROLE.writes(source.path, load_catalog())
    assert not ROLE.writes("/etc/hosts", load_catalog())


def test_the_keys_are_dockers() -> None:
    keys = load_catalog().containerd.docker.keys
    assert keys["deb"].fingerprints == ("9DC858229FC7DD38854AE2D88D81803C0EBFCD88",)
    assert keys["rpm"].fingerprints == ("060A61C51B558A7F742B77AAC52FEB6B621E9F35",)
    plan = plan_of(host(os=ROCKY_9, package_manager="dnf"))
    assert plan.repository.repository
    assert plan.repository.repository.key_fingerprints == keys["rpm"].fingerprints


@pytest.mark.parametrize(
    ("facts", "data", "codes"),
    [
        (host(), {"containerd_install": "never"}, ["GF934"]),
        (
            host(os=ROCKY_9, package_manager="dnf"),
            {"containerd_install": "distribution"},
            ["GF990", "GF934"],
        ),
        (host(os=DEBIAN_11), {"containerd_install": "distribution"}, ["GF990", "GF934"]),
        (host(os=AMAZON, package_manager="dnf"), {}, ["GF934"]),  # neither has one
    ],
)
def test_where_none_is_installed_the_host_stops(
    facts: NodeFacts, data: dict[str, Any], codes: list[str]
) -> None:
    node = node_of(facts, **data)
    assert node.of(ROLE) is None
    found = [each.code for part in node.parts if part.role in (ROLE, KUBERNETES)
             for each in part.findings]  # fmt: skip
    assert found == codes


def test_without_kubernetes_nothing_is_installed() -> None:
    facts = host()
    node = plan_node(settings(kubernetes_enabled=False), facts, load_catalog(), facts.clock)
    assert node.of(ROLE) is None


def test_a_users_containerd_is_not_the_roles() -> None:
    assert node_of(installed("containerd", "1.7.28")).of(ROLE) is None
    assert node_of(installed("containerd.io", "2.2.6")).of(ROLE) is None


def test_one_of_gpufleets_is_converged() -> None:
    facts = installed("containerd", "1.7.28", provenance=record_of(containerd=ENTRY))
    plan = plan_of(facts)
    assert not plan.needed
    assert not plan.settles
    assert ROLE.converged(plan, None)
    assert plan.before == "1.7.28"


def test_a_version_that_was_installed_again_is_not_started_at_every_run() -> None:
    """The record stays the same then, and with it the note of the transaction."""
    begun = replace(ROOM, paths=frozenset({CONTAINERD_BEGUN_PATH}))
    recorded = record_of(containerd=ENTRY)
    facts = installed("containerd", "1.7.28", cluster_host=begun, provenance=recorded)
    assert not plan_of(facts).settles
    stub = installed(
        "containerd",
        "1.7.28",
        cluster_host=begun,
        provenance=recorded,
        files={CONFIG: ManagedFile(CONFIG, STUB)},
    )
    assert plan_of(stub).settles


def test_a_killed_run_is_finished() -> None:
    """The package is installed, and Docker's file still disables the CRI plugin."""
    begun = replace(ROOM, paths=frozenset({CONTAINERD_BEGUN_PATH}))
    facts = installed(
        "containerd.io", "2.2.6", cluster_host=begun, files={CONFIG: ManagedFile(CONFIG, STUB)}
    )
    node = node_of(facts)
    plan = node.of(ROLE)
    assert plan
    assert (plan.needed, plan.settles, plan.fresh) == (False, True, True)
    kubernetes = node.of(KUBERNETES)
    assert kubernetes
    assert kubernetes.containerd
    assert kubernetes.containerd.change
    assert kubernetes.containerd.change.after
    assert "disabled_plugins" not in kubernetes.containerd.change.after


def test_a_users_file_that_disables_the_plugin_stays_and_stops_the_host() -> None:
    node = node_of(host(files={CONFIG: ManagedFile(CONFIG, STUB)}))
    plan = node.of(ROLE)
    assert plan
    assert not plan.fresh
    assert "GF945" in [each.code for each in node.blockers]


def test_the_plan_is_made_again_for_what_was_installed() -> None:
    """Version and file are unknown before the run. A second run must then plan nothing."""
    facts = host()
    node = node_of(facts)
    plan = node.of(ROLE)
    assert plan
    text = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\n  bin_dir = "/usr/lib/cni"\n'
    again = plan_again(node, settings(), plan.facts_with("1.7.28~ds1", text))
    known = installed("containerd", "1.7.28", files={CONFIG: ManagedFile(CONFIG, text)})
    second = node_of(replace(known, provenance=record_of(containerd=ENTRY)))
    for role in (TOOLKIT, KUBERNETES):
        after, later = again.of(role), second.of(role)
        assert after
        assert later
    toolkit, later = again.of(TOOLKIT), second.of(TOOLKIT)
    assert toolkit
    assert later
    assert toolkit.runtimes[0].change
    assert later.runtimes[0].change
    assert toolkit.runtimes[0].change.after == later.runtimes[0].change.after
    assert "enable_cdi" in str(toolkit.runtimes[0].change.after)
    assert not again.blockers


@pytest.mark.parametrize(
    ("text", "disabled"),
    [
        (STUB, True),
        ("disabled_plugins = ['cri']", True),
        ('disabled_plugins = ["io.containerd.grpc.v1.cri"]', True),
        ('# disabled_plugins = ["cri"]', False),
        ('disabled_plugins = ["zfs"]', False),
        (PLAIN, False),
        (None, False),
    ],
)
def test_dockers_file_is_recognised(text: str | None, disabled: bool) -> None:
    assert disables_cri(text) is disabled


def test_only_a_package_of_gpufleets_is_removed() -> None:
    facts = installed(
        "containerd", "1.7.28", cluster_host=replace(ROOM, paths=frozenset({PACKAGED}))
    )
    ours = replace(facts, provenance=record_of(containerd=ENTRY))
    done = plan_removal(settings(), ours, load_catalog())
    assert set(done.packages) == {"containerd", "runc"}
    assert done.of(ROLE).goes
    assert "removal: check that containerd runs no containers" in done.steps()
    assert f"removal: restore the package's {CONFIG}" in done.steps()
    theirs = replace(facts, provenance=record_of(kubernetes={"version": "1.36.3"}))
    left = plan_removal(settings(), theirs, load_catalog())
    assert left.packages == ()
    assert not left.of(ROLE).goes


def test_a_file_that_is_not_there_is_planned_as_readable_by_all() -> None:
    file = plan_of(host(files={})).facts_with("1.7.28", None).files[CONFIG]
    assert (file.content, file.mode) == (None, 0o644)
