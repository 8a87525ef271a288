"""`gpufleet verify --quiet` prints nothing if every check passed."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gpufleet.cli import main, verify
from gpufleet.core.live import QUIET


@pytest.mark.parametrize(
    ("words", "code", "printed"),
    [
        (["-q"], pytest.ExitCode.OK, False),
        (["-q"], pytest.ExitCode.TESTS_FAILED, True),
        ([], pytest.ExitCode.OK, True),
    ],
)
def test_it_prints_what_is_not_well_alone(
    words: list[str], code: pytest.ExitCode, printed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checks(arguments: list[str], plugins: list[object]) -> pytest.ExitCode:
        print("Checks per host")
        return code

    monkeypatch.setenv(QUIET, "")  # restored at the end
    monkeypatch.setattr(verify.pytest, "main", checks)
    done = CliRunner().invoke(main, ["verify", "inv.py", *words])
    assert (done.exit_code, bool(done.output)) == (int(code), printed)
