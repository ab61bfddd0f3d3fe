"""The page of a run, in a headless Chromium: what it shows, that it zooms, and that it trusts no name."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sent_bytes import OVER_TIME, sent
from tornado.websocket import WebSocketClientConnection, websocket_connect

from gridsched import Scenario, run
from gridsched.cli.app import main
from gridsched.energy import trace_energy
from gridsched.errors import InputError, MissingDependency
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.tasks import make_tasks
from gridsched.page import run_data
from gridsched.page.run_data import ShownRun
from gridsched.page.run_panels import run_page

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
        """Return the browser's answer; note the page's messages meanwhile."""
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


ROOT = Path(__file__).resolve().parents[2]
EVIL = "<img src=x onerror='evil()'><script>evil()</script>$$x$$</p>"
PSTATES = (PState(10.0, 50.0, 50.0, 100.0),)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no browser: install chromium")


def small(name="jobs", hosts=("n0", "n1", "n2", "n3"), zones=((0, 1, 2, 3),), zone="zone"):
    """Return a run by hand: A and B together from 0 s to 10 s, C, which is wide, until 15 s."""
    platform = Platform(
        tuple(Host(host, PSTATES) for host in hosts),
        tuple(Cluster(f"{zone}{k}", members) for k, members in enumerate(zones)),
        name=name,
    )
    tasks = make_tasks(
        np.array([100.0, 100.0, 50.0]), (0, 0, 2), width=(2, 1, 4), requested_time_s=(10, 10, 5),
        attributes={"user": [EVIL, "ann", EVIL]}, name=name,
    )  # fmt: skip
    return run(Scenario(platform, tasks, "fcfs", driver="reference"))


def shown(result):
    return ShownRun(result.title, result.trace)


# ---------------------------------------------------------------------- what is shown


def test_bars_are_the_executions_of_the_run():
    """A job on neighboring hosts is one bar; its joules, wait and user are in its columns."""
    result = small()
    bars = shown(result).bars()
    told = [bars[name].tolist() for name in ("job", "left", "right", "row", "last", "wait", "user", "joules")]
    assert list(zip(*told, strict=True)) == [
        (1, 0.0, 10.0, 0, 1, 0.0, 0, 2000.0),
        (3, 10.0, 15.0, 0, 3, 8.0, 0, 2000.0),
        (2, 0.0, 10.0, 2, 2, 0.0, 1, 1000.0),
    ]


def test_hosts_of_a_zone_are_neighbours():
    """Zones of every second host: their rows follow each other, and no bar leaves its host."""
    platform = Platform(
        tuple(Host(f"n{k}", PSTATES) for k in range(4)), (Cluster("even", (0, 2)), Cluster("odd", (1, 3)))
    )
    one = shown(run(Scenario(platform, make_tasks([100.0] * 4), "mct", driver="reference")))
    assert one.host_names == ["n0", "n2", "n1", "n3"]
    names = [one.host_names[row] for row in one.bars()["row"].tolist()]
    hosts = one.trace.executions["host"].tolist()
    assert names == [f"n{host}" for host in hosts]


def test_curves_add_up():
    """Power by hand; the energy at the end is the run's; one job waits from 2 s to 10 s."""
    result = small()
    curves = shown(result).curves()
    assert curves["time"].tolist() == [0.0, 2.0, 10.0, 15.0]
    assert curves["power"].tolist() == [350.0, 350.0, 400.0, 400.0]
    assert curves["waiting"].tolist() == [0, 1, 0, 0]
    assert curves["running"].tolist() == [2, 2, 1, 0]
    assert curves["energy"][-1] == pytest.approx(trace_energy(result.trace).total_j.sum(), rel=1e-12)


def test_traffic_adds_up():
    """Rates over both links together and over the busier one; a run without a record has none."""
    columns = ShownRun("sent", sent()).traffic()
    assert columns["time"].tolist() == [2.0 * k for k in range(8)]
    assert (2 * columns["busiest"]).tolist() == pytest.approx([*OVER_TIME["near"], OVER_TIME["near"][-1]])
    assert columns["links"].tolist() == pytest.approx((7 / 6 * columns["busiest"]).tolist())
    assert ShownRun("not recorded", sent(None)).traffic() == {}
    assert "Links [byte/s]" in run_page([ShownRun("sent", sent())]).html


def test_what_is_too_much_is_left_out_and_told(monkeypatch):
    """Of 3 bars the 2 of most host time, and steps in the place of instants, with exact energy."""
    monkeypatch.setattr(run_data, "MOST_BARS", 2)
    monkeypatch.setattr(run_data, "MOST_INSTANTS", 3)
    monkeypatch.setattr(run_data, "STEPS", 5)
    one = shown(small())
    assert one.bars()["job"].tolist() == [1, 3]
    curves = one.curves()
    assert curves["time"].tolist() == [0.0, 3.0, 6.0, 9.0, 12.0, 15.0]
    assert curves["energy"][-1] == pytest.approx(10 * 350.0 + 5 * 400.0, rel=1e-12)
    assert [any(word in note for note in one.notes) for word in ("2 longest of 3", "5 equal steps")] == [True, True]


def test_the_page_is_one_file_without_links():
    """Beside the library's own text there is no address, and no name is markup."""
    html = run_page([shown(small(EVIL))]).html
    assert EVIL not in html
    outside = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert [word for word in ("http", "<img", "src=") if word in outside.replace("&lt;img src=", "")] == []


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def tab():
    with chromium() as tab:
        yield tab


