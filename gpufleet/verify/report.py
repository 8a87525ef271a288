"""The results of the checks per host: a table for people, JSON for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from gpufleet.core.names import count_noun, group_by_thing, name_hosts
from gpufleet.core.visible import one_line

Outcome = Literal["passed", "failed", "skipped", "error"]
FAILURES = frozenset({"failed", "error"})
REPORT_WIDTH = 110
SKIPPED_HEAD = "Skipped, as they do not apply or need what is missing:"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check on one host. `code`: the finding's; `message`: never "" unless the
    check passed."""

    outcome: Outcome
    code: str | None = None
    message: str = ""
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 3)}


@dataclass
class Report:
    """All results of one run: host -> check -> result."""

    hosts: dict[str, dict[str, CheckResult]] = field(default_factory=dict)

    def add(self, host: str, check: str, result: CheckResult) -> None:
        """Add a result. A failure in the setup or teardown replaces the check's result. If the
        check failed too, the messages are joined."""
        checks = self.hosts.setdefault(host, {})
        before = checks.get(check)
        if before and {before.outcome, result.outcome} <= FAILURES:
            checks[check] = replace(
                before,
                code=before.code or result.code,
                message=f"{before.message}\n{result.message}",
                seconds=before.seconds + result.seconds,
            )
        elif not before or result.outcome in FAILURES:
            checks[check] = result

    def count(self, host: str, *outcomes: Outcome) -> int:
        return sum(result.outcome in outcomes for result in self.hosts[host].values())

    def skips(self, host: str) -> Counter[str]:
        """Reason -> number of checks skipped for it."""
        results = self.hosts[host].values()
        return Counter(result.message for result in results if result.outcome == "skipped")

    def as_dict(self) -> dict[str, Any]:
        """`totals` -> `passed`, `failed`, `skipped` (numbers of checks); `hosts` -> name -> the
        same numbers and `checks` -> name -> `outcome`, `code`, `message`, `seconds`."""
        numbers = {
            host: {
                "passed": self.count(host, "passed"),
                "failed": self.count(host, "failed", "error"),
                "skipped": self.count(host, "skipped"),
            }
            for host in self.hosts
        }
        outcomes = ("passed", "failed", "skipped")
        return {
            "totals": {name: sum(each[name] for each in numbers.values()) for name in outcomes},
            "hosts": {
                host: numbers[host]
                | {"checks": {name: result.as_dict() for name, result in sorted(checks.items())}}
                for host, checks in self.hosts.items()
            },
        }

    def table(self, width: int = REPORT_WIDTH) -> str:
        """One row per host, then the reasons for skipped checks."""
        table = Table(
            title="Checks per host", title_justify="left", box=None, padding=(0, 2, 0, 0),
            pad_edge=False,
        )  # fmt: skip
        table.add_column("host", overflow="fold")
        for title in ("passed", "failed", "skipped"):
            table.add_column(title, justify="right")
        table.add_column("failed checks", overflow="fold")
        for host, checks in self.hosts.items():
            failed = [
                f"{name} ({r.code or r.outcome})"
                for name, r in checks.items()
                if r.outcome in FAILURES
            ]
            table.add_row(
                one_line(host),
                str(self.count(host, "passed")),
                str(len(failed)),
                str(self.count(host, "skipped")),
                ", ".join(failed) or "-",
            )
        console = Console(width=width, highlight=False, markup=False, color_system=None)
        with console.capture() as captured:
            console.print(table)
            # (reason, number of checks) -> the hosts with that number skipped for that reason
            if skips := group_by_thing(
                (host, skip) for host in self.hosts for skip in self.skips(host).items()
            ):
                console.print(SKIPPED_HEAD, soft_wrap=True)
            for (reason, number), hosts in skips.items():
                each = "" if len(hosts) == 1 else "each of "
                where = f"{count_noun(number, 'check')} on {each}{name_hosts(hosts)}"
                console.print(f"  {where}: {one_line(reason)}", soft_wrap=True)
        return captured.get()
