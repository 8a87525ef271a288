"""Each room numbers its findings within its own ranges."""

from __future__ import annotations

from gpufleet.core.findings import KNOWN_KINDS
from scripts.finding_codes import RANGES, RETIRED, codes, finding_modules, next_free, wrong
from scripts.generate_docs import TOPICS, finding_pages

TAKEN = codes()


def test_every_code_is_its_rooms() -> None:
    assert wrong(TAKEN) == []


def test_every_finding_is_seen() -> None:
    finding_modules()
    assert sorted(TAKEN) == sorted(KNOWN_KINDS)


def test_ranges_share_no_number() -> None:
    numbers = [
        n for ranges in RANGES.values() for low, high in ranges for n in range(low, high + 1)
    ]
    assert len(numbers) == len(set(numbers))


def test_every_room_has_a_free_code() -> None:
    free = {room: next_free(room, TAKEN) for room in {*RANGES, *TAKEN.values()}}
    assert {room for room, code in free.items() if not code} == set()
    assert not {int(code[2:]) for code in free.values()} & RETIRED


def test_a_code_of_another_room_is_named_with_the_one_to_take() -> None:
    message = f"GF199 is not one of toolkit's: take {next_free('toolkit', TAKEN)}"
    assert message in wrong({**TAKEN, "GF199": "toolkit"})
    assert wrong({"GF417": "toolkit"})
    assert wrong({"GF400": "a room without ranges"})


def test_the_pages_have_every_finding() -> None:
    assert set(TAKEN.values()) == set(TOPICS)
    pages = finding_pages(TAKEN)
    assert sum(text.count("\n## GF") for text in pages.values()) == len(KNOWN_KINDS)
