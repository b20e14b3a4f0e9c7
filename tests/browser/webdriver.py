"""A small WebDriver client for Chromium: what the tests need of it and no more. Standard library only."""

from __future__ import annotations

import base64
import http.client
import json
import pathlib
import re
import shutil
import subprocess
import time

KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Shift": "\ue008", "Space": "\ue00d", "Backspace": "\ue003"}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class BrowserError(Exception):
    pass


class Driver:
    """chromedriver on a port of its own choice."""

    def __init__(self, log: pathlib.Path):
        program = shutil.which("chromedriver")
        if not program or not (shutil.which("chromium") or shutil.which("google-chrome")):
            raise BrowserError("chromium and chromedriver are needed (Debian: chromium, chromium-driver)")
        self.process = subprocess.Popen([program, "--port=0", f"--log-path={log}"], stdout=subprocess.PIPE, text=True)
        self.port = 0
        for line in self.process.stdout:
            match = re.search(r"started successfully on port (\d+)", line)
            if match:
                self.port = int(match[1])
                break
        if not self.port:
            raise BrowserError("chromedriver did not start")

    def call(self, method: str, path: str, body: dict | None = None, timeout: float = 600) -> object:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise BrowserError(f"{path}: {value['error']}: {value.get('message', '')[:400]}")
        return value

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)


class Browser:
    """One window. `dark`, `width`, ... can be changed while it is open."""

    def __init__(self, driver: Driver, width: int = 1280, height: int = 900):
        options = {
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--disable-extensions", "--disable-background-networking", "--no-first-run", "--no-proxy-server", f"--window-size={width},{height}"],
        }  # fmt: skip
        binary = shutil.which("chromium") or shutil.which("google-chrome")
        capabilities = {
            "browserName": "chrome", "goog:chromeOptions": {**options, "binary": binary},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}, "unhandledPromptBehavior": "dismiss",
        }  # fmt: skip
        self.driver = driver
        answer = driver.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.path = f"/session/{answer['sessionId']}"
        self._call("POST", "/timeouts", {"script": 300000, "pageLoad": 120000})
        self.console: list[dict] = []
        self.network: list[dict] = []
        self.cdp("Network.enable")
        self.cdp("Accessibility.enable")
        self.size(width, height)

    def _call(self, method: str, path: str, body: dict | None = None) -> object:
        return self.driver.call(method, self.path + path, body)

    def close(self) -> None:
        self.driver.call("DELETE", self.path)

    def cdp(self, command: str, **params: object) -> dict:
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def size(self, width: int, height: int, scale: float = 1.0, mobile: bool = False) -> None:
        """The viewport in CSS pixels. Zooming to 200 % is half the width and height at a scale of 2."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def media(self, **features: str) -> None:
        """prefers_color_scheme="dark", prefers_reduced_motion="reduce", forced_colors="active"."""
        values = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.cdp("Emulation.setEmulatedMedia", features=values)

    def open(self, url: str) -> None:
        self.logs()
        self.console, self.network = [], []
        self._call("POST", "/url", {"url": url})

    def run(self, script: str, *args: object) -> object:
        return self._call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def run_async(self, script: str, *args: object) -> object:
        """The script calls its last argument with the result."""
        return self._call("POST", "/execute/async", {"script": script, "args": list(args)})

    def text(self, selector: str) -> str:
        return self.run("const e = document.querySelector(arguments[0]); return e ? e.innerText : '';", selector)

    def texts(self, selector: str) -> list[str]:
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText);", selector)

    def shown(self, selector: str) -> bool:
        return self.run("const e = document.querySelector(arguments[0]); return !!e && e.checkVisibility();", selector)

    def focused(self) -> str:
        return self.run("return document.activeElement.id || document.activeElement.tagName.toLowerCase();")

    def keys(self, *keys: str) -> None:
        """Presses keys on whatever has the focus: names of KEYS, "Shift+Enter", or a text to type."""
        actions = []
        for key in keys:
            held = key.split("+")[:-1] if key.startswith("Shift+") else []
            last = key.split("+")[-1] if held else key
            typed = [KEYS[last]] if last in KEYS else list(last)
            actions += [{"type": "keyDown", "value": KEYS[h]} for h in held]
            for letter in typed:
                actions += [{"type": "keyDown", "value": letter}, {"type": "keyUp", "value": letter}]
            actions += [{"type": "keyUp", "value": KEYS[h]} for h in held]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def click(self, selector: str) -> None:
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{element[ELEMENT]}/click", {})

    def wait(self, what: str, condition: str, *args: object, seconds: float = 120) -> object:
        """Until a script returns something true."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(condition, *args)
            if value:
                return value
            if time.monotonic() > end:
                raise BrowserError(f"{what}: not within {seconds} s; the page says {self.text('body')[-700:]!r}")
            time.sleep(0.05)

    def logs(self) -> None:
        """Collects what the console and the network said since the last call."""
        self.console += self._call("POST", "/se/log", {"type": "browser"})
        for entry in self._call("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"].startswith("Network."):
                self.network.append(message)

    def requested(self) -> list[str]:
        self.logs()
        return [m["params"]["request"]["url"] for m in self.network if m["method"] == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """What the console shows as warning or error, violations of the content policy included."""
        self.logs()
        return [e["message"] for e in self.console if e["level"] in ("WARNING", "SEVERE")]

    def screenshot(self, path: pathlib.Path, full: bool = False) -> None:
        picture = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        path.write_bytes(base64.b64decode(picture["data"]))

    def accessible(self) -> list[tuple[str, str]]:
        """(role, name) of everything in the accessibility tree that is not ignored, in order."""
        nodes = self.cdp("Accessibility.getFullAXTree")["nodes"]
        return [(n.get("role", {}).get("value", ""), n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
