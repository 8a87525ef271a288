"""A number and its noun: "1 host", never "1 hosts", in every text of gpufleet."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufleet.core.findings import Kind, Severity
from gpufleet.core.visible import Count
from gpufleet.status.meanings import describe_kind

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("gpufleet", "deploys", "roles", "tests/post_deploy")
PLURALS = (
    "archives|bytes|canaries|characters|checks|clusters|commands|containers|copies|"
    "days|devices|drivers|errors|files|findings|folders|GPUs|groups|headers|hosts|"
    "hours|images|kernels|keys|levels|lines|minutes|modules|namespaces|nodes|objects|"
    "operations|packages|parts|paths|PersistentVolumeClaims|pods|processes|processors|"
    "releases|repositories|restarts|samples|seconds|services|steps|tests|times|units|"
    "values|versions|warnings|waves|workers"
)
VERBS = "already|has|matches|with"
AFTER_A_NUMBER = re.compile(rf"\{{[^{{}}|]*\}} (?:(?!{VERBS})[a-z]+ )?(?:{PLURALS})\b")
NEVER_ONE = {  # file -> texts whose number is a limit in the code and always exceeds one
    "gpufleet/core/yaml_events.py": ("{} lines", "{} levels"),
    "gpufleet/core/openpgp.py": ("{} primary keys",),  # any number but one
    "gpufleet/exporter/findings.py": ("{} seconds",),
    "gpufleet/facts/script.py": ("{} paths",),
    "gpufleet/helm/output.py": ("{} minutes",),
    "gpufleet/helm/plan.py": ("{} minutes",),
    "gpufleet/host/findings.py": ("{} seconds",),
    "gpufleet/host/liveness.py": ("{} seconds",),
    "gpufleet/kube/helm_releases.py": ("{} bytes",),
    "gpufleet/kubernetes/access.py": ("{} characters",),
    "gpufleet/kubernetes/findings/cluster.py": ("{} hosts",),  # an even number
    "gpufleet/kubernetes/preflight.py": ("{} processors",),
    "gpufleet/monitoring/findings.py": ("{} bytes",),
    "gpufleet/packages/findings.py": ("{} seconds",),
    "gpufleet/formats/json_text.py": ("{} levels",),
    "gpufleet/formats/toml_text.py": ("{} levels",),
}
NO_NUMBER = {  # a word or a name is before the noun
    "gpufleet/driver/findings/choice.py": ("{} modules",),  # open, proprietary
    "gpufleet/driver/keep.py": ("{} modules",),
    "gpufleet/driver/resolve.py": ("{} modules",),
    "gpufleet/driver/role.py": ("{} modules",),
    "gpufleet/helm/chart_choice.py": ("{} simulated pods",),
    "gpufleet/status/detail_text.py": ("{} modules",),
    "tests/post_deploy/test_modules.py": ("{} modules",),
}


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string, with {} for each expression in an f-string."""
    tree = ast.parse(source)
    within = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                str(part.value) if isinstance(part, ast.Constant) else _placeholder(part)
                for part in node.values
            ]
            yield node.lineno, "".join(parts)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in within
        ):
            yield node.lineno, node.value


def _placeholder(part: ast.AST) -> str:
    """{|} if the number selects the singular or the plural, as in visible.Count, else {}."""
    return "{|}" if "|" in ast.unparse(part) else "{}"


def found(source: str) -> list[tuple[int, str]]:
    """Line and text of each placeholder before a plural that does not depend on the number."""
    return [
        (line, re.sub(r"\{[^{}]*\}", "{}", hit[0]))
        for line, text in texts(source)
        for hit in AFTER_A_NUMBER.finditer(text)
    ]


def test_a_plural_follows_no_number_that_may_be_one() -> None:
    wrong = [
        f"{name}:{line}: {text}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in [path.relative_to(ROOT).as_posix()]
        for line, text in found(path.read_text("utf-8"))
        if text not in (*NEVER_ONE.get(name, ()), *NO_NUMBER.get(name, ()))
    ]
    assert wrong == [], "use counted(), or {number:host|hosts} in a finding"


@pytest.mark.parametrize("name", [*NEVER_ONE, *NO_NUMBER])
def test_every_exception_is_needed(name: str) -> None:
    there = {text for _, text in found((ROOT / name).read_text("utf-8"))}
    assert set(NEVER_ONE.get(name, ()) + NO_NUMBER.get(name, ())) <= there


@pytest.mark.parametrize(
    ("source", "texts_found"),
    [
        ('f"{len(hosts)} hosts in {n} groups:"', ["{} hosts", "{} groups"]),
        ('"{count} failed hosts"', ["{} failed hosts"]),
        ('f"all {gpus} GPUs"', ["{} GPUs"]),
        ("f\"{counted(3, 'host')} in {name}\"", []),
        ('"{count:pod uses|pods use} GPUs of {name}"', []),
    ],
)
def test_plurals_are_found(source: str, texts_found: list[str]) -> None:
    assert [text for _, text in found(source)] == texts_found


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 pods use"), (1, "1 pod uses"), (2, "2 pods use")]
)
def test_a_finding_has_the_form_of_its_number(number: int, text: str) -> None:
    kind = object.__new__(Kind)  # not declared: every declared kind is documented
    for name in ("code", "title", "description", "advice"):
        object.__setattr__(kind, name, "")
    object.__setattr__(kind, "severity", Severity.INFO)
    object.__setattr__(kind, "message", "{count:pod uses|pods use} {{it}}.")
    object.__setattr__(kind, "remedy", "")
    assert kind(count=number).message == f"{text} {{it}}."
    assert describe_kind(kind)[0] == "COUNT pods use {it}."
    object.__setattr__(kind, "description", "{left_by!r} is {gpu:04x}{effect}")
    assert describe_kind(kind)[0] == "'LEFT_BY' is GPUEFFECT"
    assert f"{Count(number):03d}" == f"{number:03d}"
