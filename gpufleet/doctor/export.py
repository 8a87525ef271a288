"""Verdicts as JUnit XML, metrics and one line; commands of next steps. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from xml.etree import ElementTree

from gpufleet.core.metrics import gauges_text
from gpufleet.core.names import LOCAL_HOST
from gpufleet.core.secrets import hide_secrets
from gpufleet.core.visible import one_line
from gpufleet.doctor.models import (
    RANKS,
    CheckOutcome,
    JudgedFleet,
    NextStep,
    SubjectVerdict,
    Verdict,
    load_steps,
)

DOCTOR_METRICS_PREFIX = "gpufleet_doctor"
DRAIN = "kubectl drain {host} --ignore-daemonsets --delete-emptydir-data"
# part of a command -> field of the result that fills it
FILLED = {"{gpu}": "gpu", "{unit}": "unit", "{namespace}": "place", "{path}": "path"}


def next_steps(result: CheckOutcome) -> list[tuple[str, NextStep]]:
    """The next steps of a result, by id. A step lacks no name: it can be copied."""
    unknown = [part for part, name in FILLED.items() if not getattr(result, name)]
    steps = [(name, load_steps().steps[name]) for name in result.steps]
    return [each for each in steps if not any(part in each[1].command for part in unknown)]


def step_command(
    step: NextStep, inventory: str, found: SubjectVerdict, result: CheckOutcome
) -> str:
    """The command of a step, to copy into a shell. A node of Kubernetes is drained before."""
    namespace, _, name = result.place.partition("/")
    given = {"inventory": inventory, "host": found.name, "gpu": result.gpu, "unit": result.unit}
    given |= {"namespace": namespace, "name": name, "path": result.path}
    words = {key: shlex.quote(one_line(value)) for key, value in given.items()}
    words["login"] = found.login or words["host"]
    command = step.command
    if found.name == LOCAL_HOST:  # a name of gpufleet, not of the machine
        command, words["host"] = command.removeprefix("ssh {login} "), '"$(hostname)"'
        command = command.replace(" --limit {host}", "")
    drain = f"{DRAIN.format(**words)} && " if step.drains and found.kubelet else ""
    return drain + command.format(**words)


def ssh_words(name: str, data: Mapping[str, str]) -> str:
    """The words by which ssh reaches a host as the inventory does, quoted for a shell.

    `data`: of the inventory. {"ssh_hostname": "10.0.0.5", "ssh_user": "admin"} -> admin@10.0.0.5
    """
    place = data.get("ssh_hostname") or name.removeprefix("@ssh/")
    user = f"{data['ssh_user']}@" if data.get("ssh_user") else ""
    known = data.get("ssh_known_hosts_file", "")
    known = f'"{known}"' if " " in known else known  # ssh takes several files
    options = {
        "-F": data.get("ssh_config_file"),
        "-o": known and f"UserKnownHostsFile={known}",
        "-p": data.get("ssh_port"),
        "-i": data.get("ssh_key"),
    }
    words = [f"{option} {_shell_word(value)}" for option, value in options.items() if value]
    return " ".join([*words, _shell_word(user + place)])


def _shell_word(text: str) -> str:
    """The text as one word of a shell, which replaces a leading ~: ssh does so only in some files.

    ~/my config -> ~/'my config'
    """
    home = "~/" if text.startswith("~/") else ""
    return home + shlex.quote(one_line(text.removeprefix("~/")))


def doctor_junit(found: Iterable[SubjectVerdict]) -> str:
    """JUnit XML: a suite for each host or cluster, a case for each check. Infos pass."""
    root = ElementTree.Element("testsuites")
    for subject in found:
        failed = sum(result.verdict.fails for result in subject.results)
        counts = {"tests": str(len(subject.results)), "failures": str(failed)}
        words = {"name": one_line(subject.name), **counts, "errors": "0", "skipped": "0"}
        suite = ElementTree.SubElement(root, "testsuite", words)
        for result in subject.results:
            name = " ".join(filter(None, [result.check, result.gpu]))
            case = {"classname": one_line(subject.name), "name": one_line(name)}
            place = ElementTree.SubElement(suite, "testcase", case)
            if result.verdict.fails:
                follows = f" (follows from {result.follows})" if result.follows else ""
                text = f"{result.verdict.value}: {one_line(result.cause)}{follows}"
                ElementTree.SubElement(place, "failure", message=text).text = result.remedy
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def prolog_line(judged: JudgedFleet) -> str:
    """One line for the log of a batch system: the verdict, and the worst cause of each host."""
    causes = [(each.name, each.causes[0]) for each in judged.hosts if each.causes]
    parts = [f"; {one_line(f'{name}: {cause.check} {cause.cause}')}" for name, cause in causes]
    return hide_secrets(f"gpufleet {judged.verdict.value}{''.join(parts)}")


def doctor_metrics_text(judged: JudgedFleet, now: int) -> str:
    """Metrics for node_exporter's textfile collector. `now`: seconds since 1970."""
    verdicts = [
        ({"host": each.name, "verdict": verdict.value}, float(each.verdict is verdict))
        for each in judged.every
        for verdict in RANKS
        if verdict is not Verdict.INFO
    ]
    worst: dict[tuple[str, str, str, str], int] = {}  # a check can have several outcomes
    for each in judged.every:
        for result in each.results:
            cause = "false" if result.follows else "true"
            series = (each.name, result.check, result.gpu, cause)
            worst[series] = max(result.verdict.rank, worst.get(series, 0))
    names = ("host", "check", "gpu", "cause")
    checks = [
        (dict(zip(names, series, strict=True)), float(rank)) for series, rank in worst.items()
    ]
    ranks = ", ".join(f"{verdict.rank} {verdict.value}" for verdict in RANKS)
    text = gauges_text(
        DOCTOR_METRICS_PREFIX,
        [
            ("verdict", "Whether the host or cluster has the verdict.", verdicts),
            ("check", f"Outcome of a check: {ranks}.", checks),
            ("timestamp_seconds", "When gpufleet doctor read the hosts.",
             [({"inventory": judged.inventory}, float(now))]),
        ],
    )  # fmt: skip
    return hide_secrets(text)
