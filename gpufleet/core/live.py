"""Progress on standard error: lines that are redrawn on a terminal, elsewhere one now and then."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from rich.live import Live

HEARTBEAT = 15.0  # seconds between two lines where there is no terminal
PER_SECOND = 4  # times that lines are drawn
QUIET = "GPUFLEET_QUIET"  # environment variable: no progress, if it has a value
SHOW_CURSOR = b"\x1b[?25h\r\n"

Lines = Callable[[int, int], list[str]]  # of columns and rows


def on_terminal(stream: TextIO | None = None) -> bool:
    """Whether lines can be redrawn: not in a pipe, a dumb terminal or CI."""
    plain = os.environ.get("TERM", "") in ("", "dumb") or bool(os.environ.get("CI"))
    there = stream or sys.stderr  # None where it was closed at the start
    return there is not None and there.isatty() and not plain


def is_quiet() -> bool:
    """Whether results and errors alone are wanted."""
    return bool(os.environ.get(QUIET))


class LiveProgress:
    """Progress from `start` to `stop`; used in one thread, or with gevent in one greenlet.

    `lines`: for a terminal of that size, each without control characters; `beat`: one line for a
    log, "" where there is nothing to say; `stream`: where to, if not standard error. None is drawn
    where results alone are wanted; what is said is printed. A terminal that goes away ends the
    progress, and nothing else.
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
        """Print a line that stays, above those that are redrawn. It has no control characters."""
        if self._gone:
            return
        with self._there():
            if self._live:
                self._live.console.print(Text(line), soft_wrap=True)
            else:
                print(line, file=self._stream or sys.stderr, flush=True)

    def stop(self) -> None:
        """Remove the lines that were drawn; a second call does nothing."""
        self._ended.set()
        if self._beating and self._beating is not threading.current_thread():
            self._beating.join()
        live, self._live = self._live, None
        if live:
            with self._there():
                live.stop()

    @contextmanager
    def _there(self) -> Iterator[None]:
        """Nothing more is shown once the terminal, or the reader of a pipe, is gone."""
        try:
            yield
        except (OSError, ValueError):  # the latter of a stream that this process has closed
            self._gone = True

    def _draw(self) -> None:
        from rich.live import Live  # takes its time to load

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
        """Give the cursor back where the process ends at once, in a signal handler: waits for
        no lock."""
        if self._live:
            with self._there():
                os.write((self._stream or sys.stderr).fileno(), SHOW_CURSOR)

    def _drawn(self, console: Console) -> Text:
        text = "\n".join(self._lines(console.width, console.height))
        return Text(text, no_wrap=True, overflow="crop", end="")

    def _beats(self) -> None:
        while not self._gone and not self._ended.wait(HEARTBEAT):
            if line := self._beat():
                self.say(line)
