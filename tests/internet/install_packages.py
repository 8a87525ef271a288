"""A deploy: installs the packages of a host's plan from their repositories. It leaves out all steps
that need a kernel or systemd."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.host.boundary import one_host
from gpufleet.node.operations.node import RunNode, current_node
from gpufleet.packages.operations import archives, repository
from gpufleet.packages.operations import transaction as packages
from gpufleet.packages.transaction import PackageTransaction, is_headers

SECONDS = 300  # longest wait for another package manager


def prepare(node: RunNode) -> None:
    archives.use_archives("Switch to the archives", node.facts, node.plan.archives, SECONDS)
    if driver := node.plan.of(DRIVER):
        repository.open_components("Enable components", node.facts, driver.components, SECONDS)


def install(asked: PackageTransaction) -> None:
    # the kernel is that of the machine, for which no distribution has headers
    others = tuple(name for name in asked.prerequisites if not is_headers(name))
    wanted, what = replace(asked, prerequisites=others), asked.title
    repository.trust_repository(
        f"Trust the repository of the {what}", asked.repository, asked.role, SECONDS
    )
    found = packages.resolve_and_download(f"Download the {what}", wanted)
    packages.install_packages(f"Install the {what}", wanted, found)


with one_host():
    node = current_node()
    if node:
        prepare(node)
        for transaction in node.plan.transactions:
            install(transaction)
