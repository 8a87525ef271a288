"""What `make demo-upgrade` has seen, and whether it is what the demo promises. Pure."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PHASES = "prepared|draining|changing|restoring|done|reverted|passed|stuck"
LINE = re.compile(
    rf"(?P<time>\S+ [\d:]+) (?:(?P<host>\S+): (?P<event>(?:{PHASES})(?:, in service)?)|"
    r"run \S+: (?P<end>finished|stopped|paused|aborted))(?:: .*)?"
)
VERSION = re.compile(r"\d+\.\d+(\.\d+)?")


@dataclass(slots=True)
class Requests:
    """Requests to the inference: one try each."""

    sent: int = 0
    lost: list[str] = field(default_factory=list)  # why, one for each
    by_driver: dict[str, int] = field(default_factory=dict)  # answers
    slowest: float = 0.0  # seconds

    def add(self, status: int, body: str, seconds: float) -> None:
        """A response. Only one of a GPU is an answer."""
        self.sent += 1
        self.slowest = max(self.slowest, seconds)
        if status == 200 and VERSION.fullmatch(body.strip()):
            self.by_driver[body.strip()] = self.by_driver.get(body.strip(), 0) + 1
        else:
            self.lost.append(f"status {status}: {body.strip()[:80]!r}")

    def add_lost(self, reason: str) -> None:
        """A request without a response."""
        self.sent += 1
        self.lost.append(reason)

    @property
    def answered(self) -> int:
        return sum(self.by_driver.values())


@dataclass(frozen=True, slots=True)
class Seen:
    """The results: drivers of the nodes, lines of the training and events of the two runs."""

    before: Mapping[str, str]
    between: Mapping[str, str]
    after: Mapping[str, str]
    requests: Requests
    training: Sequence[str]  # "started 0 580.178.04", "saved 57 580.178.04", ...
    steps: Mapping[str, int]  # before, between and after
    tries: Sequence[Sequence[Mapping[str, Any]]]
    canary: str
    target: str


def judge(seen: Seen) -> list[str]:
    """Why it is not what the demo promises; [] if it is."""
    return [*_requests(seen.requests), *_training(seen), *_nodes(seen), *_tries(seen)]


def _requests(requests: Requests) -> list[str]:
    problems = [f"{len(requests.lost)} requests were lost"] if requests.lost else []
    if not requests.answered:
        problems.append("no request was answered")
    if requests.sent != requests.answered + len(requests.lost):
        problems.append("some requests were neither answered nor counted as lost")
    return problems


def _training(seen: Seen) -> list[str]:
    """Each start but the first must continue from the step that the previous pod saved at its
    end."""
    problems, saved = [], "0"
    ends = [line.split() for line in seen.training]
    for (word, step, _), wanted in zip(ends, _alternating(), strict=False):
        if word != wanted:
            return [f"the training was ended by force: {' / '.join(seen.training)}"]
        if word == "started" and step != saved:
            problems.append(f"the training went on from step {step} instead of {saved}")
        saved = step
    if not ends or ends[-1][0] != "started":
        problems.append("the training does not run")
    elif ends[-1][2] != seen.target:
        problems.append(f"the training runs on driver {ends[-1][2]}")
    if not seen.steps["before"] < seen.steps["between"] < seen.steps["after"]:
        problems.append("the training made no steps during a try")
    return problems


def _alternating() -> Iterator[str]:
    while True:
        yield "started"
        yield "saved"


def _nodes(seen: Seen) -> list[str]:
    problems = [
        f"{node} had driver {version} after the first try, and {seen.before[node]} before it"
        for node, version in seen.between.items()
        if version != seen.before[node]
    ]
    problems += [
        f"{node} has driver {version}, not {seen.target}"
        for node, version in seen.after.items()
        if version != seen.target or seen.before[node] == seen.target
    ]
    return problems


def _tries(seen: Seen) -> list[str]:
    """The first try changes and rolls back the canary alone; the second changes every node."""
    if len(seen.tries) != 2:
        return [f"there were {len(seen.tries)} tries"]
    problems = []
    first, second = (events(entries) for entries in seen.tries)
    failed = {node for node, happened in first.items() if "changing" in happened}
    if failed != {seen.canary} or first[seen.canary][-2:] != ["reverted", "reverted, in service"]:
        problems.append("the first try did not change and roll back the canary alone")
    if set(second) != set(seen.before) or any(
        happened[-2:] != ["done", "done, in service"] for happened in second.values()
    ):
        problems.append("the second try did not change and return every node")
    return problems


def entries_of(text: str) -> list[dict[str, Any]]:
    """The entries of a log about phases of hosts and the end of the run."""
    found: list[dict[str, Any]] = []
    for line in filter(None, map(LINE.fullmatch, text.splitlines())):
        moment = time.mktime(time.strptime(line["time"], "%Y-%m-%d %H:%M:%S"))
        host = {"host": line["host"]} if line["host"] else {}
        found.append({"time": moment, "event": line["event"] or line["end"], **host})
    return found


def events(entries: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Host -> what happened to it."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        if "host" in entry:
            found.setdefault(entry["host"], []).append(entry["event"])
    return found


def out_of_service(entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Host -> seconds from its drain to its return."""
    began = {entry["host"]: entry["time"] for entry in entries if entry["event"] == "draining"}
    return {
        entry["host"]: entry["time"] - began[entry["host"]]
        for entry in entries
        if entry["event"].endswith(", in service") and entry["host"] in began
    }


def lines(seen: Seen) -> list[str]:
    """The report."""
    requests, steps = seen.requests, seen.steps
    reasons = Counter(requests.lost)
    by_driver = ", ".join(f"{many} by {driver}" for driver, many in requests.by_driver.items())
    found = [
        f"requests     {requests.sent} sent, {requests.answered} answered ({by_driver}), "
        f"{len(requests.lost)} lost; slowest answer {requests.slowest:.1f} s",
        *(f"             lost: {many} x {why}" for why, many in reasons.most_common(5)),
        f"training     {steps['before']} steps before, {steps['between']} after the first try, "
        f"{steps['after']} at the end",
        *(f"             {_said(line)}" for line in seen.training),
    ]
    outs = [out_of_service(entries) for entries in seen.tries]
    for node, version in seen.after.items():
        times = " + ".join(f"{out[node]:.0f} s" for out in outs if node in out)
        way = f"{seen.before[node]} -> {seen.between[node]} -> {version}"
        found.append(f"{node:12} {way}, out of service for {times or '0 s'}")
    for number, entries in enumerate(seen.tries, 1):
        found.append(f"try {number}        {entries[-1]['time'] - entries[0]['time']:.0f} s, "
                     f"the run was {entries[-1]['event']}")  # fmt: skip
    return found


def _said(line: str) -> str:
    word, step, driver = line.split()
    return f"{word} at step {step}, driver {driver}"


def goes_on(history: Sequence[str], steps: int) -> bool:
    """A pod runs, and has made steps since its start."""
    word, step, _ = history[-1].split() if history else ("", "0", "")
    return word == "started" and steps > int(step)
