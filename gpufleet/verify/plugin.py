"""The pytest plugin of `gpufleet verify`: options, fixtures, the hosts of each check.

Every check runs once per host, over one SSH connection per host. The hosts are read in parallel
before the first check. With xdist (`-n 4 --dist loadgroup`), one worker runs all checks of a host.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.verify import host_fixture
from gpufleet.verify.checks import SUBJECTS, is_own, lacks_subject, target_of
from gpufleet.verify.connection import Connections
from gpufleet.verify.inventory import Target, load_targets, select_targets
from gpufleet.verify.node import CheckedNode
from gpufleet.verify.probe import HostProbe, Output, Unreachable, Unusable
from gpufleet.verify.reporting import Reporting, prepare_files
from gpufleet.verify.sharing import keys_of_nodes

if TYPE_CHECKING:
    from gpufleet.verify.cluster import CheckedCluster

TARGETS_KEY = pytest.StashKey[list[Target]]()
NODES_KEY = pytest.StashKey[dict[str, CheckedNode]]()
CONNECTIONS_KEY = pytest.StashKey[Connections]()
CAUSE = "test_reachable"  # if this check fails, the host's other checks are skipped
PARALLEL = 32  # hosts read at the same time


class NoProbe:
    """A host whose description in the inventory the checks cannot use."""

    def __init__(self, why: str) -> None:
        self._why = why

    def run(self, command: str) -> Output:
        raise Unreachable(self._why)

    def script(self, name: str, *arguments: str) -> dict[str, Output]:
        raise Unreachable(self._why)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpufleet")
    group.addoption("--inventory", metavar="FILE", help="pyinfra inventory of the hosts to check")
    group.addoption(
        "--limit", action="append", default=[], metavar="HOST|GROUP", help="check only these hosts"
    )
    group.addoption("--json", dest="json_report", metavar="FILE", help="write the results as JSON")


class Hooks:
    """Hooks through which another plugin reports on the targets."""

    @pytest.hookspec(firstresult=True)
    def pytest_gpufleet_problems(self, target: Target) -> tuple[str, ...] | None:
        """Problems in a target's settings that stop a deploy. None if they were not read."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)


def pytest_configure(config: pytest.Config) -> None:
    # xdist also registers this marker, if it is installed. Markers are strict.
    config.addinivalue_line("markers", "xdist_group(name): tests of one host, kept together")
    config.stash[CONNECTIONS_KEY] = Connections()
    config.stash[NODES_KEY] = {}
    config.pluginmanager.register(host_fixture, "gpufleet-host")
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        targets = [Target(**target) for target in json.loads(worker["targets"])]
    else:
        targets = _read_targets(config)
        prepare_files(config)
    config.stash[TARGETS_KEY] = targets
    config.pluginmanager.register(Reporting(targets), "gpufleet-reporting")


def _read_targets(config: pytest.Config) -> list[Target]:
    """The hosts to check, with the problems in their settings. Raises UsageError."""
    inventory = config.option.inventory
    if inventory is None:
        raise pytest.UsageError("say which hosts to check: --inventory FILE")
    try:
        every = load_targets(inventory)
        found = select_targets(every, config.option.limit, inventory)
    except Stopped as stopped:
        raise pytest.UsageError(stopped.findings[0].paragraph) from stopped
    problems, keys = config.hook.pytest_gpufleet_problems, keys_of_nodes(every)
    return [
        replace(
            target,
            problems=problems(target=target),
            gpu_keys=keys if target.is_cluster else {},
        )
        for target in found
    ]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the hosts to an xdist worker, so that the inventory is loaded only once."""
    targets = [asdict(target) for target in node.config.stash[TARGETS_KEY]]
    node.workerinput["targets"] = json.dumps(targets, default=str)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[CONNECTIONS_KEY].close()


def _node(config: pytest.Config, target: Target) -> CheckedNode:
    nodes = config.stash[NODES_KEY]
    if target.name not in nodes:
        try:
            probe: HostProbe | NoProbe = config.stash[CONNECTIONS_KEY].open(target)
        except Unusable as error:
            probe = NoProbe(str(error))
        nodes[target.name] = CheckedNode(target, probe)
    return nodes[target.name]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for subject in SUBJECTS:
        if subject not in metafunc.fixturenames:
            continue
        targets = metafunc.config.stash[TARGETS_KEY]
        parameters = [
            pytest.param(target, id=target.name, marks=pytest.mark.xdist_group(target.name))
            for target in targets
            if target.is_cluster == (subject == "cluster")
        ]
        none = pytest.mark.skip(f"no {subject}")
        parameters = parameters or [pytest.param(None, id="none", marks=none)]
        metafunc.parametrize(subject, parameters, indirect=True, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Run the reachability check first, even if -k does not select it. Otherwise all checks of an
    unreachable host would be skipped, and the run would look successful."""
    causes = [item for item in items if getattr(item, "originalname", "") == CAUSE]
    yield
    chosen = {target.name for item in items if (target := target_of(item))}
    first = [item for item in causes if (target := target_of(item)) and target.name in chosen]
    rest = [item for item in items if item not in first]
    about = first + [item for item in rest if not lacks_subject(item)]
    items[:] = about or rest  # a run of nothing else says why each check is skipped


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest) -> CheckedNode:
    """One host of the inventory."""
    return _node(request.config, request.param)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> CheckedCluster:
    """One cluster of the inventory."""
    from gpufleet.verify.cluster import CheckedCluster  # slow to load

    return CheckedCluster(request.param, partial(_count_gpus, request.config))


def _count_gpus(config: pytest.Config, name: str) -> int | None:
    """The number of GPUs that a node's host has, or None if this run does not read the host."""
    hosts = [
        target
        for target in config.stash[TARGETS_KEY]
        if not target.is_cluster and name in (target.name, target.name.partition(".")[0])
    ]
    node = _node(config, hosts[0]) if len(hosts) == 1 else None
    return len(node.gpus) if node and not node.trouble else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Read all hosts in parallel: a fleet then takes as long as its slowest host."""
    config = session.config
    if config.option.collectonly or hasattr(config, "workerinput") or not session.items:
        return
    with ThreadPoolExecutor(PARALLEL) as pool:
        hosts = [target for target in config.stash[TARGETS_KEY] if not target.is_cluster]
        nodes = [_node(config, target) for target in hosts]
        for node in nodes:
            pool.submit(node.read)  # the host's checks raise and report its errors again


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a user's own check of a host that does not answer. The check `reachable` reports it."""
    target = target_of(item)
    if target and not target.is_cluster and is_own(item):
        _node(item.config, target).need_answer()
