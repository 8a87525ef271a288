"""The results of a run, per host: as data, as JSON (report.schema.json), and as JUnit XML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

from gpufleet import __version__
from gpufleet.core.accepted import accepted_of, split_accepted
from gpufleet.core.findings import Finding, Severity
from gpufleet.core.node_roles import NODE_ROLES, RuntimeState
from gpufleet.core.visible import one_line

SCHEMA = 1  # version of the JSON; increased when a field is removed or changes its meaning
Movement = dict[str, str | None]  # before, after; {}: not planned on the host
Status = Literal["converged", "changed", "planned", "failed", "not reached"]
BAD_STATUSES: tuple[Status, ...] = ("failed", "not reached")  # the run then exits with 1
INTERNAL = ("name", "seen", "examined", "leaves", "operations", "left")  # not in the JSON
OF_FINDINGS = ("findings", "accepted")  # fields
VERSIONS, LEAVES = "versions", "leaves"  # in the plan


@dataclass(slots=True)
class HostReport:
    """One host's part of the report. `seconds`: for its facts and operations, without waiting.

    During the run, `after` has the planned version; `settle` replaces it by the installed one.
    """

    name: str
    kind: Literal["node", "cluster"] = "node"
    status: Status = "not reached"
    changed: int = 0
    failed: bool = False
    roles: dict[str, Movement] = field(default_factory=lambda: {name: {} for name in NODE_ROLES})
    runtimes: dict[str, RuntimeState] = field(default_factory=dict)
    releases: dict[str, Movement] = field(default_factory=dict)  # of a cluster
    needs: list[str] = field(default_factory=list)  # manual steps that remain
    findings: list[Finding] = field(default_factory=list)
    accepted: list[Finding] = field(default_factory=list)  # the inventory accepts these
    errors: list[str] = field(default_factory=list)  # output of the failed operation
    plan: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    examined: bool = False  # it was read and planned
    leaves: bool = False  # the run removes gpufleet's installation
    seen: dict[str, str | None] = field(default_factory=dict)  # role or release -> version
    operations: list[str] = field(default_factory=list)  # names of those that changed the host
    left: list[str] = field(default_factory=list)  # steps that wait for a reboot

    @property
    def steps(self) -> list[str]:
        """The planned steps in order. Changes to the list change the plan."""
        steps: list[str] = self.plan.setdefault("steps", [])
        return steps

    @property
    def is_silent(self) -> bool:
        """True if the host needs no change and no action: --quiet prints nothing about it."""
        known = all(found.severity is Severity.INFO for found in self.findings)
        return self.status == "converged" and known and not self.needs

    def hide_accepted(self, data: Mapping[str, Any]) -> None:
        """Move the findings that the host's data accept from `findings` to `accepted`."""
        today = datetime.now(timezone.utc).date()
        self.findings, self.accepted = split_accepted(self.findings, accepted_of(data), today)

    def settle(self) -> None:
        """Set `after` to the version seen on the host, or to the previous version if none was seen.

        A role or release that was stopped, interrupted or never started has not changed.
        """
        self.cap_changes()
        for name, movement in (self.roles | self.releases).items():
            if movement:
                movement["after"] = self.seen.get(name, movement.get("before"))

    def cap_changes(self) -> None:
        """Count the steps of the plan that were done, in which several operations are one."""
        if self.kind == "node" and self.steps:
            self.changed = min(self.changed, len(self.steps) - len(self.left))
        if not self.changed:
            self.operations.clear()

    def keep_to_plan(self) -> None:
        """Reduce a dry run's report to the plan. A host with a blocker has no planned changes."""
        self.runtimes = dict.fromkeys(self.runtimes, "")
        if self.failed:
            self.steps.clear()
            self.settle()

    def as_dict(self) -> dict[str, Any]:
        """The host's part of the JSON: every field of the schema, even if the host was not read."""
        data: dict[str, Any] = {}
        for name in (each.name for each in fields(self) if each.name not in INTERNAL):
            data |= self._of_roles() if name == "roles" else {name: getattr(self, name)}
        data["plan"] = {**self.plan, "steps": self.steps}
        # not in other fields: a planned role without a version, roles without a field
        moved = {name: dict(found) for name, found in self.roles.items() if found}
        data["plan"] |= {VERSIONS: moved} if moved else {}
        data["plan"] |= {LEAVES: True} if self.leaves else {}
        for name in OF_FINDINGS:
            data[name] = [finding.as_dict() for finding in getattr(self, name)]
        data["seconds"] = round(self.seconds, 2)
        return data

    @classmethod
    def from_dict(cls, name: str, data: Mapping[str, Any]) -> HostReport:
        """A host's part of a report of this version, as written by `as_dict`."""
        kept = {each.name: data[each.name] for each in fields(cls) if each.name in data}
        part = cls(name, **kept, examined=True)
        part.plan = dict(part.plan)
        part.roles |= part.plan.pop(VERSIONS, {})
        part.leaves = part.plan.pop(LEAVES, False)
        for name in OF_FINDINGS:
            known = ({**found, "severity": Severity(found["severity"])} for found in data[name])
            setattr(part, name, [Finding(**found) for found in known])
        return part

    def _of_roles(self) -> dict[str, Movement]:
        unknown: Movement = {"before": None, "after": None}
        absent = unknown if self.kind == "node" else {}
        return {name: dict(self.roles.get(name) or absent) for name in in_schema()}


