"""Includes gpufleet's deploys in a user's deploy files."""

from __future__ import annotations

from gpufleet.core.paths import shipped_path


def include(deploy: str) -> None:
    """Run the deploy of that name, such as "gpu_node", for the host that pyinfra prepares.

    Like pyinfra.local.include, but without the path of the file in front of every step.
    """
    from pyinfra_cli.util import exec_file  # gevent replaces parts of the standard library for it

    exec_file(str(shipped_path("deploys") / f"{deploy}.py"))
