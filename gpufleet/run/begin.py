"""The start of a run of our own deploys, before pyinfra has loaded the inventory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyinfra
from pyinfra.context import ctx_state

from gpufleet.core.paths import shipped
from gpufleet.run.invocation import read_invocation

if TYPE_CHECKING:
    from gpufleet.run.reporting import Problems


def begin(config: str, problems: Problems | None = None) -> None:
    """Begin the report where a deploy of gpufleet's, or one in deploys/ beside `config`, is run.

    `config`: the path of pyinfra's config.py; `problems`: what is wrong with the settings of a host
    in such groups, for hosts that a deploy of ours, or one of its name, cannot reach.

    Without it a report begins with the first reachable host: a run that reaches none, or whose
    limit matches none, would have no report.
    """
    ours = {Path(config).resolve().parent / "deploys", shipped("deploys")}
    deploys = [Path(name).resolve() for name in read_invocation().deploys]
    if not pyinfra.is_cli or not any(ours.intersection(deploy.parents) for deploy in deploys):
        return
    from gpufleet.run.reporting import RunReport

    RunReport.started = RunReport.begin(ctx_state.get())
    names = {deploy.name for deploy in shipped("deploys").glob("*.py")}
    if problems and names.intersection(deploy.name for deploy in deploys):
        RunReport.started.problems = problems