@needs_browser
@pytest.mark.parametrize("width", [1400, 400])
def test_hover_zoom_and_filters_work_and_names_are_text(tab, width, tmp_path):
    """No error in the console, nothing asked for; names with markup are shown as they are."""
    hosts = (EVIL, "n1", "n2", "n3")
    first, second = small(EVIL, hosts, ((0, 1, 2, 3),), EVIL), small(f"{EVIL} again", hosts)
    path = first.view(second).save(tmp_path / "page.html")
    tab.said.clear()
    tab.value("window.evil = () => { window.harmed = true }")
    tab.open(path, width)
    assert tab.value("document.documentElement.scrollWidth <= innerWidth")
    assert EVIL in tab.value("document.querySelector('h1').textContent")
    tab.value(VIEWS)
    box = tab.value(
        "(() => { const b = gantt.el.getBoundingClientRect(), f = gantt.frame.bbox;"
        "return [b.left + f.left + 0.1 * f.width, b.top + f.top + 0.1 * f.height] })()"
    )
    for step in range(3):
        tab.mouse("mouseMoved", box[0] + step, box[1])
    tab.value(TEXT)
    tab.wait_for("textOf(document.body).includes('2,000 J')")
    tip = tab.text.partition("hosts:")[2]
    assert "onerror='evil()'" in tip.partition("user:")[0]
    assert tip.partition("user:")[0].split()[-3:] == ["to", "n1", "(2)"]
    assert "onerror='evil()'" in tip.partition("user:")[2]
    before = tab.value("gantt.model.x_range.end - gantt.model.x_range.start")
    tab.mouse("mouseWheel", *box, deltaX=0, deltaY=-240)
    tab.wait_for(f"gantt.model.x_range.end - gantt.model.x_range.start < {before} * 0.9")
    tab.value("window.models = [...Bokeh.documents[0]._all_models.values()]; 1")
    select = "models.find(each => each.type == 'Select' && each.title == 'User')"
    tab.value(f"{select}.value = 'ann'; 1")
    jobs = "all.filter(v => v.frame && v.model.title.text).map(v => [...v.model.renderers[1].data_source.data.job])"
    tab.wait_for(f"JSON.stringify({jobs}) == '[[2],[2]]'")
    one = "models.find(each => each.type == 'Select' && each.title == 'Scheduler')"
    tab.value(f"{one}.value = {one}.options[1]; 1")
    visible = "models.filter(each => each.type == 'Figure' && each.y_range.start > 1).map(each => each.visible)"
    assert sorted(tab.value(visible)) == [False, True]
    assert tab.said == []
    assert tab.value("window.harmed") is None


@needs_browser
def test_of_many_bars_the_longest_in_view_are_drawn(tab, tmp_path):
    """Of 20,000 bars 6,000 at first, which the page states; after zooming in all that are in view."""
    platform = Platform(tuple(Host(f"n{k}", PSTATES) for k in range(20)))
    rng = np.random.default_rng(1)
    tasks = make_tasks(rng.exponential(10.0, 20_000), np.sort(rng.random(20_000) * 1e4))
    path = run(Scenario(platform, tasks, "wq", driver="reference")).view().save(tmp_path / "page.html")
    tab.said.clear()
    tab.open(path, 1400)
    tab.value(VIEWS)
    source = "gantt.model.renderers[1].data_source.data"
    assert tab.value(f"{source}.left.length") == 6_000
    assert "6,000 longest of 20,000" in tab.value("gantt.model.title.text")
    tab.value("gantt.model.x_range.setv({start: 0.1, end: 0.2}); 1")
    tab.wait_for("gantt.model.title.text == ''")
    starts, ends = (tab.value(f"[...{source}.{edge}]") for edge in ("left", "right"))
    assert 0 < len(starts) < 6_000
    assert max(starts) <= 0.2
    assert min(ends) >= 0.1
    assert tab.said == []


# ---------------------------------------------------------------------- commands


def test_commands_write_a_page(tmp_path, capfd):
    """`view` of exports and `study view` of a stored run; a page is not written over unasked."""
    for scheduler in ("easy_backfilling", "fcfs"):
        words = ["run", "--workload", str(ROOT / "examples/four_nodes.swf"), "--scheduler", scheduler]
        assert main([*words, "--driver", "reference", "--export", str(tmp_path / scheduler), "--quiet"]) == 0
    page = tmp_path / "page.html"
    assert main(["view", str(tmp_path / "easy_backfilling"), str(tmp_path / "fcfs"), "-o", str(page)]) == 0
    assert "easy_backfilling" in page.read_text()
    assert main(["view", str(tmp_path / "fcfs"), "-o", str(page)]) == 2
    assert main(["study", "run", "tiny", "--store", str(tmp_path / "store"), "--quiet"]) == 0
    from gridsched.campaign.store import Store

    run_id = Store.open(tmp_path / "store").rows()["run_id"].iloc[0]
    assert main(["study", "view", str(tmp_path / "store"), run_id[:10], "-o", str(page), "--force"]) == 0
    assert "bokeh" in page.read_text().lower()


def test_a_notebook_shows_it_in_a_frame():
    """The page is in the frame as text, so that it ends nothing around it."""
    frame = small().view()._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert frame.count("<") == 2


def test_the_extra_is_loaded_late_and_its_lack_told(monkeypatch):
    """Neither `import gridsched` nor a run loads Bokeh; without it a page explains how to install it."""
    code = "import gridsched, gridsched.runs.run, sys; sys.exit('bokeh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(MissingDependency, match=r"gridsched\[view\]"):
        small().view()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(each.startswith("bokeh") for each in extras["view"])


def test_a_platform_without_hosts_is_refused():
    """There is nothing to show."""
    with pytest.raises(InputError, match="host"):
        run_page([ShownRun("none", type("Empty", (), {"platform": ()})())])
