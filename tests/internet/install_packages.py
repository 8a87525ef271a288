"""A deploy: installs the packages of a host's plan, from their repositories, and does nothing that
needs a kernel or systemd."""

from dataclasses import replace

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.node import current_node
from gpufleet.packages.operations import archives, repository
from gpufleet.packages.operations import transaction as packages
from gpufleet.packages.transaction import is_headers

with one_host():
    node = current_node()
    if node:
        plan = node.plan.archives
        archives.use_archives("Switch to the archives", node.facts, plan, 300)
    for asked in node.plan.transactions if node else ():
        # the kernel is that of the machine, for which no distribution has headers
        others = tuple(name for name in asked.prerequisites if not is_headers(name))
        wanted, what = replace(asked, prerequisites=others), asked.title
        repository.trust_repository(
            f"Trust the repository of the {what}", asked.repository, asked.role, 300
        )
        found = packages.resolve_and_download(f"Download the {what}", wanted)
        packages.install_packages(f"Install the {what}", wanted, found)
