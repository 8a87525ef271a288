"""Unusable content of a file on a host fails a check with its code, never with a traceback."""

from __future__ import annotations

import pytest
from fake_host import FakeHost

from gpufleet.verify.probe import Output

DEEP = 100_000
DEEP_JSON = "[" * DEEP + "]" * DEEP
DEEP_YAML = "[" * 5_000 + "]" * 5_000
DEEP_TOML = "a = " + "[" * 5_000 + "]" * 5_000
LOCKS = '[[packages]]\nname = "a"\nb = ' + DEEP_TOML.removeprefix("a = ")


def on_rpm(fake_host: FakeHost, locks: str) -> None:
    """An EL host with the driver and the toolkit of the record, and these locks."""
    recorded = {
        **fake_host.provenance["driver"]["packages"],
        **fake_host.provenance["toolkit"]["packages"],
    }
    rows = [f"{name}\t{version}\tx86_64" for name, version in recorded.items()]
    fake_host.set("os-release", 'ID="rhel"\nVERSION_ID="9.4"')
    fake_host.set("rpm", "\n".join(rows))
    fake_host.set("versionlock", locks)


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("provenance", DEEP_JSON),
        ("provenance", "\x00"),
        ("provenance", '{"toolkit": true}'),
        ("provenance", '{"driver": "x"}'),
        ("provenance", '{"toolkit": {"runtimes": [1]}}'),
        ("provenance", '{"files": 1}'),
        ("provenance", '{"driver": {"version": "1", "packages": ["a"]}}'),
        ("cdi:/etc/cdi/nvidia.yaml", DEEP_YAML),
        ("docker-config", DEEP_JSON),
        ("containerd-config", DEEP_TOML),
    ],
)
def test_a_file_that_cannot_be_used_is_a_failure(
    fake_host: FakeHost, section: str, text: str
) -> None:
    fake_host.sections[section] = Output(0, text)
    for name in [one for one in fake_host.runtimes if section.partition("-")[0] in one]:
        fake_host.runtimes[name] = Output(0, text)
    assert fake_host.failures()


@pytest.mark.parametrize("locks", ["[[packages]]\nname = ", LOCKS])
def test_locks_that_cannot_be_read_are_named(fake_host: FakeHost, locks: str) -> None:
    on_rpm(fake_host, locks)
    outcome = fake_host.outcomes()["driver_held"]
    assert outcome.startswith("GF720")
    assert "versionlock.toml cannot be read" in outcome


def test_a_value_with_an_equals_sign_in_os_release_is_read(fake_host: FakeHost) -> None:
    address = 'BUG_REPORT_URL="https://bugs.example/?id=1&b=2"'
    fake_host.set("os-release", f'ID=debian\n{address}\nVERSION_ID="12"')
    assert not fake_host.failures()
