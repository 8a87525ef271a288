"""Charts in the versions of the catalog: their repositories have them, and helm renders them with
the values of gpufleet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from gpufleet.helm.findings.releases import CHART_UNREACHABLE
from gpufleet.helm.operations.calls import Helm
from gpufleet.helm.operations.charts import chart_archive
from gpufleet.helm.operations.program import HelmProgram
from gpufleet.helm.release import ChartSource, HelmVersion, Release
from gpufleet.kube.kubeconfig import Kubeconfig
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet_sandbox.cluster.programs import helm as helm_program
from tests.cluster.fake_charts import write_charts
from tests.cluster.serving import chart_repository
from tests.internet.conftest import Note
from tests.internet.places import IMITATED, REAL
from tests.unit.gpu_stack.gpu_clusters import FACTS, OLD, stack

STACKS = (
    {"monitoring_node_problems": True, "monitoring_autoscaling": True},
    {"cluster_stack": "gpu-operator"},
)
RELEASES = {
    (facts.server.full, release.chart): release
    for facts in (FACTS, OLD)
    for data in STACKS
    for release in stack(facts, **data).releases
}


@pytest.fixture(scope="module")
def helm() -> Helm:
    program = HelmProgram(helm_program(3, print), HelmVersion(3, 22))
    return Helm(program, Kubeconfig("none", {}), "internet")


@pytest.fixture(scope="module")
def fakes(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a repository with charts of the same names, versions and values."""
    folder = tmp_path_factory.mktemp("charts")
    write_charts(folder)
    with chart_repository(folder) as found:
        found.index(helm.program.path)
        yield found.url


def fetched(release: Release, helm: Helm, cache: Path, fakes: str) -> tuple[Path, str]:
    """The archive, and REAL or IMITATED for its source."""
    try:
        return chart_archive(release, helm, cache), REAL
    except ClusterProblem as problem:
        if problem.findings[0].code != CHART_UNREACHABLE.code:
            raise
    imitated = replace(release, source=ChartSource("repository", fakes))
    return chart_archive(imitated, helm, cache), IMITATED


@pytest.mark.parametrize(("server", "chart"), RELEASES)
def test_chart(server: str, chart: str, helm: Helm, fakes: str, tmp_path: Path, note: Note) -> None:
    release = RELEASES[server, chart]
    archive, against = fetched(release, helm, tmp_path, fakes)
    note(against)
    done = helm.render(release, archive, server, [])
    assert done.ok, done.stderr
    assert [each for each in yaml.safe_load_all(done.stdout) if each]
