"""Limits of size and time for all downloads and other external input.

Each limit is far above today's sizes, and far below the size of a disk or of the memory.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limit:
    """The maximum `bytes` of an answer, and the maximum `seconds` until its end, with redirects. A
    timeout between bytes would not stop a server that sends one byte now and then."""

    what: str
    bytes: int
    seconds: int

    @property
    def too_large(self) -> str:
        return f"it sends more than {self.bytes // MIB} MiB, the limit for {self.what}"

    @property
    def too_slow(self) -> str:
        return f"it was not done after {self.seconds} s, the longest wait for {self.what}"


# The largest known index, Bitnami's, has about 25 MB.
INDEX = Limit("an index of charts", 128 * MIB, 300)
# kube-prometheus-stack has less than 1 MB. helm itself unpacks at most 100 MiB.
CHART_LIMIT = Limit("a chart", 32 * MIB, 300)
UNPACKED_CHART = 100 * MIB
# helm's archives have 15 to 25 MB.
HELM = Limit("the archive of helm", 256 * MIB, 900)
# 500 objects of an API server: at most 1.5 MB each, mostly 5 to 20 kB.
API_ANSWER = Limit("an answer of an API server", 128 * MIB, 300)
API_PAGES = 2_000  # in one list: a million objects
# Package signing keys have 1 to 10 kB.
KEY_LIMIT = Limit("a key", MIB, 120)
# A repository's metadata on a host. A distribution's largest file has about 500 MB.
METADATA_LIMIT = Limit("a file of a repository", 1024 * MIB, 900)
# The output of a host's command. The checks read packages and configurations of at most some MB.
ANSWER_LIMIT = Limit("the output of a command", 16 * MIB, 600)
OWN_ANSWER = Limit("the output of a command of your own checks", 16 * MIB, 3600)
