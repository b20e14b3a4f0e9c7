"""What the browser tests share: one window, put back into its first state before each test."""

from __future__ import annotations

import collections.abc
import contextlib
import pathlib

from fake_server import Fake
from harness import Stet
from webdriver import Browser, Driver


class Context:
    def __init__(self, driver: Driver, stet: Stet | None, model: str, folder: pathlib.Path, shots: pathlib.Path | None):
        self.driver, self.stet, self.model, self.folder, self.shots = driver, stet, model, folder, shots
        self.browser = Browser(driver)

    def fresh(self) -> None:
        self.browser.open("about:blank")
        self.browser.size(1280, 900)
        self.browser.media(prefers_color_scheme="light", prefers_reduced_motion="no-preference")

    def shot(self, name: str) -> None:
        """A picture for people, where --screenshots asks for them."""
        if self.shots:
            self.browser.screenshot(self.shots / f"{name}.png")

    @contextlib.contextmanager
    def fake(self) -> collections.abc.Iterator[Fake]:
        fake = Fake()
        try:
            yield fake
        finally:
            self.browser.open("about:blank")
            fake.stop()
