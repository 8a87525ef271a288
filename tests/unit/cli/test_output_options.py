"""--quiet and --no-color: every command that runs for a while has them."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from gpufleet.cli import deploy, main
from gpufleet.cli.output import output_options
from gpufleet.core import live
from gpufleet.core.live import QUIET, LiveProgress

SHORT = {"pause"}  # it takes INVENTORY, but ends at once


def commands(
    group: click.Group, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        elif command:
            yield " ".join((*words, name)), command


def test_every_command_on_an_inventory_or_a_run_has_the_options() -> None:
    found = dict(commands(main))
    on_hosts = {
        name
        for name, command in found.items()
        if name.split()[0] not in ("sandbox", "catalog")
        and {"inventory", "name"} & {each.name for each in command.params}
    }
    assert {"apply", "status", "verify", "upgrade start", "cluster create"} <= on_hosts
    for name in on_hosts - {f"upgrade {short}" for short in SHORT}:
        given = {word for each in found[name].params for word in each.opts}
        assert {"-q", "--quiet", "--no-color"} <= given, name


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ((), {}),
        (("-q",), {QUIET: "1"}),
        (("--quiet", "--no-color"), {QUIET: "1", "NO_COLOR": "1"}),
    ],
)
def test_the_options_reach_the_processes_that_a_command_starts(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], wanted: dict[str, str]
) -> None:
    for name in (QUIET, "NO_COLOR"):
        monkeypatch.setenv(name, "")  # restored at the end
        monkeypatch.delenv(name)
    seen: list[dict[str, str]] = []

    @click.command()
    @output_options
    def command() -> None:
        seen.append({name: os.environ[name] for name in (QUIET, "NO_COLOR") if name in os.environ})

    assert CliRunner().invoke(command, words, catch_exceptions=False).exit_code == 0
    assert seen == [wanted]


@pytest.mark.parametrize("command", ["plan", "apply", "remove"])
def test_a_run_gets_verbosity_and_the_files_of_its_reports(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for name in ("GPUFLEET_REPORT", "GPUFLEET_JUNIT"):
        monkeypatch.setenv(name, "old")
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr(deploy, "exec_pyinfra", lambda *words, **how: seen.append(tuple(words[3])))
    yes = [] if command == "plan" else ["--yes"]
    words = [command, "inv.py", *yes, "--json", "r.json", "--junit", "j.xml", "-v"]
    done = CliRunner().invoke(main, [*words, "--", "--serial"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert seen == [("-v", "--serial")]
    assert [os.environ[name] for name in ("GPUFLEET_REPORT", "GPUFLEET_JUNIT")] == [
        "r.json",
        "j.xml",
    ]


@pytest.mark.parametrize("quiet", [False, True])
def test_quiet_runs_have_no_heartbeat_and_print_what_is_said(
    monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    monkeypatch.setenv(QUIET, "1" if quiet else "")
    monkeypatch.setattr(live, "HEARTBEAT", 0.001)
    beaten = threading.Event()

    def beat() -> str:
        beaten.set()
        return "still here"

    stream = io.StringIO()
    shown = LiveProgress(lambda width, height: [], beat, stream)
    shown.start()
    assert beaten.wait(0 if quiet else 30) is not quiet
    shown.say("failed")
    shown.stop()
    assert ("still here" in stream.getvalue()) is not quiet
    assert "failed\n" in stream.getvalue()
