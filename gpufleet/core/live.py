"""Progress on standard error: redrawn lines on a terminal, otherwise a line from time to time."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:  # rich loads slowly
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

HEARTBEAT = 15.0  # seconds between lines without a terminal
PER_SECOND = 4  # redraws of the lines
QUIET = "GPUFLEET_QUIET"  # environment variable: any value turns progress off
SHOW_CURSOR = b"\x1b[?25h\r\n"

Lines = Callable[[int, int], list[str]]  # of columns and rows


def on_terminal(stream: TextIO | None = None) -> bool:
    """True if lines can be redrawn: not in a pipe, a dumb terminal or CI."""
    plain = os.environ.get("TERM", "") in ("", "dumb") or bool(os.environ.get("CI"))
    there = stream or sys.stderr  # None if it was closed at the start
    return there is not None and there.isatty() and not plain


def is_quiet() -> bool:
    """True if the user wants only results and errors."""
    return bool(os.environ.get(QUIET))


class LiveProgress:
    """Shows progress from `start` to `stop`. Use it in one thread, or in one gevent greenlet.

    `lines` returns the lines for a terminal of that size, without control characters. `beat`
    returns one line for a log, or "". `stream` defaults to standard error. In quiet mode nothing is
    drawn, but `say` still prints. A terminal that disappears only ends the progress.
    """

    def __init__(self, lines: Lines, beat: Callable[[], str], stream: TextIO | None = None) -> None:
        self.terminal = on_terminal(stream)
        self._lines, self._beat, self._stream = lines, beat, stream
        self._ended = threading.Event()
        self._live: Live | None = None
        self._gone = (stream or sys.stderr) is None
        self._beating: threading.Thread | None = None

    def start(self) -> None:
        if is_quiet() or self._gone:
            return
        if self.terminal:
            with self._there():
                self._draw()
        else:
            self._beating = threading.Thread(target=self._beats, daemon=True)
            self._beating.start()

    def say(self, line: str) -> None:
        """Print a line that stays above the redrawn lines. It must not have control characters."""
        if self._gone:
            return
        with self._there():
            if self._live:
                from rich.text import Text

                self._live.console.print(Text(line), soft_wrap=True)
            else:
                print(line, file=self._stream or sys.stderr, flush=True)

    def stop(self) -> None:
        """Remove the redrawn lines. A second call does nothing."""
        self._ended.set()
        if self._beating and self._beating is not threading.current_thread():
            self._beating.join()
        live, self._live = self._live, None
        if live:
            with self._there():
                live.stop()

    @contextmanager
    def _there(self) -> Iterator[None]:
        """Stop showing anything when the terminal, or the reader of a pipe, is gone."""
        try:
            yield
        except (OSError, ValueError):  # ValueError: this process has closed the stream
            self._gone = True

    def _draw(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream, stderr=not self._stream, highlight=False)
        self._live = Live(
            get_renderable=lambda: self._drawn(console),
            console=console,
            refresh_per_second=PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=not self._stream,
        )
        self._live.start()

    def abandon(self) -> None:
        """Show the cursor again when a signal handler ends the process. Waits for no lock."""
        if self._live:
            with self._there():
                os.write((self._stream or sys.stderr).fileno(), SHOW_CURSOR)

    def _drawn(self, console: Console) -> Text:
        from rich.text import Text

        text = "\n".join(self._lines(console.width, console.height))
        return Text(text, no_wrap=True, overflow="crop", end="")

    def _beats(self) -> None:
        while not self._gone and not self._ended.wait(HEARTBEAT):
            if line := self._beat():
                self.say(line)
