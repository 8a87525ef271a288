"""What is wrong with the data in an inventory."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

UNKNOWN_KEY = Kind(
    "GF201",
    Severity.BLOCKER,
    "Unknown setting",
    "the inventory sets {key}, which no role knows.",
    "{suggestion}",
)

INVALID_VALUE = Kind(
    "GF202",
    Severity.BLOCKER,
    "Wrong value of a setting",
    "{key} = {value} {problem}.",
    "Correct it in the inventory, in group_data or on the command line.",
)

CONTRADICTION = Kind(
    "GF203",
    Severity.BLOCKER,
    "Two settings contradict each other",
    "{first} and {second} contradict each other: {problem}.",
    "Change or remove one of the two.",
)

NEAR_MISS = Kind(
    "GF204",
    Severity.WARNING,
    "A key that pyinfra does not know",
    "the inventory sets {key}, which neither pyinfra nor a role reads: it has no effect.",
    "Did you mean {meant}? If it is data of your own, give it another name.",
)

NO_SUCH_GROUP = Kind(
    "GF205",
    Severity.WARNING,
    "Data of a group that has no hosts",
    "there is data for a group {name}, which no host is in: it has no effect.",
    "Did you mean {meant}? The name of a file in group_data is that of the group, to the letter.",
)
