"""The pytest plugin behind `gpufleet verify`: options, fixtures, the table and the JSON report.

Every check runs once per host, over one SSH connection per host. The hosts are read in parallel
before the first check; with xdist (`-n 4 --dist loadgroup`) a host's checks stay in one worker.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpufleet.core.paths import shipped
from gpufleet.run.report_file import ReportFile, is_junit, is_report
from gpufleet.verify import host_fixture
from gpufleet.verify.become import Unusable
from gpufleet.verify.connection import Connections
from gpufleet.verify.inventory import Target, VerifyError, load_targets, select
from gpufleet.verify.node import Node
from gpufleet.verify.probe import HostProbe, Output, Unreachable
from gpufleet.verify.report import Outcome, Report, Result
from gpufleet.verify.subject import CheckFailed

if TYPE_CHECKING:
    from gpufleet.verify.cluster import Cluster

TARGETS = pytest.StashKey[list[Target]]()
NODES = pytest.StashKey[dict[str, Node]]()
CONNECTIONS = pytest.StashKey[Connections]()
REPORT = pytest.StashKey[Report]()
SUBJECTS = ("node", "cluster")  # what a check is about: the fixture that it takes
NO_HOST = "(no host)"  # the row of a user's own checks that take none of them
CAUSE = "test_reachable"  # the check whose failure has every other one skipped
PARALLEL = 32  # hosts read at the same time


class NoProbe:
    """A host that the inventory describes in a way that checks cannot use."""

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


def pytest_configure(config: pytest.Config) -> None:
    # Registered by xdist where it is installed; markers are strict.
    config.addinivalue_line("markers", "xdist_group(name): tests of one host, kept together")
    config.stash[REPORT] = Report()
    config.stash[CONNECTIONS] = Connections()
    config.stash[NODES] = {}
    config.stash[TARGETS] = []
    config.pluginmanager.register(Collector(config.stash[REPORT]), "gpufleet-collector")
    config.pluginmanager.register(host_fixture, "gpufleet-host")
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        config.stash[TARGETS] = [Target(**target) for target in json.loads(worker["targets"])]
        return
    inventory = config.option.inventory
    if inventory is None:
        raise pytest.UsageError("say which hosts to check: --inventory FILE")
    try:
        config.stash[TARGETS] = select(load_targets(inventory), config.option.limit, inventory)
    except VerifyError as error:
        raise pytest.UsageError(str(error)) from error
    _prepare("--json", config.option.json_report, is_report)
    _prepare("--junit", config.option.xmlpath, is_junit)
    config.stash[REPORT].hosts = {target.name: {} for target in config.stash[TARGETS]}


def _prepare(option: str, path: str | None, ours: Callable[[bytes], bool]) -> None:
    """See that the results can be written to the file that an option names, before any check."""
    if not path:
        return
    try:
        ReportFile(Path(path), ours).prepare()
    except OSError as error:
        raise pytest.UsageError(f"{option} {path}: {error.strerror or error}") from error


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the hosts to an xdist worker, so that the inventory is loaded once."""
    targets = [target.as_dict() for target in node.config.stash[TARGETS]]
    node.workerinput["targets"] = json.dumps(targets, default=str)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[CONNECTIONS].close()


def _node(config: pytest.Config, target: Target) -> Node:
    nodes = config.stash[NODES]
    if target.name not in nodes:
        try:
            probe: HostProbe | NoProbe = config.stash[CONNECTIONS].open(target)
        except Unusable as error:
            probe = NoProbe(str(error))
        nodes[target.name] = Node(target, probe)
    return nodes[target.name]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for subject in SUBJECTS:
        if subject not in metafunc.fixturenames:
            continue
        targets = metafunc.config.stash[TARGETS]
        parameters = [
            pytest.param(target, id=target.name, marks=pytest.mark.xdist_group(target.name))
            for target in targets
            if target.is_cluster == (subject == "cluster")
        ]
        none = pytest.mark.skip(f"no {subject}")
        parameters = parameters or [pytest.param(None, id="none", marks=none)]
        metafunc.parametrize(subject, parameters, indirect=True, scope="session")


def _target(item: pytest.Item) -> Target | None:
    """The host or cluster that a check is about; None where it takes neither."""
    parameters = _parameters(item)
    target = next((parameters[name] for name in SUBJECTS if name in parameters), None)
    return target if isinstance(target, Target) else None


