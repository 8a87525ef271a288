"""Preflights of a user's repository: their arguments, their results, and how they fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufleet.core.findings import Finding
from gpufleet.node.catalog import load_catalog
from gpufleet.node.described import described_facts
from gpufleet.node.operations.preflights import PreflightHost, own_preflights
from tests.unit.hosts import converged_host


def found(folder: Path, text: str) -> list[Finding]:
    (folder / "preflight_site.py").write_text(text)

    def host() -> PreflightHost:
        facts = described_facts(converged_host(), load_catalog())
        return PreflightHost("gpu-07", ("gpu_nodes",), {"rack": "r1"}, facts)

    return own_preflights(host, folder)


@pytest.mark.parametrize(
    ("answer", "problems"),
    [
        ("None", []),
        ("''", []),
        ("[]", []),
        ("'change freeze until Monday'", ["change freeze until Monday"]),
        ("['no power in ' + host.data['rack'], host.facts['kernel']['release']]",
         ["no power in r1", "5.15.0-122-generic"]),
    ],
)  # fmt: skip
def test_a_text_blocks_the_host_and_names_the_file(
    tmp_path: Path, answer: str, problems: list[str]
) -> None:
    blockers = found(tmp_path, f"def preflight_site(host):\n    return {answer}\n")
    texts = [f"{tmp_path}/preflight_site.py: {problem}" for problem in problems]
    assert [each.message for each in blockers] == texts
    assert {each.code for each in blockers if each.blocks} == ({"GF514"} if problems else set())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def preflight_a(host):\n    x = 1\n    return host.rack\n",
         ("preflight_a did not answer", "line 3)", "AttributeError")),
        ("import no_such_module\n", ("line 1)", "no_such_module")),
        ("def preflight_a(host:\n", ("line 1)", "SyntaxError")),
        ("raise SystemExit(3)\n", ("line 1)", "SystemExit: 3")),
        ("def preflight_a(host):\n    return 7\n", ("it returned int",)),
        ("def preflight_a(host):\n    return [7]\n", ("it returned list",)),
    ],
)  # fmt: skip
def test_one_that_fails_blocks_the_host_with_file_and_line(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    (finding,) = found(tmp_path, text)
    assert (finding.code, finding.blocks) == ("GF515", True)
    assert [word for word in ("preflight_site.py", *words) if word not in finding.message] == []


def test_one_cannot_change_what_the_next_one_gets(tmp_path: Path) -> None:
    text = (
        "def preflight_a(host):\n    host.facts.clear()\n\n\n"
        "def preflight_b(host):\n    return host.facts['kernel']['architecture']\n\n\n"
        "def helper(host):\n    return 'not asked'\n"
    )
    assert [each.message.rpartition(": ")[2] for each in found(tmp_path, text)] == ["x86_64"]
