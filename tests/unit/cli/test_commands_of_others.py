"""Subcommands that other distributions add by entry points, as gpufleet-sandbox does."""

from __future__ import annotations

from importlib import metadata

import click
import pytest

from gpufleet.cli import main
from gpufleet.cli.catalog import catalog
from gpufleet.cli.doctor import doctor

GROUP = "gpufleet.commands"


def offer(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> click.Context:
    """Replace the entry points of the group with these names and values."""
    found = [metadata.EntryPoint(name, value, GROUP) for name, value in points]
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: found * (group == GROUP))
    return click.Context(main)


def test_a_command_of_another_distribution_is_listed_and_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = offer(monkeypatch, ("surgeon", "gpufleet.cli.doctor:doctor"))
    assert "surgeon" in main.list_commands(context)
    assert main.get_command(context, "surgeon") is doctor


def test_ours_are_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    context = offer(monkeypatch, ("catalog", "gpufleet.cli.doctor:doctor"))
    assert main.list_commands(context).count("catalog") == 1
    assert main.get_command(context, "catalog") is catalog


def test_without_other_distributions_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    context = offer(monkeypatch)
    assert "sandbox" not in main.list_commands(context)
    assert main.get_command(context, "sandbox") is None
    assert main.get_command(context, "doctor") is doctor
