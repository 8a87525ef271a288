"""The facts of a host as data, without contents of its files, for `gpufleet doctor --json` and for
the user's preflights. The command's schema describes the data. Pure."""

from __future__ import annotations

from typing import Any

from gpufleet.facts.kernels import newer_kernel
from gpufleet.facts.model import NodeFacts
from gpufleet.node.catalog import Catalog
from gpufleet.role.listing import node_roles


def described_facts(facts: NodeFacts, catalog: Catalog) -> dict[str, Any]:
    """The facts of a host, such as {"kernel": {"release": "5.15.0-122-generic", …}, …}."""
    return {
        "system": {
            "name": facts.os.pretty_name or facts.os.id,
            "code": facts.os.code,
            "package_manager": facts.package_manager,
            "package_manager_state": facts.broken or facts.lock_holder or "free",
        },
        "kernel": {
            "release": facts.kernel.release,
            "architecture": facts.kernel.architecture,
            "headers": facts.kernel.headers,
            "newer": newer_kernel(facts) or None,
            "secure_boot": facts.kernel.secure_boot,
        },
        "runtimes": [
            {
                "name": runtime.name,
                "version": runtime.version,
                "unit": runtime.unit,
                "running": runtime.running,
                "containers": runtime.containers,
            }
            for runtime in facts.runtimes.values()
        ],
        "gpu_processes": [str(work) for work in facts.gpu_processes],
        "gpu_pods": facts.gpu_pods,
        "kubelet": facts.kubelet,
        **{key: value for role in node_roles() for key, value in role.described(facts, catalog)},
        "recorded": facts.provenance.exists,
    }
