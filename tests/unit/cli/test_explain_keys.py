"""`gpufleet explain` with a word that is not a key lists the keys whose text has it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from gpufleet.cli import main
from gpufleet.doctor.models import DoctorCheck, load_steps
from gpufleet.doctor.table import all_checks


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("docker", "toolkit_runtimes"),
        ("mig", "device_plugin_mig_strategy"),
        ("the", ""),
        (".*", ""),
    ],
)
def test_keys_about_a_word_are_named_unless_they_are_too_many(word: str, named: str) -> None:
    done = CliRunner().invoke(main, ["explain", word])
    assert done.exit_code == 2
    assert ("Data keys about it" in done.output) is bool(named)
    assert named in done.output


def test_a_key_of_pyinfra_leads_to_the_page_about_connections() -> None:
    done = CliRunner().invoke(main, ["explain", "ssh_user"])
    assert (done.exit_code, "`gpufleet docs connection`" in done.output) == (2, True)


def test_a_finding_is_explained_without_braces() -> None:
    done = CliRunner().invoke(main, ["explain", "GF515", "GF993"])
    first, second = done.output.split("GF993 ")
    assert "NAME did not answer (PLACE): ERROR." in first
    assert "{" not in done.output
    assert ("such as NAME" in first, "in capitals" in second) == (True, False)


@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.id)
def test_a_check_of_doctor_is_explained(check: DoctorCheck) -> None:
    done = CliRunner().invoke(main, ["explain", check.id])
    assert done.exit_code == 0
    text = " ".join(done.output.split())
    parts = (check.title, check.reads, check.fails.rstrip("."), *check.after, *check.codes)
    commands = [load_steps().steps[step].command for step in check.steps]
    for part in (*parts, *commands, "https://"):
        assert part in text


def test_a_check_that_is_misspelled_is_named() -> None:
    done = CliRunner().invoke(main, ["explain", "chain.runtimes"])
    assert done.exit_code == 2
    assert "Did you mean chain.runtime?" in done.output


def test_the_json_has_the_text_of_a_check() -> None:
    done = CliRunner().invoke(main, ["explain", "--json", "chain.runtime"])
    assert list(json.loads(done.output)["checks"]) == ["chain.runtime"]
