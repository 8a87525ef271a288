"""Which instances fit on a GPU together: the profiles of the catalog, their slices and places."""

from __future__ import annotations

from itertools import chain, combinations_with_replacement

import pytest

from gpufleet.gpu.layouts import layout_text, misfit_reason, order_layout, parse_layout
from gpufleet.gpu.models import load_mig_catalog

pytestmark = pytest.mark.claim(
    "A MIG layout that a GPU does not have, or that does not fit, is refused.", level=1
)

CATALOG = load_mig_catalog()
A100, A30 = CATALOG.model(0x20B2), CATALOG.model(0x20B7)
assert A100
assert A30


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("1g.10gb:7", True),
        ("3g.40gb:2", True),
        ("4g.40gb, 3g.40gb", True),
        ("4g.40gb, 2g.20gb, 1g.10gb", True),
        ("3g.40gb, 2g.20gb, 1g.10gb:2", True),
        ("3g.40gb, 1g.20gb:2", True),
        ("2g.20gb:3, 1g.20gb", True),
        ("7g.80gb", True),
        ("1g.20gb:4", True),
        ("4g.40gb:2", False),  # one at most
        ("7g.80gb, 1g.10gb", False),
        ("3g.40gb:2, 1g.10gb", False),  # compute is left, memory is not
        ("4g.40gb, 3g.40gb, 1g.10gb", False),
        ("2g.20gb:3, 1g.10gb:2", False),
        ("1g.20gb:4, 1g.10gb", False),
        ("1g.10gb+me:2", False),
    ],
)
def test_what_fits_on_an_a100(text: str, fits: bool) -> None:
    assert A100
    assert (misfit_reason(parse_layout(text), A100, CATALOG) == "") == fits


def test_an_a30_has_four_slices() -> None:
    assert A30
    assert not misfit_reason(parse_layout("2g.12gb, 1g.6gb:2"), A30, CATALOG)
    assert misfit_reason(parse_layout("2g.12gb:2, 1g.6gb"), A30, CATALOG)


def test_the_largest_instances_come_first() -> None:
    assert A100
    layout = parse_layout("1g.10gb, 1g.20gb, 3g.40gb")
    assert order_layout(layout, A100, CATALOG) == ("3g.40gb", "1g.20gb", "1g.10gb")


@pytest.mark.parametrize(
    ("device", "layout"),
    [
        (0x20F6, "1g.5gb:7"),  # A800 40 GB
        (0x20F3, "1g.10gb:7"),  # A800 80 GB
        (0x20F5, "4g.40gb, 3g.40gb"),
        (0x2322, "1g.10gb+me, 1g.10gb:6"),  # H800
        (0x2324, "7g.80gb"),
        (0x233A, "3g.47gb:2"),
        (0x233D, "3g.48gb, 2g.24gb, 1g.12gb:2"),
        (0x31C2, "3g.139gb, 2g.70gb, 1g.35gb:2"),  # GB300
        (0x2BB5, "1g.24gb-me:4"),  # RTX PRO 6000
        (0x2BB5, "2g.48gb+gfx, 1g.24gb+gfx:2"),
        (0x2BB1, "2g.48gb+me.all, 1g.24gb-me:2"),
        (0x2BB4, "4g.96gb+gfx"),
    ],
)
def test_gpus_of_other_names_and_profiles_of_media_and_graphics(device: int, layout: str) -> None:
    model = CATALOG.model(device)
    assert model
    wanted = parse_layout(layout)
    assert {*wanted} <= {*CATALOG.shapes(model)}
    assert not misfit_reason(wanted, model, CATALOG)


@pytest.mark.parametrize("model", CATALOG.models, ids=lambda model: model.title)
def test_every_profile_fits_as_often_as_it_says_and_not_more(model: object) -> None:
    known = next(each for each in CATALOG.models if each is model)
    for profile, shape in CATALOG.shapes(known).items():
        assert not misfit_reason((profile,) * shape.most, known, CATALOG)
        assert misfit_reason((profile,) * (shape.most + 1), known, CATALOG)


def test_no_device_is_of_two_models() -> None:
    ids = list(chain.from_iterable(model.ids for model in CATALOG.models))
    assert len(ids) == len(set(ids))


def test_a_layout_is_read_as_it_is_written() -> None:
    assert A100
    for layout in combinations_with_replacement(A100.profiles.values(), 3):
        assert parse_layout(layout_text(layout)) == tuple(sorted(layout, reverse=True))
