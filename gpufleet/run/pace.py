"""The order of a run: each host runs its operations at its own pace.

pyinfra begins an operation when every host has ended the previous one, so a host that waits for its
package manager's lock holds up all hosts. Its `--no-wait` keeps no order between hosts at all, and
counts a failed host as successful.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from weakref import WeakKeyDictionary

from pyinfra.api import Host, State
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_host_op, run_ops
from pyinfra.api.util import log_operation_start
from pyinfra.context import ctx_host, ctx_state

from gpufleet.core.inventory import CLUSTERS

_INDEPENDENT: WeakKeyDictionary[State, set[str]] = WeakKeyDictionary()


def mark_independent(state: State, op_hash: str) -> None:
    """Mark an operation in which no host has to wait for another host."""
    _INDEPENDENT.setdefault(state, set()).add(op_hash)


def replace_run_ops() -> None:
    """Make pyinfra's command run the operations with `run_at_own_pace`."""
    from pyinfra_cli import cli  # replaces parts of the standard library

    cli.run_ops = run_at_own_pace


def run_at_own_pace(state: State, serial: bool = False, no_wait: bool = False) -> None:
    """Run all operations. Replaces pyinfra's `run_ops` and raises the same errors.

    All hosts wait for all others before and after an operation that is not independent: one that
    hosts run in turn (a control plane joins before workers do), one of a cluster, or one of a
    user's own deploy.
    """
    independent = _INDEPENDENT.get(state, set())
    if serial or no_wait:
        run_ops(state, serial=serial, no_wait=no_wait)
        return
    state.is_executing = True
    with ctx_state.use(state):
        for apart, hashes in groupby(_in_order(state), key=independent.__contains__):
            for batch in [list(hashes)] if apart else [[op_hash] for op_hash in hashes]:
                _Batch(state, batch).run()


def _in_order(state: State) -> list[str]:
    """The operations in pyinfra's order, but those of clusters last. pyinfra sorts operations that
    no host shares by their number on each host, and would install a release before its nodes."""
    order: list[str] = state.get_op_order()
    on_hosts, on_clusters = (
        {op for host in state.inventory if (CLUSTERS in host.groups) is clusters
         for op in state.ops[host]}
        for clusters in (False, True)
    )  # fmt: skip
    if on_hosts & on_clusters:  # a user's deploy mixes them in its own order
        return order
    return sorted(order, key=on_clusters.__contains__)


@dataclass(slots=True)
class _Batch:
    """Operations that each host runs one after the other, regardless of other hosts."""

    state: State
    hashes: Sequence[str]
    left: Counter[str] = field(default_factory=Counter)  # operation -> hosts that have not ended it
    begun: set[str] = field(default_factory=set)
    stopped: PyinfraError | None = None  # too many hosts failed

    def run(self) -> None:
        hosts = list(self.state.inventory.get_active_hosts())
        for host in hosts:
            self.left.update(self._of(host))
        arguments = self.state.get_op_meta(self.hashes[0]).global_arguments
        size = 1 if arguments["_serial"] else arguments["_parallel"] or len(hosts)
        while hosts:
            chunk, hosts = hosts[:size], hosts[size:]
            for greenlet in [self.state.pool.spawn(self._run_host, host) for host in chunk]:
                greenlet.get()
        if self.stopped:
            raise self.stopped

    def _of(self, host: Host) -> Iterator[str]:
        return (op_hash for op_hash in self.hashes if op_hash in self.state.ops[host])

    def _run_host(self, host: Host) -> None:
        going = True
        with ctx_host.use(host):
            for op_hash in self._of(host):
                going = going and not self.stopped and self._run_operation(host, op_hash)
                self.left[op_hash] -= 1  # the host has ended it, or will not reach it
                if not self.left[op_hash] and op_hash in self.begun:
                    self.state.trigger_callbacks("operation_end", op_hash)

    def _run_operation(self, host: Host, op_hash: str) -> bool:
        """True if the host continues."""
        if op_hash not in self.begun:
            self.begun.add(op_hash)
            self.state.trigger_callbacks("operation_start", op_hash)
            log_operation_start(self.state.get_op_meta(op_hash))
        if run_host_op(self.state, host, op_hash):
            return True
        try:
            self.state.fail_hosts({host})
        except PyinfraError as error:
            self.stopped = error
        return False
