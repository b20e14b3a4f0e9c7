#!/usr/bin/env python3
"""Holds docs/adding.md against the tree.

  python3 tests/adding_test.py [--program build/stet]

- every path that the page names exists; one with <id> in it exists for every entry of its registry, and for the toy;
- every file of the toys is named, and every line of their registries is quoted;
- the program has none of the toys in it.

Ends with 'N passed, N failed'. Standard library only.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOYS = ROOT / "tests/extend"
# Where a path with <id> gets its ids from.
REGISTRIES = {
    "formats": "formats/formats.def",
    "kernels": "kernels/kernels.def",
    "replay": "replay/row_ops.def",
    "models": "models/models.def",
    "spec": "spec/drafts.def",
}
NOT_NAMED = {"CMakeLists.txt", "extend_test.cpp"}


def entries(path: pathlib.Path) -> list[str]:
    return re.findall(r"^[A-Z_]+\(.*\)$", path.read_text(encoding="utf-8"), re.M)


def ids(path: pathlib.Path) -> list[str]:
    return [re.match(r"[A-Z_]+\((\w+)", entry)[1] for entry in entries(path)]


def named_paths(page: str) -> list[str]:
    return sorted({p for p in re.findall(r"`([^`\s]+)`", page) if re.match(r"(src|tests|docs|tools|cmake)/", p)})


def path_faults(paths: list[str]) -> list[str]:
    faults = []
    for path in paths:
        if "<id>" not in path:
            if not (ROOT / path).exists():
                faults.append(f"{path} does not exist")
            continue
        registry = REGISTRIES[path.split("/")[1]]
        for name in ids(ROOT / "src" / registry):
            candidate = ROOT / path.replace("<id>", name)
            if not candidate.exists():
                faults.append(f"{candidate.relative_to(ROOT)} does not exist, though {registry} has {name}")
        for name in ids(TOYS / "toys" / pathlib.Path(registry).name):
            candidate = TOYS / path.removeprefix("src/").replace("<id>", name)
            if not candidate.exists():
                faults.append(f"{candidate.relative_to(ROOT)} does not exist: the toy does not follow the page")
    return faults


def toy_faults(page: str, paths: list[str]) -> list[str]:
    files = [p.relative_to(ROOT).as_posix() for p in TOYS.rglob("*") if p.is_file() and p.name not in NOT_NAMED]
    faults = [f"{f} is not named" for f in files if f not in paths]
    for registry in (TOYS / "toys").glob("*.def"):
        faults += [f"the page does not quote {e}" for e in entries(registry) if f"    {e}\n" not in page]
    return faults


def program_faults(program: pathlib.Path) -> list[str]:
    data = program.read_bytes()
    return [f"{program} contains {word.decode()}" for word in (b"TOY3", b"make_draft_echo", b"describe_toy") if word in data]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", type=pathlib.Path, help="the program, which has to be free of the toys")
    program = parser.parse_args().program
    page = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    paths = named_paths(page)
    checks = {
        "the page names paths": [] if len(paths) > 20 else [f"only {len(paths)} paths found"],
        "every path exists": path_faults(paths),
        "the toys are on the page": toy_faults(page, paths),
        "a wrong path is noticed": [] if path_faults(["src/formats/<id>/nothing_<id>.h", "src/nothing.h"]) else ["it is not"],
    }
    if program and program.exists():
        checks["the program has no toys in it"] = program_faults(program)
    for name, faults in checks.items():
        print(f"{'FAILED' if faults else 'ok'}  {name}")
        for fault in faults:
            print(f"        {fault}")
    failed = sum(1 for faults in checks.values() if faults)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
