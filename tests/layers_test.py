#!/usr/bin/env python3
"""Rules about the source tree that no compiler checks.

  python3 tests/layers_test.py [--build BUILD_FOLDER]

- includes point one way: a layer sees itself and what CMakeLists.txt lets it link, directly or not;
- the environment is read in src/base/xdg.cpp, and in src/cli/terminal.cpp for NO_COLOR, and nowhere else;
- files have at most 500 lines, functions at most 60 (kernels 150);
- objects of src/kernels/isa define nothing weak outside the namespace of their instruction set, and export only their table: of
  two weak copies the linker keeps one, and code for plain x86-64 must never get the one with AVX instructions.

The last rule needs the build folder. Ends with 'N passed, N failed'. Standard library only.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (".h", ".cpp", ".cu", ".cuh", ".def", ".inc")
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_KERNEL_LINES = 500, 60, 150
ISAS = ("avx2", "avxvnni", "vl256", "avx512")
MAY_READ_ENVIRONMENT = {"src/base/xdg.cpp", "src/cli/terminal.cpp"}


def code_files(*folders: str) -> list[pathlib.Path]:
    found = [p for folder in folders for p in (ROOT / folder).rglob("*") if p.suffix in SOURCES]
    return sorted(p for p in found if p.is_file())


def name_of(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).as_posix()


def visible_layers() -> dict[str, set[str]]:
    """Layer -> itself and every layer it may include from, as CMakeLists.txt links them."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    direct = {}
    for name, depends in re.findall(r"^stet_layer\((\w+)\s+DEPENDS\s+([^)]*)\)", text, re.M):
        direct[name] = set(re.findall(r"\bstet_(\w+)", depends))
    layers: dict[str, set[str]] = {}
    for name in direct:  # CMake links only what stands above, so one pass is enough
        layers[name] = {name}.union(*(layers[d] for d in direct[name]))
    # The public headers belong to the engine.
    for seen in layers.values():
        if "engine" in seen:
            seen.add("stet")
    layers["stet"] = layers["engine"]
    return layers


def include_faults(layers: dict[str, set[str]]) -> list[str]:
    faults = []
    for path in code_files("src", "include"):
        layer = path.relative_to(ROOT).parts[1]
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            match = re.match(r'\s*#\s*include\s+"([^"/]+)/', line)
            if match and match[1] in layers and match[1] not in layers[layer]:
                faults.append(f"{name_of(path)}:{number}: layer {layer} must not include from {match[1]}")
            shares_a_test = path.name.endswith("_test.cpp") and '"../tests/' in line  # fuzzers run in the test programs too
            if re.match(r'\s*#\s*include\s+"(\.\.?/|[^"/]+")', line) and not shares_a_test:
                faults.append(f"{name_of(path)}:{number}: includes are relative to src/")
    return faults


def environment_faults() -> list[str]:
    faults = []
    for path in code_files("src", "include"):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if re.search(r"\b(secure_)?getenv\s*\(|\benviron\b", line.split("//")[0]) and name_of(path) not in MAY_READ_ENVIRONMENT:
                faults.append(f"{name_of(path)}:{number}: reads the environment; Options is the only switch")
    terminal = ROOT / "src/cli/terminal.cpp"
    if terminal.exists():
        names = re.findall(r"getenv\s*\(([^)]*)\)", terminal.read_text(encoding="utf-8"))
        faults += [f"src/cli/terminal.cpp: reads {n} from the environment" for n in names if n != '"NO_COLOR"']
    return faults


def file_faults() -> list[str]:
    faults = []
    for path in code_files("src", "include", "bench", "tests") + sorted((ROOT / "tests").rglob("*.py")):
        if path.suffix == ".inc":
            continue  # data
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > MAX_FILE_LINES:
            faults.append(f"{name_of(path)}: {lines} lines; {MAX_FILE_LINES} are allowed")
    return faults


def functions_of(text: str) -> list[tuple[int, int]]:
    """(first line, lines) of what looks like a function: a line that ends a parameter list and opens a block."""
    found, depth, start = [], 0, None
    for number, line in enumerate(text.split("\n"), 1):
        code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'|//.*', "", line)
        keyword = re.match(r"\s*(\}\s*)?(if|for|while|switch|else|do|catch|namespace|struct|class)\b", code)
        if start is None and depth <= 3 and re.search(r"\)[^;]*\{\s*$", code) and not keyword:
            start = (number, depth)
        depth += code.count("{") - code.count("}")
        if start and depth <= start[1]:
            found.append((start[0], number - start[0] + 1))
            start = None
    return found


def function_faults() -> list[str]:
    faults = []
    for path in code_files("src", "include", "bench", "tests"):
        if path.suffix == ".inc":
            continue
        limit = MAX_KERNEL_LINES if name_of(path).startswith("src/kernels/") else MAX_FUNCTION_LINES
        for line, lines in functions_of(path.read_text(encoding="utf-8")):
            if lines > limit:
                faults.append(f"{name_of(path)}:{line}: a function of {lines} lines; {limit} are allowed")
    return faults


def symbol_faults(objects: list[pathlib.Path]) -> list[str]:
    faults = []
    for path in objects:
        isa = re.search(r"kernels_(\w+)\.cpp", path.name)[1]
        listing = subprocess.run(["nm", "-C", "--defined-only", str(path)], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            match = re.match(r"[0-9a-f]*\s+([A-Za-z])\s+(.*)", line)
            if not match:
                continue
            kind, name = match.groups()
            own = f"stet::{isa}::" in name
            if kind in "WVuwv" and not own and not name.startswith("DW.ref."):
                faults.append(f"{path.name}: weak symbol of no instruction set: {name}")
            if kind in "TDBR" and name != f"stet::kernels_{isa}()" and not own:
                faults.append(f"{path.name}: exports {name}")
    return faults


def isa_objects(build: pathlib.Path) -> list[pathlib.Path]:
    return sorted(p for isa in ISAS for p in (build / "CMakeFiles/stet_kernels.dir").rglob(f"kernels_{isa}.cpp.o"))


def self_faults(layers: dict[str, set[str]]) -> list[str]:
    """The checks themselves: each must be able to fail."""
    faults = []
    if "cli" in layers["base"] or "base" not in layers["cli"] or "models" in layers["replay"]:
        faults.append(f"the layers are not read as CMakeLists.txt has them: {layers}")
    long_function = "void f() {\n" + "  g();\n" * 70 + "}\n"
    if functions_of(long_function) != [(1, 72)] or functions_of("struct S {\n  int x;\n};\n"):
        faults.append("the lengths of functions are not counted right")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, help="build folder, for the rule about symbols")
    build = parser.parse_args().build
    layers = visible_layers()
    checks = {
        "the checks can fail": self_faults(layers),
        "includes point one way": include_faults(layers),
        "the environment is read in two places": environment_faults(),
        "files are short": file_faults(),
        "functions are short": function_faults(),
    }
    if build:
        objects = isa_objects(build)
        checks["instruction sets keep to themselves"] = (
            symbol_faults(objects) if len(objects) == len(ISAS) else [f"{build}: {len(objects)} of {len(ISAS)} kernel objects found"]
        )
    for name, faults in checks.items():
        print(f"{'FAILED' if faults else 'ok'}  {name}")
        for fault in faults:
            print(f"        {fault}")
    failed = sum(1 for faults in checks.values() if faults)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
