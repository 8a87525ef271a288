"""`gpufleet explain` with a word that is not a key lists the keys whose text has it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gpufleet.cli import main


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
