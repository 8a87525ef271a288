"""Maintenance windows and shares of a fleet."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from gpufleet.host.upgrade_settings import check_share
from gpufleet.host.window import Window
from gpufleet.upgrade.settings import share_of_hosts

BERLIN = "Europe/Berlin"


def moment(text: str, zone: str = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("window", "time", "is_open"),
    [
        ("Mon-Thu 09:00-16:30", "2026-11-23T09:00", True),  # a Monday
        ("Mon-Thu 09:00-16:30", "2026-11-23T08:59", False),
        ("Mon-Thu 09:00-16:30", "2026-11-23T16:30", False),
        ("Mon-Thu 09:00-16:30", "2026-11-27T10:00", False),  # a Friday
        ("22:00-04:00", "2026-11-23T03:59", True),
        ("Fri 22:00-04:00", "2026-11-28T03:00", True),  # the night from Friday
        ("Fri 22:00-04:00", "2026-11-27T03:00", False),
        ("Sat-Mon 00:00-24:00", "2026-11-22T12:00", True),
        ("Mon 01:00-02:00, Tue 03:00-04:00", "2026-11-24T03:30", True),
    ],
)
def test_a_window_is_open_at_its_times(window: str, time: str, is_open: bool) -> None:
    assert Window.parse(window, BERLIN).is_open(moment(time)) is is_open


def test_a_window_follows_its_time_zone() -> None:
    window = Window.parse("Mon-Fri 09:00-10:00", BERLIN)
    assert window.is_open(moment("2026-11-23T08:30", "UTC"))  # winter: one hour
    assert window.is_open(moment("2026-07-06T07:30", "UTC"))  # summer: two


def test_the_next_opening() -> None:
    window = Window.parse("Mon-Thu 09:00-16:30", BERLIN)
    friday = moment("2026-11-27T10:00:30")
    assert window.opens(friday) == moment("2026-11-30T09:00")
    monday = moment("2026-11-30T12:00")
    assert window.opens(monday) == monday


@pytest.mark.parametrize(
    ("window", "zone", "now", "opens"),
    [
        ("09:07-10:00", "Asia/Kathmandu", "2026-11-27T08:00:30", "2026-11-27T09:07"),  # UTC+5:45
        ("09:00-10:00, 21:04-21:05", "UTC", "2026-11-27T10:00", "2026-11-27T21:04"),
        ("Sun 02:30-05:00", BERLIN, "2026-03-28T10:00", "2026-03-29T03:00"),  # 02:30 is skipped
        ("Mon 00:00-24:00", BERLIN, "2026-11-24T00:00", "2026-11-30T00:00"),
    ],
)
def test_a_window_opens_at_its_minute(window: str, zone: str, now: str, opens: str) -> None:
    assert Window.parse(window, zone).opens(moment(now, zone)) == moment(opens, zone)


@pytest.mark.parametrize(
    "text", ["", "Mon", "9-17", "Xyz 09:00-10:00", "09:00-09:00", "25:00-26:00"]
)
def test_what_is_no_window(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|names"):
        Window.parse(text, "UTC")


def test_an_unknown_zone() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Window.parse("09:00-10:00", "Europe/Nowhere")


@pytest.mark.parametrize(
    ("share", "total", "hosts"), [(3, 100, 3), ("10%", 100, 10), ("10%", 5, 1), ("100%", 7, 7)]
)
def test_a_share_of_the_fleet(share: str | int, total: int, hosts: int) -> None:
    assert share_of_hosts(check_share(share), total) == hosts


@pytest.mark.parametrize("share", [0, -1, True, "0%", "101%", "ten", "5"])
def test_what_is_no_share(share: str | int) -> None:
    with pytest.raises(ValueError, match="must be"):
        check_share(share)
