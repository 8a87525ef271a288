"""`gpufleet docs`."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gpufleet.cli import main


def test_pages_are_listed_with_their_titles() -> None:
    done = CliRunner().invoke(main, ["docs"])
    assert done.exit_code == 0
    assert "how-to/status: The state of a fleet" in done.output.splitlines()


@pytest.mark.parametrize("name", ["upgrade", "how-to/upgrade"])
def test_a_page_is_shown_and_guides_win(name: str) -> None:
    done = CliRunner().invoke(main, ["docs", name])
    assert done.exit_code == 0
    assert "gpufleet upgrade inventories/prod.py" in done.output
    assert done.output != CliRunner().invoke(main, ["docs", "tutorial/upgrade"]).output


def test_an_unknown_page_is_a_usage_error() -> None:
    assert CliRunner().invoke(main, ["docs", "nothing"]).exit_code == 2


def test_a_word_that_is_no_page_names_the_pages_that_have_it() -> None:
    done = CliRunner().invoke(main, ["docs", "proxy"])
    assert done.exit_code == 2
    assert "how-to/closed-network" in done.stderr
