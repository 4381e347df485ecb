"""A headless Chromium, driven through its DevTools pipe: no driver, no port, no package."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)
Message = dict[str, Any]


class WentAway(AssertionError):
    """The page that was asked was left for another before it answered."""


class Chromium:
    """One browser with one page. What the page says, and asks of the network, is kept."""

    def __init__(self, executable: str, profile: Path) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        wiring = f'exec 3<&{to_read} 4>&{to_write}; exec "$0" "$@"'
        options = (*FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank")
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", wiring, executable, *options],
            pass_fds=(to_read, to_write),
            env={**os.environ, "HOME": str(profile), "XDG_CONFIG_HOME": str(profile), "XDG_CACHE_HOME": str(profile)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._number, self._buffer, self._session = 0, b"", ""
        self.said: list[str] = []
        self.requested: list[str] = []
        self._loaded = set[str]()
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Page.setLifecycleEventsEnabled", enabled=True)

    def ask(self, method: str, **parameters: Any) -> Message:
        """One DevTools command and its result."""
        self._number += 1
        message: Message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "navigated" in (error := answer.get("error", {})).get("message", ""):
                    raise WentAway(f"{method}: {error}")
                assert not error, f"{method}: {error}"
                return answer["result"]

    def open(self, page: Path, width: int = 1280, height: int = 900) -> None:
        """Show a file in a window of this size, and forget what was said and requested before."""
        self.said.clear()
        self.requested.clear()
        phone = width < 600
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        # by its own id: that of the page before may be heard only now, and its own before the answer
        own = self.ask("Page.navigate", url=page.as_uri())["loaderId"]
        while own not in self._loaded:
            self._next()

    def value(self, script: str) -> Any:
        """What an expression is in the page."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def media(self, media: str = "", **features: str) -> None:
        """Pretend to print, or that the reader prefers something: prefers_color_scheme="dark"."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.ask("Emulation.setEmulatedMedia", media=media, features=wanted)

    def print(self, path: Path) -> None:
        """The page as PDF, on the paper that its style sheet asks for."""
        printed = self.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        path.write_bytes(base64.b64decode(printed["data"]))

    def close(self) -> None:
        """End the browser: by request, and if it doesn't listen, by force."""
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def _next(self) -> Message:
        """The next message from the browser, noted if it is the page's."""
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))[0], "no answer"
            chunk = os.read(self._read, 1 << 20)
            assert chunk, f"the browser is gone: {self._process.poll()}"
            self._buffer += chunk
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message: Message = json.loads(raw)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, about: Message) -> None:
        if event == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(argument.get("value")) for argument in about["args"]))
        elif event == "Runtime.exceptionThrown":
            self.said.append(about["exceptionDetails"]["text"])
        elif event == "Log.entryAdded":
            self.said.append(about["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requested.append(about["request"]["url"])
        elif event == "Page.lifecycleEvent" and about["name"] == "load":
            self._loaded.add(about["loaderId"])
