"""Records that another version of gpufleet wrote stay, and stop runs over their inventory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpufleet.cli import upgrade_runs
from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.progress import Entry
from gpufleet.upgrade.versions import SCHEMA
from tests.unit.upgrade.running import DRAINED, planned
from tests.unit.upgrade.test_abort import of_another

FIRST = (
    "prepared, refused, drain began, drain command began, drain command did not start, drained, "
    "not drained, not reached, change began, changed, change failed, roll-back began, "
    "rolled back, roll-back failed, returned"
)
SECOND = f"{FIRST}, taken back"
THIRD = f"{SECOND}, cordon began, cordoned, left cordoned"
FOURTH = f"{THIRD}, node returned"
FIFTH = f"{FOURTH}, uncordoned"
EVENTS = {
    1: FIRST,
    2: SECOND,
    3: THIRD,
    4: FOURTH,
    5: FIFTH,
}  # by schema; those that were written never change


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Over /prod.py; its process is gone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = Store.create(Order("prod.py", "/", hosts={"h": {}}), planned())
    for event in DRAINED:
        made.append(Entry(1.0, event.value, "h"))
    made.release()
    return Store(made.path)


def changed(run: Store, **parts: Any) -> None:
    file = run.path / "run.json"
    data = json.loads(file.read_text())
    for part, new in parts.items():
        data[part] = data[part] | new if isinstance(new, dict) else new
    file.write_text(json.dumps(data))


def refused(inventory: str = "/prod.py") -> Any:
    """The finding that stops a run over the inventory; nothing is set aside."""
    with pytest.raises(Stopped) as error:
        upgrade_runs.no_other(inventory, pytest.fail)
    return error.value.findings[0]


@pytest.mark.parametrize("schema", EVENTS)
def test_records_of_earlier_schemas_are_used(schema: int, run: Store) -> None:
    changed(run, schema=schema)
    assert run.progress().at_work == ["h"]


def test_a_record_that_this_version_continues_is_of_its_schema(run: Store) -> None:
    """It may get events and marks that an earlier version misreads."""
    for go_on in (lambda: run.reopen(), lambda: run.is_taken_to("abort")):
        changed(run, schema=1)
        before = json.loads((run.path / "run.json").read_text())
        go_on()
        run.release()
        after = json.loads((run.path / "run.json").read_text())
        assert after == before | {"schema": SCHEMA}
    changed(run, schema=99)
    run.reopen()
    assert json.loads((run.path / "run.json").read_text())["schema"] == 99


def test_an_unknown_event_is_of_another_version(run: Store) -> None:
    with (run.path / "record.jsonl").open("a") as record:
        record.write(json.dumps({"time": 2.0, "event": "parked", "host": "h"}) + "\n")
    found = refused()
    assert found.code == "GF289"
    assert "its event 'parked' is not known" in found.message
    assert run.path.exists()


def test_an_unknown_value_is_of_another_version(run: Store) -> None:
    changed(run, plan={"subject": "firmware"})
    found = refused()
    assert found.code == "GF289"
    assert "subject: " in found.message
    assert f"move {run.path} away" in found.remedy


@pytest.mark.parametrize(
    "part", [{"schema": 99}, {"order": {"later": 1}}, {"plan": {"subject": "firmware"}}]
)
def test_a_run_of_another_version_stops_none_over_another_inventory(
    part: dict[str, Any], run: Store
) -> None:
    changed(run, **part)
    upgrade_runs.no_other("/other.py", pytest.fail)
    assert refused().code == "GF289"
    assert run.path.exists()


@pytest.mark.parametrize("order", [[], {"inventory": 5}, {"folder": None}, {"inventory": "a\0b"}])
def test_a_run_of_another_version_may_be_over_any_inventory(order: Any, run: Store) -> None:
    """Where its record does not say over which one."""
    changed(run, schema=99, order=order)
    assert refused("/other.py").code == "GF289"


def test_a_run_of_another_version_and_another_user_is_ended_by_that_user(
    run: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(run, schema=99)
    of_another(run, monkeypatch)
    upgrade_runs.no_other("/other.py", pytest.fail)
    assert refused().code == "GF287"


@pytest.mark.parametrize("part", [{"schema": 10**4000}, {"order": {"later" * 1000: 1}}])
def test_what_another_version_wrote_is_shown_in_part(part: dict[str, Any], run: Store) -> None:
    changed(run, **part)
    found = refused()
    assert found.code == "GF289"
    assert len(found.message) < 600
