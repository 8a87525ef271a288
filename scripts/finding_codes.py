"""Which codes of findings belong to which room, and the next free one of each.

    python -m scripts.finding_codes [ROOM...]

A code is stable: it is never given to another finding, also not when its own is gone.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import ModuleType

import gpufleet
import gpufleet_sandbox
from gpufleet.core.findings import finding_modules as declare
from gpufleet.core.findings import finding_rooms

# room -> first and last number of each of its ranges; no two rooms share a number
RANGES: dict[str, tuple[tuple[int, int], ...]] = {
    "run": ((1, 49), (701, 701)),
    "upgrade": ((50, 79), (270, 289), (380, 399)),
    "driver": ((101, 159), (170, 199), (510, 512), (520, 534), (551, 552), (555, 556),
               (563, 563), (565, 565), (568, 568), (725, 725), (727, 727)),
    "core": ((201, 259),),
    "evidence": ((260, 269),),
    "packages": ((301, 379), (540, 540)),
    "toolkit": ((160, 169), (401, 479), (564, 564)),
    "gpu": ((480, 499),),
    "host": ((502, 509), (535, 539), (550, 550), (553, 554), (557, 559), (575, 578)),
    "node": ((501, 501), (513, 519), (541, 549), (560, 562), (566, 567), (569, 574),
             (738, 738)),
    "exporter": ((579, 599),),
    "catalog": ((680, 694),),
    "doctor": ((695, 699),),
    "sandbox": ((601, 664),),
    "bundle": ((665, 679),),
    "verify": ((700, 700), (702, 714), (720, 723), (730, 737), (740, 741), (750, 774), (777, 799)),
    "status": ((715, 719), (724, 724), (726, 726), (728, 729), (739, 739), (742, 745)),
    "combinations": ((746, 749),),
    "helm": ((801, 820), (825, 859), (868, 868), (881, 883), (888, 888)),
    "kube": ((821, 824), (860, 867), (869, 869), (880, 880), (899, 901)),
    "gpu_stack": ((870, 873), (877, 879), (884, 887), (910, 919), (921, 929), (970, 980)),
    "gitops": ((981, 989),),
    "kubernetes": ((80, 99), (290, 299), (902, 909), (930, 969), (994, 997)),
    "containerd": ((990, 993), (998, 999)),
    "monitoring": ((400, 400), (775, 776), (800, 800), (874, 876), (889, 898), (920, 920)),
}  # fmt: skip
RETIRED = {
    3, 10, 76, 84, 118, 164, 167, 168, 169, 208, 210, 285, 402, 414, 417, 421, 425, 433, 438, 443,
    445, 446, 480, 482, 483, 485, 493, 531, 569, 571, 584, 669, 670, 681, 684, 687, 689, 700, 716,
    724, 793, 799, 804, 807, 814, 816, 839, 849, 857, 860, 862, 875, 915, 935, 947, 952, 954, 959,
    980, 988, 991, 992, 996,
}  # fmt: skip


def finding_modules() -> list[ModuleType]:
    """Every room's findings, and the sandbox's; importing them declares them in KINDS."""
    return [module for package in (gpufleet, gpufleet_sandbox) for module in declare(package)]


def codes() -> dict[str, str]:
    """Code of every finding -> the room that declares it."""
    sandbox = dict.fromkeys(finding_rooms(gpufleet_sandbox), "sandbox")
    return {**finding_rooms(gpufleet), **sandbox}


def next_free(room: str, taken: Mapping[str, str]) -> str:
    """The code for a room's next finding: after the last one of a range, or else in a gap.

    "" where all numbers of its ranges are taken.
    """
    used = {int(code[2:]) for code in taken} | RETIRED
    ranges = [range(first, last + 1) for first, last in RANGES.get(room, ())]
    after = [max(used & set(numbers), default=numbers[0] - 1) + 1 for numbers in ranges]
    ends = [number for number, numbers in zip(after, ranges, strict=True) if number in numbers]
    gaps = [number for numbers in ranges for number in numbers if number not in used]
    return f"GF{[*ends, *gaps][0]:03}" if gaps else ""


def wrong(taken: Mapping[str, str]) -> list[str]:
    """Findings whose code is not their room's, each with the code to take."""
    return [
        f"{code} is not one of {room}'s: take {next_free(room, taken) or 'a new range for it'}"
        for code, room in sorted(taken.items())
        if int(code[2:]) in RETIRED
        or not any(first <= int(code[2:]) <= last for first, last in RANGES.get(room, ()))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(RANGES))
    taken = codes()
    for room in parser.parse_args().rooms or RANGES:
        print(f"{room:12} {next_free(room, taken) or 'none left: give it a range in RANGES'}")


if __name__ == "__main__":
    main()
