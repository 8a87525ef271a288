"""`gpufleet explain` with a pasted error or an XID."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from gpufleet.cli import main
from gpufleet.monitoring.xids import load_xids

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "gpufleet/cli/explain.schema.json").read_text())
NOUVEAU = "NVRM: GPU 0000:07:00.0 is already bound to nouveau."
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"
UNRELATED = "TypeError: unsupported operand type(s) for +: 'int' and 'str'"


def explain(*words: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(main, ["explain", *words], input=given)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ((MISMATCH,), ""),
        (tuple(MISMATCH.split()), ""),
        ((), MISMATCH),
        (("-",), f"$ nvidia-smi\r\n{MISMATCH}\r\n"),
        ((), f"\x1b[31m{MISMATCH}\x1b[0m"),
        ((), json.dumps({"log": f"{MISMATCH}\nNVML library version: 570.124"})),
        ((), MISMATCH.replace("library ", "library\n")),  # wrapped by a terminal
        ((), MISMATCH.encode() + b"\xff\xfe"),
        ((), "some line of a log\n" * 200_000 + MISMATCH),
    ],
)
def test_an_error_is_words_a_line_or_a_screenful(
    words: tuple[str, ...], given: str | bytes
) -> None:
    done = explain(*words, given=given)
    assert done.exit_code == 0
    for part in ("different versions", "Make sure: ", "What to do: ", "https://"):
        assert part in done.stdout


def test_of_several_causes_the_first_broken_link_comes_first() -> None:
    text = f"Error: libnvidia-container: driver error: failed to process request\n{MISMATCH}\n"
    done = explain(given=f"{text}RuntimeError: No CUDA GPUs are available\n{NOUVEAU}")
    assert done.exit_code == 0
    assert done.stdout.index("nouveau") < done.stdout.index("Also in the text")
    document = json.loads(explain("--json", given=f"{text}\n{NOUVEAU}").stdout)
    assert len({cause["link"] for cause in document["causes"]}) > 1
    assert document["causes"][0]["line"] == NOUVEAU


@pytest.mark.parametrize("error", [UNRELATED, "usb 1-1: device has fallen off the bus"])
def test_an_unknown_error_says_so_and_what_to_collect(error: str) -> None:
    done = explain(given=error)
    assert done.exit_code == 1
    assert "names no cause that gpufleet knows" in done.stdout
    assert "dmesg" in done.stdout
    assert "Make sure" not in done.stdout


@pytest.mark.parametrize("given", ["", " \n\t\n"])
def test_nothing_to_explain_is_a_usage_error(given: str) -> None:
    assert explain(given=given).exit_code == 2
    assert explain("-", given=given).exit_code == 2


def test_a_code_in_the_text_is_explained_too() -> None:
    done = explain(given=f"{MISMATCH}\ngpu-01: GF112 the driver is not supported")
    assert done.exit_code == 0
    assert "GF112 blocker" in done.stdout
    assert explain(given="GF999 and GF000").exit_code == 1


def test_control_characters_of_an_error_do_not_reach_the_terminal() -> None:
    title = "\x1b]0;owned\x07"
    done = explain(given=f"{title}\x1b[2J{MISMATCH} \x1b[8m\x07\x9b2J\u202e")
    assert done.exit_code == 0
    assert not {*"\x1b\x07\x9b\u202e"} & {*done.stdout}
    assert "owned" not in done.stdout


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (("GF112",), ""),
        (("driver_branch", "XID-79"), ""),
        ((), f"{NOUVEAU}\n{MISMATCH}\nGF112"),
        ((), UNRELATED),
    ],
)
def test_the_json_is_as_its_schema_says(words: tuple[str, ...], given: str) -> None:
    document = json.loads(explain("--json", *words, given=given).stdout)
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(document)


@pytest.mark.parametrize(
    "words",
    [
        ("XID-79",),
        ("xid", "79"),
        ("xid79",),
        ("XID_79",),
        ("Xid 79",),
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen",),
    ],
)
def test_an_xid_is_explained(words: tuple[str, ...]) -> None:
    done = explain(*words)
    assert done.exit_code == 0
    assert "XID 79" in done.stdout
    assert "fell off" in done.stdout


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("before", ["", "some line of a log\n" * 100_000])
def test_a_text_in_utf_16_is_read(codec: str, before: str) -> None:
    """PowerShell's > writes it."""
    line = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus"
    done = explain(given=f"\ufeff{before}{line}".encode(codec))
    assert (done.exit_code, "XID 79" in done.stdout) == (0, True)


@pytest.mark.parametrize("word", ["XID-7", "xid-999", "XID-x"])
def test_a_code_of_no_xid_in_use_is_a_usage_error(word: str) -> None:
    done = explain(word)
    assert (done.exit_code, "No XID in use has the code" in done.stderr) == (2, True)


def test_an_xid_has_one_meaning() -> None:
    xids = load_xids()
    codes = [code for each in xids.classes for code in each.codes]
    assert len(codes) == len(set(codes))
    for each in xids.classes:
        for code, meaning in each.codes.items():
            assert (cause := xids.cause(code))
            assert meaning in cause.cause


def test_xids_of_a_program_are_in_the_order_of_the_log() -> None:
    log = (ROOT / "tests/unit/monitoring/kmsg/xid-31-470.txt").read_text()
    causes = json.loads(explain("--json", given=log).stdout)["causes"]
    assert [cause["name"] for cause in causes] == ["xid-31", "xid-43"]


def test_a_later_xid_leads_to_the_one_that_caused_it() -> None:
    done = explain(given="Xid (PCI:0000:3b:00): 154, caused by previous Xid 79, recovery action")
    assert "XID 79" in done.stdout


def test_a_long_log_is_searched_at_its_end() -> None:
    lines = "\n".join(f"kubelet[{number}]: pod is running" for number in range(6000))
    assert explain(given=f"{lines}\n{MISMATCH}").exit_code == 0
