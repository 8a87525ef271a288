"""`make fuzz FUZZ=100000`: run each parser of external text with variants of valid inputs.

Inputs that a parser neither accepts nor rejects are written to build/fuzz. Fix the parser, and move
the file to tests/fuzz/finds/PARSER, for tests/unit/test_fuzz.py to parse.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

import click

from tests.fuzz.parsers import PARSERS, Parser

OUTPUT = Path("build/fuzz")
SLOW_SECONDS = 5.0  # of CPU for one input


def finds(parser: Parser, inputs: int, seed: int) -> list[tuple[bytes, str]]:
    """One input for each kind of error, with a description of the error."""
    rng = Random(f"{seed} {parser.name}")
    found: dict[str, bytes] = {}
    for _ in range(inputs):
        data = parser.variant(rng)
        start = time.process_time()
        error = parser.broken_by(data)
        seconds = time.process_time() - start
        if error is not None:
            found.setdefault(described(error), data)
        elif seconds > SLOW_SECONDS:
            found.setdefault(f"{seconds:.0f} s of CPU", data)
    return [(data, problem) for problem, data in found.items()]


def described(error: Exception) -> str:
    """The type of an error and the line of the product that raised it."""
    trace, place = error.__traceback__, ""
    while trace:
        file = trace.tb_frame.f_code.co_filename
        if "/gpufleet/" in file:
            place = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}"


def run(number: int, inputs: int, seed: int) -> list[tuple[bytes, str]]:
    return finds(PARSERS[number], inputs, seed)


@click.command()
@click.option("--inputs", default=1_000_000, show_default=True, help="Inputs per parser.")
@click.option("--seed", default=1, show_default=True, help="Seed of the random generator.")
@click.option("--only", default="", help="Run only parsers whose name contains this text.")
def main(inputs: int, seed: int, only: str) -> None:
    """Fuzz the parsers; exit status 1 if a parser neither accepts nor rejects an input."""
    numbers = [number for number, parser in enumerate(PARSERS) if only in parser.name]
    bad = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = {number: pool.submit(run, number, inputs, seed) for number in numbers}
        for number, job in jobs.items():
            problems = job.result()
            bad += len(problems)
            print(f"{PARSERS[number].name}: {inputs} inputs, {len(problems)} finds", flush=True)
            for data, problem in problems:
                print(f"  {problem}: {save(PARSERS[number], data)}", flush=True)
    sys.exit(bool(bad))


def save(parser: Parser, data: bytes) -> Path:
    path = OUTPUT / parser.name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


if __name__ == "__main__":
    main()
