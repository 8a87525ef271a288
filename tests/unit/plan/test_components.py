"""Opening components of the distribution's own archive without touching what is there."""

from __future__ import annotations

import pytest

from gpufleet.facts.model import ManagedFile
from gpufleet.plan.components import component_sources
from tests.unit.plan.hosts import bare_host

WANTED = ("contrib", "non-free")
DEB822 = """Types: deb
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian.gpg
"""


def lines(path: str, text: str) -> list[str]:
    facts = bare_host(files={path: ManagedFile(path, text)})
    found = component_sources(WANTED, facts)
    return str(found.content).splitlines()[1:] if found else []


def test_missing_components_are_added_for_every_suite() -> None:
    assert lines("/etc/apt/sources.list.d/debian.sources", DEB822) == [
        "deb [signed-by=/usr/share/keyrings/debian.gpg] http://archive.example/debian bookworm "
        "contrib non-free",
        "deb [signed-by=/usr/share/keyrings/debian.gpg] http://archive.example/debian "
        "bookworm-updates contrib non-free",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deb http://a/debian bookworm main contrib\n", ["deb http://a/debian bookworm non-free"]),
        ("deb http://a/debian bookworm main contrib non-free\n", []),
        ("deb http://a/debian b main\ndeb http://a/debian b contrib non-free\n", []),
        ("# deb http://a/debian bookworm main\n", []),
        ("deb-src http://a/debian bookworm main\n", []),
        (
            "deb [arch=amd64 signed-by=/k.gpg] http://a/debian b main\n",
            ["deb [signed-by=/k.gpg] http://a/debian b contrib non-free"],
        ),
    ],
)
def test_one_line_sources(text: str, expected: list[str]) -> None:
    assert lines("/etc/apt/sources.list", text) == expected


def test_a_source_that_is_switched_off_does_not_count() -> None:
    assert lines("/etc/apt/sources.list.d/x.sources", DEB822 + "Enabled: no\n") == []


def test_nothing_wanted_is_nothing_written() -> None:
    path = "/etc/apt/sources.list"
    facts = bare_host(files={path: ManagedFile(path, "deb http://a/debian bookworm main\n")})
    assert component_sources((), facts) is None
