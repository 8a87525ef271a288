"""A real browser without a network and without a window, by its DevTools protocol over a pipe.

Chromium runs in a separate network namespace without even a loopback device. External requests of a
page therefore fail, and they are recorded. The protocol:
https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import json
import mimetypes
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
SECONDS = 60.0  # for one answer
WAIT = 30  # seconds for a condition in a page
SERVED = "docs.example"
ALONE = ("unshare", "--map-root-user", "--net", "--")
OPTIONS = (
    "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--font-render-hinting=none",
)  # fmt: skip
# The pipe's ends are descriptors 3 and 4 of the browser. bash: dash has no descriptors above 9.
PIPE = 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"'


class BrowserFailed(Exception):
    """The browser is not there, ended, or refused a command."""


def program() -> str | None:
    """Path of the first browser of PROGRAMS on this machine; a snap cannot be started like this."""
    found = [path for path in map(shutil.which, PROGRAMS) if path]
    return next((path for path in found if Path(path).resolve().name != "snap"), None)


class Browser:
    """One page of a browser. `seen`: the protocol's events, by name.

    `site`: a folder that is served as http://SERVED.
    """

    def __init__(
        self, width: int = 1280, height: int = 900, *, dark: bool = False, site: Path | None = None
    ) -> None:
        self.size = (width, height)
        self.dark = dark
        self.site = site
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self._number = 0
        self._rest = b""
        self._session: str | None = None

    def __enter__(self) -> Browser:
        found = program()
        if found is None:
            raise BrowserFailed(f"none of {', '.join(PROGRAMS)} is installed: make setup-browser")
        self._home = TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()
        profile = f"--user-data-dir={self._home.name}"
        words = [found, *OPTIONS, profile, "about:blank"]
        self._log = Path(self._home.name, "log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*ALONE, "bash", "-c", PIPE, str(commands), str(answers), *words],
                pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        os.close(commands)
        os.close(answers)
        try:
            self._attach()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._to)  # the browser ends when its pipe does
        os.close(self._from)
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._home.cleanup()

    def open(self, address: str) -> str | None:
        """Load a page to its end; the browser's word for why it did not, else None."""
        before = len(self.seen)
        answer = self.ask("Page.navigate", url=address)
        if "errorText" in answer:
            return str(answer["errorText"])
        self._loaded(before)
        return None

    def follow(self, selector: str) -> None:
        """Click on a link and load the page that it leads to."""
        before = len(self.seen)
        self.click(selector)
        self._loaded(before)

    def _loaded(self, before: int) -> None:
        self.receive_until(
            lambda: any(name == "Page.loadEventFired" for name, _ in self.seen[before:])
        )

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page. Raises BrowserFailed if it throws.

        It runs in an isolated world: the page's policy does not apply, and scripts of the page
        cannot influence it.
        """
        frame = self.ask("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = self.ask("Page.createIsolatedWorld", frameId=frame)["executionContextId"]
        found = self.ask(
            "Runtime.evaluate", expression=expression, contextId=world, returnByValue=True,
            awaitPromise=True,
        )  # fmt: skip
        if "exceptionDetails" in found:
            raise BrowserFailed(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def click(self, selector: str) -> None:
        """Press the mouse's button on an element, as a person does."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        middle = "(at => [at.x + at.width / 2, at.y + at.height / 2])"
        at = self.value(f"{middle}({found}.getBoundingClientRect())")
        for what in ("mousePressed", "mouseReleased"):
            self.ask(
                "Input.dispatchMouseEvent", type=what, x=at[0], y=at[1], button="left",
                clickCount=1,
            )  # fmt: skip

    def until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true in the page."""
        end = f"setTimeout(() => done(false), {WAIT * 1000})"
        look = f"const look = () => ({expression}) ? done(true) : setTimeout(look, 50)"
        if not self.value(f"new Promise(done => {{ {end}; {look}; look() }})"):
            raise BrowserFailed(f"not within {WAIT} s: {expression}")

    def receive_until(self, condition: Callable[[], bool]) -> None:
        """Receive events until the condition holds. The events of a page may follow its load."""
        while not condition():
            self._receive()

    def picture(self, *, whole: bool = False) -> bytes:
        """PNG of the window, or of the whole page."""
        width, height = self.size
        if whole:
            height = int(self.ask("Page.getLayoutMetrics")["cssContentSize"]["height"]) + 1
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        found = self.ask(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=whole
        )
        return base64.b64decode(found["data"])

    def requests(self) -> list[str]:
        """Every address that pages asked for, in order."""
        return [
            event["request"]["url"]
            for name, event in self.seen
            if name == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Errors and messages of pages, requests that their policy blocked, and dialogs that they
        opened."""
        found = []
        for name, event in self.seen:
            if name == "Log.entryAdded":
                found.append(f"{event['entry']['level']}: {event['entry']['text']}")
            elif name == "Runtime.consoleAPICalled":
                found.append(f"console: {event['args']}")
            elif name == "Runtime.exceptionThrown":
                found.append(f"exception: {event['exceptionDetails']['text']}")
            elif name == "Page.javascriptDialogOpening":
                found.append(f"dialog: {event['message']}")
        return found

    def ask(self, command: str, **values: Any) -> dict[str, Any]:
        """The answer to a command of the protocol."""
        number = self._send(command, values)
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                break
        if "error" in answer:
            raise BrowserFailed(f"{command}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _attach(self) -> None:
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        answer = self.ask("Target.attachToTarget", targetId=page, flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        width, height = self.size
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        if self.site:
            self.ask("Fetch.enable", patterns=[{"urlPattern": f"http://{SERVED}/*"}])

    def _send(self, command: str, values: Mapping[str, Any]) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": command, "params": values}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        return self._number

    def _serve(self, event: Mapping[str, Any]) -> None:
        """Answer a request from the folder."""
        assert self.site
        file = self.site / urlsplit(event["request"]["url"]).path.lstrip("/")
        there = file.is_file()
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        body = base64.b64encode(file.read_bytes() if there else b"").decode()
        answer = {
            "requestId": event["requestId"], "responseCode": 200 if there else 404, "body": body,
            "responseHeaders": [{"name": "Content-Type", "value": kind}],
        }  # fmt: skip
        self._send("Fetch.fulfillRequest", answer)

    def _receive(self) -> Mapping[str, Any]:
        """The next message. Events are kept, requests of a site answered, dialogs closed."""
        until = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            block = os.read(self._from, 1 << 16) if ready else b""
            if not block:
                log = self._log.read_text(errors="replace")[-2000:]
                raise BrowserFailed(f"{'it ended' if ready else 'no answer'}:\n{log}")
            self._rest += block
        text, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        name = message.get("method")
        if name:
            self.seen.append((name, message["params"]))
        if name == "Page.javascriptDialogOpening":
            self._send("Page.handleJavaScriptDialog", {"accept": True})
        elif name == "Fetch.requestPaused":
            self._serve(message["params"])
        return message


if __name__ == "__main__":  # scripts/setup_browser.sh asks
    sys.exit(0 if program() else 1)
