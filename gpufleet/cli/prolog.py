"""The verdicts for the prolog of a batch system: cheap, and by the state of hosts alone."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gpufleet.core.live import QUIET
from gpufleet.core.names import LOCAL_HOST
from gpufleet.doctor.judge import judge_state
from gpufleet.doctor.models import DoctorCheck, JudgedFleet
from gpufleet.host.local import read_this_machine


def judge_states(
    inventory: str, limit: Sequence[str], checks: Sequence[DoctorCheck]
) -> JudgedFleet:
    """The verdicts on the hosts of an inventory. Prints no progress."""
    if inventory == LOCAL_HOST and not limit:
        facts = read_this_machine(health=True)
        return JudgedFleet(inventory, (judge_state(LOCAL_HOST, facts, None, checks),))
    # Imported here because pyinfra takes longer to load than a machine to answer.
    from gpufleet.cli.reading import read_hosts_and_clusters

    os.environ[QUIET] = "1"
    hosts, _ = read_hosts_and_clusters(inventory, limit, health=True)
    verdicts = []
    for host in hosts:
        found = host.facts or host.problem
        assert found is not None
        expected = host.settings.host.gpus if host.settings else None
        verdicts.append(judge_state(host.name, found, expected, checks))
    return JudgedFleet(inventory, tuple(verdicts))
