"""A headless Chromium, driven over the pipe of its DevTools protocol: no driver and no network port."""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-pipe",
)


class BrowserError(Exception):
    """The browser refuses a call, or a page threw; the text is its own."""


class Browser:
    """One browser with one page.

    Attributes:
        messages: what the page wrote to its console, exceptions and broken policies included.
        requested: the addresses that the page asked for.
    """

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        (read_end, to_browser), (from_browser, write_end) = os.pipe(), os.pipe()
        # the browser's ends become 3 and 4, and must not lie there before
        high_read, high_write = (fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (read_end, write_end))
        null = os.open(os.devnull, os.O_RDWR)
        self._process = os.posix_spawn(
            PROGRAM,
            [PROGRAM, *_SWITCHES, f"--user-data-dir={profile}", "about:blank"],
            os.environ,
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, null, end) for end in (0, 1, 2)),
                (os.POSIX_SPAWN_DUP2, high_read, 3),
                (os.POSIX_SPAWN_DUP2, high_write, 4),
            ],
            setpgroup=0,
        )
        for end in (read_end, write_end, high_read, high_write, null):
            os.close(end)
        self._to, self._from = to_browser, from_browser
        self._buffer, self._number, self._session = b"", 0, None
        self._events: list[dict[str, Any]] = []
        self.messages: list[str] = []
        self.requested: list[str] = []
        page = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # a page without the focus has no clipboard
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def close(self) -> None:
        """End the browser and its children."""
        with contextlib.suppress(OSError, BrowserError):
            self._session = None
            self.call("Browser.close", seconds=10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, *, seconds: float = 60, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        until = time.monotonic() + seconds
        while True:
            answer = self._next(until)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def open(self, file: Path, *, seconds: float = 60) -> float:
        """Open a file, and return after how many seconds it was loaded."""
        self._events.clear()
        started = time.monotonic()
        self.call("Page.navigate", url=file.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._note(self._next(started + seconds))
        return time.monotonic() - started

    def run(self, script: str) -> Any:
        """Run JavaScript in the page, and return its value, awaited."""
        done = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in done:
            details = done["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return done["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key."""
        both = {"key": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **both, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **both)

    def click(self, selector: str) -> None:
        """Click with the mouse into the middle of an element."""
        x, y = self.run(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
            "one.scrollIntoView({block: 'center'}); const r = one.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def show(self, width: int, height: int, *, scheme: str = "light") -> None:
        """Give the page this size, in CSS pixels, and this color scheme."""
        phone = width < 500
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def screenshot(self, file: Path) -> bytes:
        """Write what is seen to a PNG file, and return it."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        file.write_bytes(data)
        return data

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._from, 1 << 20)
            if not part:
                raise BrowserError("the browser ended")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        found = event.get("params", {})
        if event.get("method") == "Runtime.consoleAPICalled":
            self.messages.append(str([argument.get("value") for argument in found["args"]]))
        elif event.get("method") == "Runtime.exceptionThrown":
            self.messages.append(found["exceptionDetails"].get("text", "exception"))
        elif event.get("method") == "Log.entryAdded":
            self.messages.append(found["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            self.requested.append(found["request"]["url"])
