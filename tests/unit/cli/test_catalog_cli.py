"""`gpufleet catalog`: its output for people and for programs."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["catalog", *arguments])


def test_driver_as_text() -> None:
    result = run("driver", "--distro", "rhel7", "--gpu", "T4")
    assert result.exit_code == 0
    for text in ("Driver 550 for RHEL 7", "kmod-nvidia-latest-dkms", "reason", "GF121 warning"):
        assert text in result.output


@pytest.mark.parametrize("what", ["driver", "toolkit"])
def test_what_gpufleet_cannot_install_has_a_warning(what: str) -> None:
    result = run(what, "--distro", "sles15", "--json")
    found = json.loads(result.output)
    assert (result.exit_code, found["usable"]) == (0, True)
    assert "GF315" in [each["code"] for each in found["findings"]]
    assert "GF315" not in run(what, "--distro", "rhel9", "--json").output


@pytest.mark.parametrize("what", ["driver", "toolkit"])
def test_a_distribution_by_the_name_that_a_person_knows(what: str) -> None:
    named, coded = (run(what, "--distro", code) for code in ("centos7", "rhel7"))
    assert (named.exit_code, named.output) == (0, coded.output)
    unknown = run(what, "--distro", "plan9")
    assert unknown.exit_code == 2
    assert "inventory" not in unknown.output


def test_driver_as_json() -> None:
    result = run("driver", "--distro", "rhel7", "--gpu", "T4", "--json")
    data = json.loads(result.output)
    assert {
        "version",
        "branch",
        "modules",
        "packages",
        "repository",
        "reason",
        "findings",
    } <= set(data)
    assert (data["branch"], data["version"], data["modules"]) == (
        "550",
        "550.163.01",
        "proprietary",
    )
    assert data["repository"]["url"].endswith("/rhel7/x86_64/")
    assert set(data["findings"][0]) == {"code", "severity", "message", "remedy"}


@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_a_blocker_is_exit_status_one(extra: list[str]) -> None:
    result = run("driver", "--distro", "rhel7", "--gpu", "T4", "--branch", "580", *extra)
    assert result.exit_code == 1
    assert "GF112" in result.output
    assert "550.163.01" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["driver"], "--distro"),
        (["driver", "--distro", "rhel9", "--gpu", "T5"], "Did you mean"),
        (["driver", "--distro", "rhel9", "--version", "580"], "--version"),
        (["driver", "--distro", "rhel9", "--branch", "58"], "--branch"),
        (["driver", "--distro", "rhel9", "--modules", "closed"], "proprietary"),
        (["toolkit", "--distro", "rhel9", "--repo-url", "mirror"], "--repo-url"),
    ],
)
def test_wrong_usage_is_exit_status_two(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize("command", ["driver", "toolkit"])
def test_an_unknown_distribution_names_the_known_ones(command: str) -> None:
    result = run(command, "--distro", "gentoo")
    assert result.exit_code == 2
    assert "GF101" in result.output
    assert "ubuntu2204" in result.output


def test_the_users_choices_count() -> None:
    data = json.loads(
        run(
            "driver", "--distro", "debian12", "--gpu", "V100", "--source", "distro", "--json"
        ).output
    )
    assert (data["branch"], data["repository"]) == ("535", None)
    data = json.loads(
        run(
            *("driver", "--distro", "ubuntu2204", "--gpu", "A100", "--nvswitch", "--json"),
            *("--version", "580.159.03", "--kernel", "6.8.0-40-generic"),
        ).output
    )
    assert (data["version"], data["exact"]) == ("580.159.03", True)
    assert data["packages"]["headers"] == ["linux-headers-6.8.0-40-generic"]
    assert data["packages"]["fabric_manager"] == ["nvidia-fabricmanager"]


def test_toolkit() -> None:
    data = json.loads(run("toolkit", "--distro", "ubuntu2204", "--json").output)
    assert (data["usable"], len(data["packages"])) == (True, 4)
    assert "Container toolkit" in run("toolkit", "--distro", "ubuntu2204").output
    refused = run("toolkit", "--distro", "rhel7", "--version", "1.19.1")
    assert (refused.exit_code, "GF160" in refused.output) == (1, True)
    assert "No usable container toolkit for" in refused.output


def test_text_is_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    lines = [line.rstrip() for line in run("toolkit", "--distro", "rhel7").output.splitlines()]
    assert [line.split()[0] for line in lines[1:5]] == ["packages", "repository", "key", "reason"]
    assert lines[2].startswith("  repository  https://")
    assert lines[5].startswith("GF163 info RHEL 7 is not")
    assert lines[6:] == ["  No action required."]


@pytest.mark.parametrize(("command", "word"), [("distributions", "rhel7"), ("branches", "580")])
def test_lists(command: str, word: str) -> None:
    assert word in run(command).output
    rows = json.loads(run(command, "--json").output)
    assert all(row["source"] for row in rows)


@pytest.mark.parametrize("command", ["branches", "distributions"])
def test_lists_fit_80_columns(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(command).output.splitlines()
    assert "end of life" in lines[0]
    assert [line for line in lines if "…" in line or len(line) > 80] == []