@cache
def in_schema() -> tuple[str, ...]:
    """The roles that have a field in the JSON. Other roles are only in its plan."""
    host = json.loads(Path(__file__).with_name("report.schema.json").read_text("utf-8"))
    fields = host["$defs"]["host"]["properties"]
    return tuple(name for name in fields if fields[name].get("$ref") == "#/$defs/movement")


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The run itself, for the report. Times are UTC; `exit_status` is the process's."""

    inventory: str
    deploys: tuple[str, ...]
    started: datetime
    finished: datetime
    dry: bool
    exit_status: int
    completed: bool = False  # pyinfra's command carried out the operations of every host


def report_json(hosts: Iterable[HostReport], run: RunFacts) -> str:
    """The report, indented, with a newline at the end. Raises ValueError for a number that JSON
    cannot express."""
    head = {
        "schema": SCHEMA,
        "gpufleet": __version__,
        "inventory": run.inventory,
        "deploys": list(run.deploys),
        "started": _utc(run.started),
        "finished": _utc(run.finished),
        "dry": run.dry,
        "exit_status": run.exit_status,
        "completed": run.completed,
    }
    whole = head | {"hosts": {host.name: host.as_dict() for host in hosts}}
    return json.dumps(whole, indent=2, allow_nan=False) + "\n"


def _utc(moment: datetime) -> str:
    """ISO 8601 to the second, with Z."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def report_junit(hosts: Sequence[HostReport], run: RunFacts) -> str:
    """A JUnit suite for the deploys of the run, with a test case for each host and cluster. One
    that failed or was not reached is a failure."""
    name = "gpufleet." + ("+".join(Path(each).stem for each in run.deploys) or "run")
    seconds = (run.finished - run.started).total_seconds()
    failed = [host for host in hosts if host.status in BAD_STATUSES]
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, "time": f"{seconds:.1f}"})
    counts = {"tests": len(hosts), "failures": len(failed), "errors": 0, "skipped": 0}
    suite.attrib.update({key: str(count) for key, count in counts.items()})
    for host in hosts:
        words = {"classname": name, "name": one_line(host.name), "time": f"{host.seconds:.1f}"}
        case = ElementTree.SubElement(suite, "testcase", words)
        if host.status in BAD_STATUSES:
            failure = ElementTree.SubElement(case, "failure", message=host.status)
            failure.text = "\n".join(host_problems(host.as_dict()))
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def host_problems(host: Mapping[str, Any]) -> Iterator[str]:
    """Blockers and errors of a host in a report, one line each, without control characters."""
    found = [each for each in host.get("findings", ()) if each.get("severity") == "blocker"]
    texts = [f"{each['code']} {each['message']}" for each in found]
    for text in (*texts, *host.get("errors", ())):
        yield from map(one_line, str(text).splitlines())
