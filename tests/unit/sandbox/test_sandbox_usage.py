"""Unknown values on the command line are usage errors."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gpufleet.cli import main


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("up zzz", "GF604"),
        ("cluster up --kubernetes 1.29", "GF650"),
        ("cluster build --kubernetes 1.29", "GF650"),
        ("cluster up --name ../up", "GF657"),
    ],
)
def test_an_unknown_value_is_status_two(words: str, code: str) -> None:
    done = CliRunner().invoke(main, ["sandbox", *words.split()])
    assert (done.exit_code, code in done.output) == (2, True), done.output


def test_a_sandbox_that_is_not_up_is_not_a_usage_error() -> None:
    done = CliRunner().invoke(main, ["sandbox", "ssh", "--name", "none-such", "debian12", "true"])
    assert (done.exit_code, "GF603" in done.output) == (1, True), done.output