def _parameters(item: pytest.Item) -> Mapping[str, Any]:
    """Parameter -> value of a check; {} where it takes none."""
    call = getattr(item, "callspec", None)
    return call.params if call else {}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Whether a host answers is checked first, and whatever -k chooses: the chosen checks of one
    that does not are skipped, and would leave a run that looks right."""
    causes = [item for item in items if getattr(item, "originalname", "") == CAUSE]
    yield
    chosen = {target.name for item in items if (target := _target(item))}
    first = [item for item in causes if (target := _target(item)) and target.name in chosen]
    items[:] = first + [item for item in items if item not in first]


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest) -> Node:
    """One host of the inventory."""
    return _node(request.config, request.param)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """One cluster of the inventory."""
    from gpufleet.verify.cluster import Cluster  # the client takes its time to load

    return Cluster(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Read all hosts at once: a fleet takes as long as its slowest host."""
    config = session.config
    if config.option.collectonly or hasattr(config, "workerinput") or not session.items:
        return
    with ThreadPoolExecutor(PARALLEL) as pool:
        hosts = [target for target in config.stash[TARGETS] if not target.is_cluster]
        nodes = [_node(config, target) for target in hosts]
        for node in nodes:
            pool.submit(node.read)  # what it raises, that host's checks raise too, and report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a user's own check of a host that does not answer: `reachable` says so."""
    target = _target(item)
    if target and not target.is_cluster and _is_own(item):
        node = _node(item.config, target)
        node.need(not node.trouble, "the host is not reachable (GF710)")


def _is_own(item: pytest.Item) -> bool:
    """Whether it is a check of the user's, not one that ships with gpufleet."""
    return shipped("checks") not in item.path.resolve().parents


def _check_name(item: pytest.Item) -> str:
    """test_runtime_up[gpu-1-docker] -> runtime_up[docker]; a user's own check has the name of its
    file before it: checks/test_site.py::test_disk -> site.disk"""
    function = getattr(item, "originalname", item.name)
    extra = [str(value) for name, value in _parameters(item).items() if name not in SUBJECTS]
    name = str(function).removeprefix("test_")
    if _is_own(item):
        name = f"{item.path.stem.removeprefix('test_')}.{name}"
    return f"{name}[{'-'.join(extra)}]" if extra else name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note host, check and code as properties: they reach JUnit and xdist's controller."""
    report = yield
    target = _target(item)
    if target or (_is_own(item) and not _parameters(item).keys() & set(SUBJECTS)):
        name = target.name if target else NO_HOST
        report.user_properties += [("host", name), ("check", _check_name(item))]
    if call.excinfo is None:
        return report
    if isinstance(call.excinfo.value, CheckFailed):
        code = ("code", call.excinfo.value.finding.code)
        report.user_properties.append(code)
        item.user_properties.append(code)  # JUnit takes them from the report of the teardown
        report.longrepr = str(call.excinfo.value)  # no traceback: the text says it all
    elif isinstance(call.excinfo.value, AssertionError | pytest.fail.Exception):
        report.user_properties.append(("outcome", "failed"))  # of a user's own check
    return report


def _result(report: pytest.TestReport, properties: Mapping[str, str]) -> Result:
    code = properties.get("code")
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        return Result("skipped", None, reason.removeprefix("Skipped: "), report.duration)
    if report.failed:
        outcome: Outcome = "failed" if code or "outcome" in properties else "error"
        return Result(outcome, code, report.longreprtext, report.duration)
    return Result("passed", seconds=report.duration)


class Collector:
    """Gathers results where they all pass by: in the process that prints the summary."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = {name: str(value) for name, value in report.user_properties}
        if "check" in properties and (report.when == "call" or not report.passed):
            result = _result(report, properties)
            self._report.add(properties["host"], properties["check"], result)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file of the user's that cannot be loaded is one check in error."""
        if report.failed:
            name = Path(report.nodeid.partition("::")[0]).stem.removeprefix("test_")
            self._report.add(NO_HOST, name, Result("error", None, report.longreprtext))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    report = terminalreporter.config.stash[REPORT]
    if any(report.hosts.values()):
        terminalreporter.write_line("")
        terminalreporter.write_line(report.table())


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = getattr(session.config.option, "json_report", None)
    if path and not hasattr(session.config, "workerinput"):
        text = json.dumps(session.config.stash[REPORT].as_dict(), indent=2)
        try:
            ReportFile(Path(path)).write(text + "\n")
        except OSError as error:
            print(f"Cannot write --json {path}: {error.strerror or error}", file=sys.stderr)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
