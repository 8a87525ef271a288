"""Names of hosts in few words."""

from __future__ import annotations

import pytest

from gpufleet.core.findings import Finding, Severity
from gpufleet.core.names import count_noun, fold_names, group_by_thing, name_hosts, same_findings
from gpufleet.node.findings import HOST_WITHOUT_GPU
from gpufleet.run.findings import NO_ANSWER


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["gpu-1", "gpu-2", "gpu-3"], ["gpu-[1-3]"]),
        (["gpu-08", "gpu-09", "gpu-10"], ["gpu-[08-10]"]),
        (["gpu-8", "gpu-9", "gpu-10"], ["gpu-[8-10]"]),
        (["gpu-08", "gpu-9"], ["gpu-08", "gpu-9"]),
        (["gpu-1", "gpu-3", "gpu-4"], ["gpu-1", "gpu-[3-4]"]),
        (["gpu-2", "gpu-1"], ["gpu-2", "gpu-1"]),
        (["a1.lab", "a2.lab", "a3.site"], ["a[1-2].lab", "a3.site"]),
        (["r1-n1", "r1-n2", "r2-n1"], ["r1-n[1-2]", "r2-n1"]),
        (["login", "gpu-1", "login"], ["login", "gpu-1", "login"]),
        (["gpu-1", "gpu-1"], ["gpu-1", "gpu-1"]),
        (["٣", "٤"], ["٣", "٤"]),
        (["a\x1b1", "a\x1b2"], [r"a\x1b[1-2]"]),
        ([], []),
    ],
)
def test_runs_of_numbers_are_ranges(names: list[str], short: list[str]) -> None:
    assert fold_names(names) == short


def test_a_number_has_its_noun() -> None:
    assert [count_noun(number, "host") for number in (0, 1, 2)] == ["0 hosts", "1 host", "2 hosts"]


def test_hosts_of_a_sentence_are_few() -> None:
    assert name_hosts(["gpu-7"]) == "gpu-7"
    assert name_hosts(["a", "b"]) == "2 hosts (a, b)"
    assert name_hosts(["a", "b", "c", "d", "e"]) == "5 hosts (a, b, c, d, …)"


def test_what_hosts_share_is_there_once_the_worst_first() -> None:
    worse = NO_ANSWER(host="x")
    better = HOST_WITHOUT_GPU()
    found = same_findings([("a", better), ("b", worse), ("c", better), ("a", worse)])
    assert found == [(worse, ("b", "a")), (better, ("a", "c"))]
    assert group_by_thing([("a", 1), ("a", 1), ("b", 2)]) == {1: ("a",), 2: ("b",)}


def test_a_finding_that_names_its_host_in_a_command_is_shared() -> None:
    found = same_findings((name, NO_ANSWER(host=name)) for name in ("gpu-1", "gpu-10", "gpu-2"))
    ((finding, names),) = found
    assert names == ("gpu-1", "gpu-10", "gpu-2")
    assert "--limit HOST`" in finding.remedy
    assert "gpu-1" not in finding.remedy
    other = NO_ANSWER(host="gpu-1.lab")
    assert same_findings([("gpu-1", other), ("b", other)]) == [(other, ("gpu-1", "b"))]
    ((alone, _),) = same_findings([("gpu-1", NO_ANSWER(host="gpu-1"))])
    assert "--limit gpu-1`" in alone.remedy


def test_infos_of_one_code_are_one_entry_also_where_their_details_differ() -> None:
    def finding(severity: Severity, detail: str) -> Finding:
        return Finding("GF415", severity, f"docker {detail}.", "Nothing.")

    old, new = (finding(Severity.INFO, each) for each in ("20", "24"))
    worse = finding(Severity.WARNING, "19"), finding(Severity.WARNING, "18")
    few = [("a", old), ("b", new), ("c", old), ("d", worse[0]), ("e", worse[1])]
    found = same_findings([*few, ("f", new)])
    assert [(each.severity, hosts) for each, hosts in found] == [
        (Severity.WARNING, ("d",)), (Severity.WARNING, ("e",)),
        (Severity.INFO, ("a", "c", "b", "f")),
    ]  # fmt: skip
    assert same_findings(few)[2:] == [(old, ("a", "c")), (new, ("b",))], "the details of few hosts"
    assert same_findings([("a", old), ("c", old)]) == [(old, ("a", "c"))]
    assert same_findings([("a", old), ("a", new)]) == [(old, ("a",)), (new, ("a",))]
    both = same_findings([("a", old), ("a", new), ("b", old), ("b", new)])
    assert both == [(old, ("a", "b")), (new, ("a", "b"))], "they do not differ by host"
