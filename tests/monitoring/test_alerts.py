"""Every alert fires, is quiet in the nearest harmless case, and its tests notice a broken rule."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpufleet.monitoring.alert_models import load_alerts
from gpufleet.monitoring.alert_rules import rule_groups
from gpufleet_sandbox.debian import debian_program
from tests.monitoring.alert_cases import Case, as_promtool, load_cases, same_rules
from tests.monitoring.mutants import Rule, mutants

CATALOG = load_alerts()
GROUP = rule_groups(CATALOG)[0]
ALERTS = {rule["alert"]: rule for rule in GROUP["rules"] if "alert" in rule}
RECORDS = [rule for rule in GROUP["rules"] if "record" in rule]
TESTS = load_cases()
NAMES = [alert.name for alert in CATALOG.alerts]
WORKLOAD = "gpufleet:workload"  # which annotations ask for


def needed(exprs: list[str]) -> list[Rule]:
    """The recorded series that expressions and annotations use, in their order."""
    texts, names = [*exprs, WORKLOAD], set[str]()
    while True:
        found = {r["record"] for r in RECORDS if any(r["record"] in text for text in texts)}
        if found == names:
            return [record for record in RECORDS if record["record"] in names]
        names = found
        texts += [record["expr"] for record in RECORDS if record["record"] in names]


def promtool_says(folder: Path, rules: list[Rule], tests: list[dict[str, Any]]) -> str:
    """The failures that promtool reports, or "" if all tests pass."""
    records = needed([rule["expr"] for rule in rules])
    content = {"groups": [{**GROUP, "rules": [*records, *rules]}]}
    (folder / "rules.yml").write_text(json.dumps(content))
    suite = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (folder / "tests.yml").write_text(json.dumps(suite))
    done = subprocess.run(
        [debian_program("prometheus", "promtool"), "test", "rules", "tests.yml"],
        cwd=folder, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode in (0, 1), said
    assert "parse error" not in said, said
    assert "yaml:" not in said, said
    return said if done.returncode else ""


def group(name: str, case: Case, names: list[str]) -> dict[str, Any]:
    """One case, asked of the alert and of its mutants under their names."""
    alert = CATALOG.alert(name)
    doctor = ALERTS[name]["annotations"].get("doctor")
    texts = {
        "summary": alert.summary,
        "description": alert.description,
        **({"doctor": doctor} if doctor else {}),
    }
    return as_promtool(names, case, alert.labels, texts)


def test_every_alert_has_cases() -> None:
    assert sorted(TESTS) == sorted(NAMES)
    for name, cases in TESTS.items():
        kinds = {case.name.split(":")[0] for case in cases}
        assert {"fires", "quiet", "reset", "missing"} <= kinds, name


@pytest.mark.claim(
    "Each alert fires, names node, GPU and pod, and is quiet in the nearest harmless case.",
    level=6,
)
@pytest.mark.parametrize("name", NAMES)
def test_alert(name: str, tmp_path: Path) -> None:
    """The rule passes its cases."""
    cases = [group(name, case, [name]) for case in TESTS[name]]
    assert promtool_says(tmp_path, [ALERTS[name]], cases) == ""


@pytest.mark.claim(
    "Every changed threshold, comparison, range, matcher, join or `for` makes promtool fail.",
    level=6,
)
@pytest.mark.extended
@pytest.mark.parametrize("name", NAMES)
def test_a_changed_rule_is_noticed(name: str, tmp_path: Path) -> None:
    """None of its mutants passes its cases, but for those that are the same."""
    changed = {f"{name}{i}": what for i, what in enumerate(mutants(ALERTS[name]))}
    rules = {key: {**rule, "alert": key} for key, (_, rule) in changed.items()}
    noticed: set[str] = set()
    errors = {""}
    while errors:  # a change that makes the rule an error hides the others
        left = [key for key in rules if key not in noticed]
        cases = [group(name, case, left) for case in TESTS[name]]
        said = promtool_says(tmp_path, [rules[key] for key in left], cases)
        errors = set(re.findall(r"rule: (\w+), time", said))
        noticed |= errors or set(re.findall(r"alertname: ?(\w+), ", said))
    unnoticed = {what for key, (what, _) in changed.items() if key not in noticed}
    assert unnoticed == set(same_rules()[name])
