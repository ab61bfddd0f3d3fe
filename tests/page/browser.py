"""A headless Chromium, driven by its own debugging protocol: what it shows, says and is asked to do."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

#: Debian's name, and others'.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_WAIT_S = 60.0
TEXT = """
window.textOf = node => ["SCRIPT", "STYLE"].includes(node.nodeName) ? "" : node.nodeType == 3 ? node.data
  : [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes].map(textOf).join(" "); 1
"""
#: All views of Bokeh, and the first that has a frame.
VIEWS = """
window.all = []; { const walk = view => { all.push(view); (view.child_views ?? []).forEach(walk) }
Bokeh.index.roots.forEach(walk) }
window.gantt = all.find(view => view.frame); 1
"""


class Tab:
    """A page in the browser; `said` are its errors and warnings."""

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: WebSocketClientConnection) -> None:
        self._loop, self._socket, self._number = loop, socket, 0
        self.said: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the browser's answer; note what the page says meanwhile."""
        self._number += 1
        return self._loop.run_until_complete(asyncio.wait_for(self._call(method, parameters), _WAIT_S))

    async def _call(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        number = self._number
        await self._socket.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(await self._socket.read_message())
            self._note(message)
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def _note(self, message: dict[str, Any]) -> None:
        method, told = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.said.append(str(told["exceptionDetails"].get("exception", told))[:500])
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "assert"):
            self.said.append(str(told["args"])[:500])
        elif method == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.said.append(told["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not told["request"]["url"].startswith(
            ("file:", "data:", "blob:")
        ):
            self.said.append(f"asks for {told['request']['url']}")

    def value(self, expression: str) -> Any:
        """Return what an expression gives."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression holds."""
        poll = "new Promise((done, failed) => { let n = 0; const look = () => { let holds = false; "
        poll += f"try {{ holds = {expression} }} catch {{}} "
        poll += "if (holds) done(true); else if (++n > 1000) failed('never'); else setTimeout(look, 40) }; look() })"
        assert self.value(poll) is True

    def open(self, path: Path, width: int, height: int = 1200) -> None:
        """Show a page of Bokeh in a window of some pixels, drawn."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Bokeh.documents.length > 0 && Bokeh.documents[0].is_idle")

    @property
    def text(self) -> str:
        """What can be read on the page, in its shadows, too."""
        self.value(TEXT)
        return str(self.value("textOf(document.body)"))

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, path: Path) -> None:
        """Save what is seen of the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def chromium() -> Iterator[Tab]:
    """Give a tab of a browser of its own, which ends with the block."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = ["--headless=new", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={folder}"]
        quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--mute-audio"]
        process = subprocess.Popen(
            [CHROMIUM, *options, *quiet, "--enable-unsafe-swiftshader", "about:blank"],
            stderr=subprocess.PIPE,
            text=True,
        )
        loop = asyncio.new_event_loop()
        try:
            assert process.stderr is not None
            port = next(filter(None, (re.search(r"ws://127\.0\.0\.1:(\d+)/", line) for line in process.stderr)))[1]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                address = next(each for each in json.load(answer) if each["type"] == "page")["webSocketDebuggerUrl"]
            socket = loop.run_until_complete(_connected(address))
            yield Tab(loop, socket)
            socket.close()
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
            loop.close()


async def _connected(address: str) -> WebSocketClientConnection:
    return await websocket_connect(address, max_message_size=1 << 28)
