#!/usr/bin/env python3
"""The table of figures in README.md, from committed packets.

  python3 scripts/readme_figures.py --write            writes the table
  python3 scripts/readme_figures.py --check PROGRAM    every packet named verifies with PROGRAM (build/stet), the page beside it is the
                                                       report that PROGRAM writes, and the table is what --write would write; ends
                                                       with 'N passed, N failed'

docs/figures.json lists the rows: what the figure is, its value as a template, and the command that made it. In a template
{PACKET:POINTER} is the value at a JSON pointer of packets/PACKET/results.json, and {PACKET:POINTER|FORMAT} formats it as Python does.
Standard library only.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
README, ROWS = ROOT / "README.md", ROOT / "docs/figures.json"
BEGIN, END = "<!-- figures: scripts/readme_figures.py --write -->\n", "<!-- /figures -->\n"
REFERENCE = re.compile(r"\{([\w.-]+):(/[^|}]*)(?:\|([^}]*))?\}")


def value_at(document: object, pointer: str) -> object:
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


def filled(template: str, packets: dict[str, object]) -> str:
    def value(match: re.Match) -> str:
        packet, pointer, form = match.groups()
        if packet not in packets:
            packets[packet] = json.loads((ROOT / "packets" / packet / "results.json").read_text(encoding="utf-8"))
        return format(value_at(packets[packet], pointer), form or "")

    return REFERENCE.sub(value, template)


def table() -> tuple[str, list[str]]:
    packets: dict[str, object] = {}
    lines = ["| figure | value | command | packet |\n", "| --- | --- | --- | --- |\n"]
    for row in json.loads(ROWS.read_text(encoding="utf-8")):
        names = sorted({m[1] for m in REFERENCE.finditer(row["value"])})
        links = ", ".join(f"[{n}](packets/{n})" for n in names)
        lines.append(f"| {row['figure']} | {filled(row['value'], packets)} | `{row['command']}` | {links} |\n")
    return "".join(lines), sorted(packets)


def parts_of_readme() -> tuple[str, str, str]:
    text = README.read_text(encoding="utf-8")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:begin], text[begin:end], text[end:]


def fault_of_report(program: str, name: str) -> str:
    """The report beside a packet is what the program writes of it today, byte by byte."""
    page = ROOT / "packets" / f"{name}.html"
    done = subprocess.run([program, "report", str(ROOT / "packets" / name)], capture_output=True, check=False)
    if done.returncode:
        return f"no report of packets/{name}: {done.stderr.decode('utf-8', 'replace').strip()}"
    if not page.exists() or page.read_bytes() != done.stdout:
        return f"packets/{name}.html is not the report of its packet: stet report packets/{name} --out packets/{name}.html"
    return ""


def check(program: str) -> int:
    failed = passed = 0

    def result(fault: str) -> None:
        nonlocal failed, passed
        failed += bool(fault)
        passed += not fault
        if fault:
            print(f"FAILED {fault}")

    wanted, packets = table()
    for name in packets:
        done = subprocess.run([program, "verify", str(ROOT / "packets" / name)], capture_output=True, text=True, check=False)
        result(f"packets/{name}: {done.stderr.strip()}" if done.returncode else "")
        result(fault_of_report(program, name))
    result("" if parts_of_readme()[1] == wanted else "the figures of README.md are not those of the packets: scripts/readme_figures.py --write")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def main() -> int:
    if sys.argv[1:] == ["--write"]:
        before, _, after = parts_of_readme()
        README.write_text(before + table()[0] + after, encoding="utf-8")
        return 0
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        return check(sys.argv[2])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
