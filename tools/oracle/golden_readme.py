"""The table in the README of a folder of golden models."""

from __future__ import annotations

import os

BEGIN, END = "<!-- table -->\n", "<!-- end of table -->"


def write_table(folder: str, lines: list[str]) -> None:
    """Puts the lines between the two marks of folder/README.md; the prose around them stays. Without a README: nothing."""
    path = os.path.join(folder, "README.md")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        before, _, rest = file.read().partition(BEGIN)
    after = rest.partition(END)[2]
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n".join(lines) + "\n" + END + after)
