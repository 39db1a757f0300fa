"""Headless Chromium, driven over a pipe by the DevTools protocol."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from run.process import PATIENCE


def above_nine(pair):
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in pair]
    for each in pair:
        os.close(each)
    return moved


class Chrome:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="sluice-chrome-")
        # The protocol speaks on descriptors 3 and 4 of the browser; ours are
        # above 9 so that laying them there overwrites neither.
        to_read, self.to_write = above_nine(os.pipe())
        self.to_read, to_write = above_nine(os.pipe())
        self.child = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", "/usr/bin/chromium",
             "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--ignore-certificate-errors", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read), os.close(to_write)
        self.number, self.buffer, self.events, self.contexts = 0, b"", [], []

    def close(self):
        os.close(self.to_write), os.close(self.to_read)
        self.child.terminate()
        self.child.wait(20)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, session=None, seconds=20, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + seconds * PATIENCE
        while True:
            answer = self.read(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def read(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.to_read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("no answer of the browser")
            piece = os.read(self.to_read, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def page(self, **options):
        page = Page(self, **options)
        self.contexts.append(page.context)
        return page

    def close_pages(self):
        """Ends all pages and their connections."""
        for context in self.contexts:
            self.call("Target.disposeBrowserContext", browserContextId=context)
        self.contexts = []


class Page:
    """A tab with cookies of its own."""

    def __init__(self, chrome, width=800, height=700, script=True):
        self.chrome = chrome
        self.context = chrome.call("Target.createBrowserContext")["browserContextId"]
        target = chrome.call("Target.createTarget", url="about:blank",
                             browserContextId=self.context)
        self.session = chrome.call("Target.attachToTarget", targetId=target["targetId"],
                                   flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 500)
        if not script:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def call(self, method, **params):
        return self.chrome.call(method, self.session, **params)

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def ask(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    def wait(self, expression, seconds=20):
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self.ask(expression):
                    return
            except RuntimeError:
                pass
            assert time.monotonic() < deadline, f"never true: {expression}; page says: {self.text()}"
            time.sleep(0.05)

    def text(self):
        return self.ask("document.body.innerText") or ""

    def cookies(self):
        return {cookie["name"]: cookie for cookie in self.call("Network.getCookies")["cookies"]}

    def screenshot(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def complaints(self):
        """What the browser logged: script errors, policy violations."""
        self.ask("1")
        return [event["params"] for event in self.chrome.events
                if event.get("sessionId") == self.session
                and (event["method"] == "Runtime.exceptionThrown"
                     or event["method"] == "Log.entryAdded"
                     and event["params"]["entry"]["level"] == "error"
                     and "status of" not in event["params"]["entry"]["text"])]
