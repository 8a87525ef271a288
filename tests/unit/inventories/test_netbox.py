"""The inventory that reads NetBox: pages, the token, damaged answers."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from source_fakes import NetBox, damaged, error_of, load, places, recorded

from gpufleet.run.sources import SourceError


def test_netbox_reads_each_page_from_the_address_of_the_user(
    netbox: NetBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("netbox")
    pages = [path.partition("&offset=") for path, _ in netbox.asked[1:]]
    asked = "/api/dcim/devices/?tag=gpufleet&status=active&limit=500"
    assert pages == [(asked, "&offset=", "0"), (asked, "&offset=", "2")]
    assert netbox.asked[1][1] == "Bearer nbt_key.hunter2"
    monkeypatch.setenv("NETBOX_TOKEN", "0123")
    load("netbox")
    assert netbox.asked[-1][1] == "Token 0123"


def test_netbox_gets_no_token_by_a_redirect(netbox: NetBox) -> None:
    with NetBox() as other:
        threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
        netbox.status, netbox.location = 302, f"{other.url}/api/dcim/devices/?offset=0"
        assert "HTTP status 302" in error_of("netbox")
        assert other.asked == [("", "")]
        other.shutdown()


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("NETBOX_URL", "", "set NETBOX_URL"),
        ("NETBOX_URL", "netbox.example.com", "set NETBOX_URL"),
        ("NETBOX_URL", "file:///etc/hosts", "set NETBOX_URL"),
        ("NETBOX_URL", "http://127.0.0.1:1", "no answer"),
        ("NETBOX_URL", "http://[::1", "no answer"),
        ("NETBOX_TOKEN", " ", "NETBOX_TOKEN"),
        ("NETBOX_TOKEN", "nbt_key.hunter2\nX-Y: 1", "no answer"),
        ("NETBOX_TOKEN", "nbt_key.hunter2\N{SNOWMAN}", "no answer"),
    ],
)
def test_netbox_with_a_wrong_address_or_token(
    name: str, value: str, error: str, netbox: NetBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert error in error_of("netbox")


@pytest.mark.parametrize(
    ("status", "page", "error"),
    [
        (403, {"detail": "Invalid token"}, "HTTP status 403"),
        (400, {"tag": ["not one of the available choices"]}, "HTTP status 400"),
        (200, b"<html>", "the answer is not JSON"),
        (200, [], "NetBox /api/dcim/devices/: results is missing"),
        (200, {"results": {}}, "results is an object, expected a list"),
        (200, {"count": 0, "results": []}, "no active device has the tag gpufleet"),
        (200, {"results": [{}]}, "count is missing: expected a number"),
        (200, {"count": 1, "results": [3]}, "results[0].primary_ip is missing"),
    ],
)
def test_netbox_with_another_answer(status: int, page: Any, error: str, netbox: NetBox) -> None:
    netbox.status, netbox.pages[0] = status, page
    assert error in error_of("netbox")


@pytest.mark.parametrize("new", [..., None, "x", 7, [], {}, "\x1b[31m\n"])
def test_each_damaged_device_gives_groups_or_one_error(new: Any, netbox: NetBox) -> None:
    whole, errors = recorded("netbox-1"), []
    for path in places(whole):
        netbox.pages[0] = damaged(whole, path, new)
        try:
            load("netbox")
        except SourceError as error:
            errors.append(str(error))
    assert errors
    assert all(error.isprintable() for error in errors)
