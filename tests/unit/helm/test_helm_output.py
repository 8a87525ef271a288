"""Output of helm 3.22 and 4.2 on real API servers, and the most specific finding for it.

The texts in helm_output/ are verbatim standard error, by helm, server and case.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufleet.core.findings import Finding
from gpufleet.helm.output import (
    MAX_ERROR_CHARS,
    Failure,
    dropped_fields,
    error_line,
    explain_failure,
    explain_uninstall,
    is_kept,
    is_release_gone,
)
from gpufleet.helm.release import ChartSource, Release
from gpufleet.kube.facts import ClusterFacts, NodePort, ServerVersion

OUTPUTS = sorted((Path(__file__).parent / "helm_output").glob("*.txt"))
RELEASE = Release("one", "space", "tiny", "1.0.0", ChartSource("archive", "/tiny.tgz"))
# case -> code, words of the message
EXPECTED = {
    "busy": ("GF832", "space/one"),
    "conflict": ("GF845", "kubectl owns .spec.replicas of cap-4/c1 apps/v1, Kind=Deployment"),
    "hook": ("GF840", "h1-hook"),
    "immutable": ("GF853", "deployment/i1 -n space"),
    "kind": ("GF843", "kind ServiceMonitor (monitoring.coreos.com/v1)"),
    "kubernetes": ("GF844", "chart requires kubeVersion: < 1.16.0-0"),
    "node-port": ("GF834", "which Service other/web uses"),
    "unknown-field": ("GF844", "noSuchField"),
    "values": ("GF851", "at '/deployment/replicas': got string, want integer"),
}


def facts() -> ClusterFacts:
    ports = [NodePort("other", "web", port) for port in (31103, 31104)]
    return ClusterFacts("sandbox", ServerVersion(1, 36), node_ports=tuple(ports))


def explained(stderr: str) -> Finding:
    return explain_failure(Failure("Upgrade", stderr), RELEASE, facts())


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda path: path.stem)
def test_what_helm_said(output: Path) -> None:
    helm, _, case = output.stem.split("-", 2)
    text = output.read_text()
    if (helm, case) == ("helm3", "unknown-field") and "Error:" not in text:
        (dropped,) = dropped_fields(text, RELEASE)
        assert (dropped.code, "spec.template.spec.noSuchField" in dropped.message) == (
            "GF850", True,
        )  # fmt: skip
        return
    code, words = EXPECTED[case]
    found = explained(text)
    assert found.code == code
    assert words in f"{found.message} {found.remedy}"
    assert "level=" not in found.message


def test_every_case_was_captured_with_both() -> None:
    for case in EXPECTED:
        helms = {path.stem[:5] for path in OUTPUTS if path.stem.endswith(case)}
        assert helms == ({"helm4"} if case == "conflict" else {"helm3", "helm4"}), case


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        ("Error: it broke\n", "it broke"),
        ("E1121 memcache.go:287] couldn't get resource list\nError: a\nb\n", "a b"),
        ('level=ERROR msg="x"\nError: y\nW1121 warnings.go:70] z\n', "y"),
        ("Flag --x has been deprecated\n", "Flag --x has been deprecated"),
        ("", "helm printed no error"),
    ],
)
def test_the_line_that_is_quoted(stderr: str, line: str) -> None:
    assert error_line(stderr) == line


def test_a_long_error_keeps_both_ends() -> None:
    text = error_line("Error: begins " + "x" * 5000 + " ends")
    assert text.startswith("begins ")
    assert text.endswith(" ends")
    assert len(text) < MAX_ERROR_CHARS + 10


def test_a_permission_is_named() -> None:
    found = explained(
        'Error: could not get information about the resource ConfigMap "one" in namespace "space": '
        'configmaps "one" is forbidden: User "u" cannot get resource "configmaps" in API group "" '
        'in the namespace "space"'
    )
    assert (found.code, "get configmaps in namespace space" in found.message) == ("GF866", True)


def test_what_is_not_known_is_quoted() -> None:
    found = explained("Error: UPGRADE FAILED: the moon is full\n")
    assert (found.code, "the moon is full" in found.message) == ("GF840", True)


def test_other_warnings_are_not_findings() -> None:
    noise = "W1121 warnings.go:70] policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+\n"
    assert dropped_fields(noise, RELEASE) == []


def uninstall_output(helm: str, case: str) -> str:
    folder = Path(__file__).parent / "uninstall_output"
    return (folder / f"{helm}-1.36-{case}.txt").read_text()


@pytest.mark.parametrize("helm", ["helm3", "helm4"])
def test_a_failed_uninstall_is_explained_by_helms_debug_output(helm: str) -> None:
    found = explain_uninstall(uninstall_output(helm, "debug"), RELEASE.ref, "sandbox")
    assert found.code == "GF840"
    assert found.message == (
        "Removal of release space/one failed: unable to build kubernetes objects for delete:"
        ' resource mapping not found for name: "one" namespace: "" from "": no matches for kind'
        ' "Thing" in version "example.com/v1" ensure CRDs are installed first'
    )
    assert "helm uninstall one -n space" in found.remedy


@pytest.mark.parametrize("helm", ["helm3", "helm4"])
@pytest.mark.parametrize(("case", "states"), [("kept", (True, False)), ("gone", (False, True))])
def test_helm_says_whether_the_release_is_left(
    helm: str, case: str, states: tuple[bool, bool]
) -> None:
    text = uninstall_output(helm, case)
    assert (is_kept(text), is_release_gone(text)) == states


def test_permissions_that_an_uninstall_lacks_are_named() -> None:
    forbidden = (
        'secrets "x" is forbidden: User "ada" cannot delete resource "secrets" in API group "" '
        'in the namespace "space"'
    )
    found = explain_uninstall(f"Error: {forbidden}", RELEASE.ref, "sandbox")
    assert (found.code, "delete secrets in namespace space" in found.message) == ("GF866", True)
    hook = "Error: uninstallation completed with 1 error(s): timed out waiting for the condition"
    found = explain_uninstall(hook, RELEASE.ref, "sandbox")
    assert (found.code, "timed out waiting" in found.message) == ("GF840", True)
