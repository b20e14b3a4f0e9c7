#!/usr/bin/env python3
"""The page and the report in a real Chromium.

  python3 tests/browser_test.py build/stet [--model MODEL] [--only NAME] [--screenshots FOLDER]

Needs chromium and chromedriver (Debian: chromium, chromium-driver). Without them every test is skipped. axe-core-python from PyPI
adds a second opinion on accessibility. Ends with 'N passed, N failed'. Standard library only.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "browser"), str(HERE / "cli")]

import look_tests  # noqa: E402
import page_tests  # noqa: E402
import report_tests  # noqa: E402
import serve_tests  # noqa: E402
from context import Context  # noqa: E402
from harness import Stet, run_tests  # noqa: E402
from webdriver import Driver  # noqa: E402


def in_fresh_window(test: object) -> object:
    def run(context: Context) -> None:
        context.fresh()
        test(context)

    run.__name__ = test.__name__
    return run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path, help="the program, such as build/stet")
    parser.add_argument("--model", default="", help="a model with a chat template, to talk to through the page")
    parser.add_argument("--only", default="", help="only the tests with this in their name")
    parser.add_argument("--screenshots", type=pathlib.Path, help="a folder for pictures")
    args = parser.parse_args()
    tests = page_tests.TESTS + look_tests.TESTS + serve_tests.TESTS + report_tests.TESTS
    if not shutil.which("chromedriver"):
        print(f"chromedriver is not installed\n0 passed, 0 failed, {len(tests)} skipped")
        return 0
    if args.screenshots:
        args.screenshots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stet-browser-") as folder:
        path = pathlib.Path(folder)
        driver = Driver(path / "chromedriver.log")
        try:
            context = Context(driver, Stet(args.program, path), args.model, path, args.screenshots)
            code = run_tests([in_fresh_window(t) for t in tests], context, args.only)
            context.browser.close()
            return code
        finally:
            driver.close()


if __name__ == "__main__":
    sys.exit(main())
