"""Load: every GPU computes for a while, steadily, seen by Prometheus, without heat and errors.

Off unless the inventory has `verify_load = True`: it takes every free GPU for minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gpufleet.core.names import counted
from gpufleet.core.visible import Count
from gpufleet.verify import load_judge as judge
from gpufleet.verify.cluster import SILENT, Cluster
from gpufleet.verify.findings import clusters as kinds
from gpufleet.verify.load_job import LeftOut, Load, LoadRequest, choose, job
from gpufleet.verify.load_models import load_load_test
from gpufleet.verify.load_run import Loads, Run, read_series, running, tail, wait

CATALOG = load_load_test()
OFF = "verify_load is not set"


@pytest.fixture(scope="module")
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """A line of progress for whoever waits."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    return reporter.write_line if reporter else print


@pytest.fixture(scope="module")
def loads(cluster: Cluster, report: Callable[[str], None]) -> Iterator[Loads]:
    """All nodes under load at the same time, until the last one has ended."""
    cluster.need(cluster.data.get("verify_load"), OFF)
    request = LoadRequest.of(cluster.data, CATALOG)
    cluster.need(cluster.gpu_nodes, "the cluster has no node with GPUs (GF791)")
    pods = cluster.pods_now()  # not as remembered
    choices = [choose(CATALOG, request, node, pods) for node in cluster.gpu_nodes]
    left_out = [choice for choice in choices if isinstance(choice, LeftOut)]
    jobs = [(load, job(CATALOG, load, request)) for load in choices if isinstance(load, Load)]
    metrics = [name for field in CATALOG.fields for name in field.metrics]
    metrics += [
        *CATALOG.utilization.metrics,
        *CATALOG.throttling.metrics,
        *CATALOG.xids.counts,
        *CATALOG.xids.last,
    ]
    with running(cluster, jobs, report) as runs:
        wait(cluster, runs, request, report)
        why = [read_series(cluster, run, metrics, CATALOG.series) for run in runs]
        yield Loads(runs, left_out, next(filter(None, why), ""))


def need_done(cluster: Cluster, loads: Loads) -> None:
    """Skip, with the reason, where nothing shows that any load ran."""
    why = [f"{run.load.node}: {run.log_error or run.trouble}" for run in loads.runs]
    why += [str(each) for each in loads.left_out]
    cluster.need(loads.done, "nothing ran: " + "; ".join(why))


def need_series(cluster: Cluster, loads: Loads) -> None:
    need_done(cluster, loads)
    cluster.need(not loads.silent, f"{SILENT}: {loads.silent}")
    seen = [run for run in loads.done if run.series]
    cluster.need(seen, "no series of Prometheus names the pods that ran (GF798)")


def lines(found: list[tuple[Run, list[str]]]) -> str:
    return "; ".join(f"{run.load.node}: {line}" for run, wrong in found for line in wrong)


def test_load_finishes(cluster: Cluster, loads: Loads) -> None:
    """dcgmproftester ran on every node that it was sent to, and says that it passed."""
    wrong = []
    for run in loads.runs:
        printed = judge.parse(run.log or "")
        if run.phase != "Succeeded":
            said = printed.complaint or tail(run.log or "")
            wrong.append(f"{run}: " + "; ".join(filter(None, [run.trouble, said])))
        elif run.log is not None and not printed.passed:
            wrong.append(f"{run}: {printed.complaint or tail(run.log) or 'it printed nothing'}")
        elif printed.workers and len(printed.workers) != run.load.gpus:
            under = f"{len(printed.workers)} of {Count(run.load.gpus):GPU was|GPUs were} under load"
            wrong.append(f"{run}: {under}")
    cluster.expect(not wrong, kinds.LOAD_ENDED, "a load that passes", ", ".join(wrong))
    need_done(cluster, loads)


def test_load_reaches_every_gpu_node(cluster: Cluster, loads: Loads) -> None:
    """Every node with GPUs was tested; those that were not are named with the reason."""
    need_done(cluster, loads)
    unseen = [f"{run.load.node}: {run.log_error}" for run in loads.runs if run.log is None]
    missing = [*map(str, loads.left_out), *unseen]
    cluster.need(not missing, "not tested: " + "; ".join(missing))


def test_load_is_steady(cluster: Cluster, loads: Loads) -> None:
    """No GPU computes in jerks, and none slower than the others of its node."""
    need_done(cluster, loads)
    printed = [(run, judge.parse(run.log or "")) for run in loads.done]
    cluster.need(any(each.rates for _, each in printed), "dcgmproftester printed no rates")
    found = lines([(run, judge.slow(each, CATALOG.rates)) for run, each in printed])
    least = CATALOG.rates
    expected = f"at least {least.steady:.0%} of its own rate, and {least.even:.0%} of the best"
    cluster.expect(not found, kinds.LOAD_SLOW, expected, found)


def test_load_is_seen(cluster: Cluster, loads: Loads) -> None:
    """Prometheus saw the GPUs of the pods at work for as much of the time as they should be."""
    need_series(cluster, loads)
    few = CATALOG.utilization.samples
    runs = [
        run for run in loads.done if judge.samples(run.series, CATALOG.utilization.metrics) >= few
    ]
    cluster.need(
        runs,
        f"Prometheus has fewer than {counted(few, 'sample')}; verify_load_seconds gives it more",
    )
    found = lines([(run, judge.idle(CATALOG, run.load, run.series)) for run in runs])
    expected = f"GPUs that are busy {CATALOG.utilization.least:.0f} % of the time"
    cluster.expect(not found, kinds.LOAD_UNSEEN, expected, found)


def test_load_keeps_its_clocks(cluster: Cluster, loads: Loads) -> None:
    """Neither heat nor the power supply held the clocks down."""
    need_series(cluster, loads)
    names = CATALOG.throttling.metrics
    seen = [run for run in loads.done if judge.samples(run.series, names)]
    cluster.need(seen, f"the exporter collects none of {', '.join(names)}")
    found = lines([(run, judge.throttled(CATALOG, run.series)) for run in seen])
    cluster.expect(not found, kinds.LOAD_THROTTLED, "clocks that nothing but power holds", found)


def test_load_causes_no_xid(cluster: Cluster, loads: Loads) -> None:
    """No GPU reported an error while it was under load."""
    need_series(cluster, loads)
    names = (*CATALOG.xids.counts, *CATALOG.xids.last)
    seen = [run for run in loads.done if judge.samples(run.series, names)]
    cluster.need(seen, f"the exporter collects none of {', '.join(names)}")
    found = lines([(run, judge.xids(CATALOG, run.series)) for run in seen])
    cluster.expect(not found, kinds.LOAD_XID, "no XID", found)
