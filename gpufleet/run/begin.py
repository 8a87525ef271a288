"""The start of a run of our own deploys, before pyinfra has loaded the inventory."""

from __future__ import annotations

from pathlib import Path

import pyinfra
from pyinfra.context import ctx_state

from gpufleet.core.paths import shipped
from gpufleet.run.invocation import read_invocation


def begin(config: str) -> None:
    """Begin the report where a deploy of gpufleet's, or one in deploys/ beside `config`, is run.

    `config`: the path of pyinfra's config.py.

    Without it a report begins with the first reachable host: a run that reaches none, or whose
    limit matches none, would have no report.
    """
    ours = {Path(config).resolve().parent / "deploys", shipped("deploys")}
    deploys = [Path(name).resolve() for name in read_invocation().deploys]
    if not pyinfra.is_cli or not any(ours.intersection(deploy.parents) for deploy in deploys):
        return
    from gpufleet.run.reporting import RunReport

    RunReport.started = RunReport.begin(ctx_state.get())
