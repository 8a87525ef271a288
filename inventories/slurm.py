"""Nodes of a Slurm cluster that have GPUs, as `scontrol` lists them (Slurm 23.02 and newer):

    gpufleet plan inventories/slurm.py

Groups: partition_gpu, model_a100, tag_FEATURE, state_down. A node that is powered down or of the
state FUTURE is left out. One that Slurm calls DOWN stays, as slurmd does not start without a
driver: `--exclude state_down` leaves it out. A host's name is its NodeName.
Answer: https://github.com/SchedMD/slurm, src/plugins/data_parser/v0.0.40/parsers.c (NODE), and
https://slurm.schedmd.com/rest_api.html, read 2026-11-29
"""

from __future__ import annotations

import re

from gpufleet.run.sources import Answer, Machine, ask_program, group_machines

_ABSENT = {"FUTURE", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN"}  # states without a machine
_GPU = re.compile(r"(?:^|,)gpu(?::([^:,(]+))?:(\d+)")  # gpu:a100:8(S:0-1), gpu:3090:4
_SLICE = re.compile(r"(?<![a-z0-9])\d+g(?:\.\d+gb|$)")  # a part of a GPU, by MIG: no number of GPUs


def _texts(row: Answer, path: str) -> list[str]:
    return [each.need("", str) for each in row.rows(path)]


def _gpus(gres: str) -> tuple[int | None, str | None]:
    """The number of GPUs, if they are whole, and their model."""
    found = _GPU.findall(gres)
    model = next((name for name, _ in found if name), None)
    if any(_SLICE.search(name) for name, _ in found):
        return None, model
    return sum(int(count) for _, count in found), model


def _machine(row: Answer) -> Machine:
    gpus, model = _gpus(row.need("gres", str))
    return Machine(
        name=row.need("name", str),
        address=row.need("address", str),
        gpus=gpus,
        traits={"model": model},
        labels=[
            (kind, value)
            for kind, path in (("partition", "partitions"), ("state", "state"), ("tag", "features"))
            for value in _texts(row, path)
        ],
    )


def _machines() -> list[Machine]:
    answer = ask_program(
        "scontrol", "show", "nodes", "--json",
        title="scontrol show nodes", install="run this where Slurm's commands are installed",
    )  # fmt: skip
    return [
        _machine(row)
        for row in answer.rows("nodes")
        if _GPU.search(row.need("gres", str)) and not _ABSENT.intersection(_texts(row, "state"))
    ]


globals().update(group_machines(_machines(), "slurm: no node that is powered on has a GPU"))
