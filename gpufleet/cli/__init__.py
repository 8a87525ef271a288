"""The `gpufleet` command. Each subcommand is a module, imported when it is used.

Other distributions add subcommands by entry points of the group `gpufleet.commands`.
"""

from __future__ import annotations

import click

from gpufleet import __version__
from gpufleet.cli.lazy import LazyGroup

COMMANDS = {
    "adopt": "gpufleet.cli.adopt:adopt",
    "apply": "gpufleet.cli.deploy:apply",
    "bundle": "gpufleet.cli.bundle:bundle",
    "catalog": "gpufleet.cli.catalog:catalog",
    "cluster": "gpufleet.cli.cluster:cluster",
    "completion": "gpufleet.cli.completion:completion",
    "docs": "gpufleet.cli.docs:docs",
    "doctor": "gpufleet.cli.doctor:doctor",
    "explain": "gpufleet.cli.explain:explain",
    "init": "gpufleet.cli.init:init",
    "plan": "gpufleet.cli.deploy:plan",
    "remove": "gpufleet.cli.deploy:remove",
    "render": "gpufleet.cli.render:render",
    "status": "gpufleet.cli.status:status",
    "upgrade": "gpufleet.cli.upgrade:upgrade",
    "verify": "gpufleet.cli.verify:verify",
}


@click.group(cls=LazyGroup, lazy=COMMANDS, entry_points="gpufleet.commands")
@click.version_option(__version__)
def main() -> None:
    """Provision, upgrade and verify GPU nodes and GPU clusters with pyinfra."""
