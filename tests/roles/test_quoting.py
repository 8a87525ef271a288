"""Values never reach a shell unquoted: the host's shell sees one word for any value."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufleet.host.shell import quote_command, script_command, stop_command
from gpufleet.packages import findings
from gpufleet.packages.operations import transaction as packages
from tests.unit.hosts import resolved_transaction

pytestmark = pytest.mark.claim("No setting reaches a shell unquoted.", level=2)

# any character but NUL, which arguments cannot contain
NASTY = ["$(touch /tmp/x)", "`id`", "a'b", 'a"b', "a\nb", "; reboot", "-rf", "${IFS}", "\\"]
characters = st.characters(blacklist_characters="\0", blacklist_categories=("Cs",))
nasty = st.text(characters, max_size=40) | st.sampled_from(NASTY)


@given(st.lists(nasty, min_size=1, max_size=4))
def test_a_script_gets_its_arguments_as_they_are(values: list[str]) -> None:
    words = shlex.split(script_command("packages/hold", *values).get_raw_value())
    assert words[:2] == ["sh", "-c"]
    assert words[4:] == values


@given(st.lists(nasty, min_size=1, max_size=4))
def test_a_command_gets_its_words_as_they_are(values: list[str]) -> None:
    assert shlex.split(quote_command(*values).get_raw_value()) == values


@settings(max_examples=25)
@given(nasty)
def test_a_real_shell_prints_the_value_and_runs_nothing(value: str) -> None:
    finding = findings.LOCK_HELD(holder=value)
    done = subprocess.run(
        ["sh", "-c", stop_command("host", finding).get_raw_value()],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1
    assert finding.message in done.stderr


def test_what_controls_a_terminal_is_not_shown() -> None:
    finding = findings.LOCK_HELD(holder="x\x1b[2J\x07\x9by\r\n")
    assert finding.message.startswith(r"x\x1b[2J\x07\x9by\r\n holds the lock")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=nasty.filter(bool))
def test_on_a_host_too(carry_out: Callable[..., Any], name: str) -> None:
    job = resolved_transaction(packages=(name,), lock_timeout=0)
    host = carry_out(lambda: packages.hold_packages("Hold", job, [name]))
    assert not host.failed
    sent = host.commands[-1]  # before it, the lock of the package manager is read
    inner = shlex.split(sent)
    assert name in inner or any(name in shlex.split(part) for part in inner if "hold" in part)
