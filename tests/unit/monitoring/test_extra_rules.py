"""Rules files of the user: checked before any change, and installed with gpufleet's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpufleet.gpu_stack.settings import load_cluster_settings
from tests.unit.gpu_stack.gpu_clusters import FACTS, stack

GROUP = "groups:\n- name: site\n  rules:\n  - {alert: Down, expr: up == 0, for: 5m}\n"


def names(**settings: Any) -> list[str]:
    return [rule["metadata"]["name"] for rule in stack(FACTS, **settings).alerts.objects]


def test_they_are_an_object_of_their_own_while_they_are_named(tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(GROUP)
    both = names(monitoring_extra_rules=str(file))
    assert both == ["gpufleet-gpu", "gpufleet-extra"]
    assert names(monitoring_extra_rules=[str(file)], monitoring_alerts=False) == both[1:]
    assert names() == both[:1]
    (_, extra) = stack(FACTS, monitoring_extra_rules=str(file)).alerts.labelled().values()
    assert extra["metadata"]["labels"]["app.kubernetes.io/component"] == "alerts"
    rule = {"alert": "Down", "expr": "up == 0", "for": "5m"}
    assert extra["spec"] == {"groups": [{"name": "site", "rules": [rule]}]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        ("groups: [", "not valid YAML"),
        ("- a", "where the file"),
        ("groups:\n- rules: []\n", "groups.0.name"),
        (GROUP.replace("expr", "exp"), "groups.0.rules.0.expr"),
        (GROUP.replace("alert: Down, ", ""), "either `alert` or `record`"),
        (GROUP.replace("for: 5m", "labels: {severity: 1}"), "groups.0.rules.0.labels.severity"),
        (GROUP + GROUP.removeprefix("groups:\n"), "two groups with the name 'site'"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_wrong_setting(
    tmp_path: Path, text: str | None, why: str
) -> None:
    file = tmp_path / "site.yaml"
    if text is not None:
        file.write_text(text)
    settings, problems = load_cluster_settings({"monitoring_extra_rules": str(file)})
    (problem,) = problems
    assert settings is None
    assert why in problem.message
    assert "monitoring_extra_rules" in problem.message
