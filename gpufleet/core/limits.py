"""Limits of size and time for everything that is downloaded or read from others.

Each is far above what is served today, and far below what fills a disk or the memory.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limit:
    """The most `bytes` of one answer, and the most `seconds` from the question to its end, with
    all redirects: a server that sends a byte now and then never exceeds a time between two."""

    what: str
    bytes: int
    seconds: int

    @property
    def too_large(self) -> str:
        return f"it sends more than {self.bytes // MIB} MiB, the limit for {self.what}"

    @property
    def too_slow(self) -> str:
        return f"it was not done after {self.seconds} s, the longest wait for {self.what}"


# Bitnami's index, the largest that is known, has about 25 MB.
INDEX = Limit("an index of charts", 128 * MIB, 300)
# kube-prometheus-stack has less than 1 MB; helm itself unpacks at most 100 MiB.
CHART = Limit("a chart", 32 * MIB, 300)
UNPACKED_CHART = 100 * MIB
# The archives of helm have 15 to 25 MB.
HELM = Limit("the archive of helm", 256 * MIB, 900)
# 500 objects of an API server, at most 1.5 MB each and mostly 5 to 20 kB.
API_ANSWER = Limit("an answer of an API server", 128 * MIB, 300)
API_PAGES = 2_000  # of one list: a million objects
# Keys of packages have 1 to 10 kB.
KEY = Limit("a key", MIB, 120)
# Metadata of one repository on a host. The largest file of a distribution has about 500 MB.
METADATA = Limit("a file of a repository", 1024 * MIB, 900)
# What a command of a host prints. The checks read packages and configurations, at most some MB.
ANSWER = Limit("the output of a command", 16 * MIB, 600)
OWN_ANSWER = Limit("the output of a command of your own checks", 16 * MIB, 3600)
