"""What a host holds in a file ends no check with an error: it is a failure with its code."""

from __future__ import annotations

import pytest
from verify_paper import Paper

from gpufleet.verify.probe import Output

DEEP = 100_000
DEEP_JSON = "[" * DEEP + "]" * DEEP
DEEP_YAML = "[" * 5_000 + "]" * 5_000
DEEP_TOML = "a = " + "[" * 5_000 + "]" * 5_000
LOCKS = '[[packages]]\nname = "a"\nb = ' + DEEP_TOML.removeprefix("a = ")


def on_rpm(paper: Paper, locks: str) -> None:
    """An EL host with the driver and the toolkit of the record, and these locks."""
    recorded = {**paper.provenance["driver"]["packages"], **paper.provenance["toolkit"]["packages"]}
    rows = [f"{name}\t{version}\tx86_64" for name, version in recorded.items()]
    paper.set("os-release", 'ID="rhel"\nVERSION_ID="9.4"')
    paper.set("rpm", "\n".join(rows))
    paper.set("versionlock", locks)


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("provenance", DEEP_JSON),
        ("provenance", "\x00"),
        ("cdi:/etc/cdi/nvidia.yaml", DEEP_YAML),
        ("docker-config", DEEP_JSON),
        ("containerd-config", DEEP_TOML),
    ],
)
def test_a_file_that_is_nested_too_deep_is_a_failure(paper: Paper, section: str, text: str) -> None:
    paper.sections[section] = Output(0, text)
    for name in [one for one in paper.runtimes if section.partition("-")[0] in one]:
        paper.runtimes[name] = Output(0, text)
    assert paper.failures()


@pytest.mark.parametrize("locks", ["[[packages]]\nname = ", LOCKS])
def test_locks_that_cannot_be_read_are_named(paper: Paper, locks: str) -> None:
    on_rpm(paper, locks)
    outcome = paper.outcomes()["driver_held"]
    assert outcome.startswith("GF722")
    assert "versionlock.toml cannot be read" in outcome
