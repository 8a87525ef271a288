"""Ctrl+C ends a command with status 130, also at a question; a question without input with 1."""

from __future__ import annotations

import click
import pytest

from gpufleet.cli.lazy import LazyGroup


@pytest.mark.parametrize(
    ("ended_by", "status"), [(KeyboardInterrupt, 130), (EOFError, 1)], ids=["Ctrl+C", "no input"]
)
def test_a_question_that_is_not_answered(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ended_by: type[BaseException],
    status: int,
) -> None:
    def asked(_: str) -> str:
        raise ended_by

    monkeypatch.setattr("click.termui.visible_prompt_func", asked)
    group = LazyGroup("gpufleet", lazy={})
    group.add_command(click.Command("ask", callback=lambda: click.confirm("Apply?", abort=True)))
    with pytest.raises(SystemExit) as ended:
        group.main(["ask"])
    assert ended.value.code == status
    assert capsys.readouterr().err == "Aborted!\n"


def test_ctrl_c_during_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise KeyboardInterrupt

    group = LazyGroup("gpufleet", lazy={})
    group.add_command(click.Command("work", callback=work))
    with pytest.raises(SystemExit) as ended:
        group.main(["work"])
    assert ended.value.code == 130
    assert capsys.readouterr().err == "\nInterrupted.\n"
