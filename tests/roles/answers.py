"""Output of hosts on the fake connector."""

from __future__ import annotations

from gpufleet.host.asking import OUTPUT_MARK

LINE = "\n"


def framed_lines(text: str) -> str:
    """A response as a host prints it, with a login shell's output around it."""
    return f"You have mail.\n\n{OUTPUT_MARK}\n{text.removesuffix(LINE)}\n\n{OUTPUT_MARK}\nlogout\n"


def facts_of(capture: str) -> str:
    """Captured facts as a host prints them in this run."""
    return "You have mail." + "\n".join(
        OUTPUT_MARK + line[2:] if line.startswith("@@") else line
        for line in f"{capture}".split("\n")
    )
