"""Drives a headless Chromium over its debugging pipe: needs nothing but the browser and Python."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
]


class Chromium:
    """One page. What happens in it is kept in `events`: (method, parameters)."""

    def __init__(self, program="chromium"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="report-browser-"))
        self.downloads = self.folder / "downloads"
        self.downloads.mkdir()
        command_read, self.to_browser = os.pipe()
        self.from_browser, answer_write = os.pipe()

        def wire():
            # The browser reads commands from 3 and writes answers to 4. Copies first: either end may already be called 3 or 4.
            commands, answers = os.dup(command_read), os.dup(answer_write)
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self.folder / 'profile'}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(command_read)
        os.close(answer_write)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        pages = [target for target in self.call("Target.getTargets")["targetInfos"] if target["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _messages(self, seconds):
        """What has arrived, waiting so long for the first of it."""
        if b"\0" not in self.rest and select.select([self.from_browser], [], [], seconds)[0]:
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.rest += piece
        *whole, self.rest = self.rest.split(b"\0")
        return [json.loads(message) for message in whole]

    def call(self, method, **parameters):
        """A command and its answer. Other messages are events."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        answer = None
        deadline = time.monotonic() + 60
        while answer is None:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{method}: no answer within a minute")
            for message in self._messages(1):
                if message.get("id") == self.number:
                    answer = message
                elif "method" in message:
                    self.events.append((message["method"], message["params"]))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, path):
        before = len(self.events)
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.wait(lambda: any(method == "Page.loadEventFired" for method, _ in self.events[before:]), "the page to load")

    def wait(self, condition, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {seconds} s for {what}")
            self.evaluate("0")
            time.sleep(0.05)
        return found

    def evaluate(self, script):
        """The value of a script, promises awaited; it may do what a click may do."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def size(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.settle()

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()

    def settle(self):
        """Two frames: what was to be drawn has been drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60))))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path, full=True):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=full)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def pdf(self, path):
        data = self.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def complaints(self):
        """Exceptions and whatever the console has that is an error or a warning."""
        found = []
        for method, parameters in self.events:
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"])[:600])
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(parameters["args"])[:600])
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self):
        """What was asked for beside the page itself and what it has in it."""
        urls = [parameters["request"]["url"] for method, parameters in self.events if method == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("file:", "data:", "blob:", "about:"))]
