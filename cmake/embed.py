#!/usr/bin/env python3
"""embed.py HEADER SOURCE FILE...: files as constants of a C++ translation unit (cmake/embed.cmake)."""

import pathlib
import re
import sys


def constant_name(path: pathlib.Path) -> str:
    return "k" + "".join(word.capitalize() for word in re.split(r"[^A-Za-z0-9]+", path.stem) if word)


def main() -> None:
    header, source, files = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), [pathlib.Path(f) for f in sys.argv[3:]]
    header.parent.mkdir(parents=True, exist_ok=True)
    declarations, definitions = [], []
    for path in files:
        data = path.read_bytes()
        name = constant_name(path)
        declarations.append(f"extern const std::string_view {name};  // {path.name}, {len(data)} bytes")
        rows = [", ".join(f"0x{b:02x}" for b in data[i : i + 24]) for i in range(0, len(data), 24)]
        body = ",\n".join(rows) or "0"
        definitions.append(f"static const unsigned char {name}Bytes[] = {{\n{body}\n}};\n"
                           f"const std::string_view {name}(reinterpret_cast<const char*>({name}Bytes), {len(data)});")
    header.write_text("#pragma once\n\n#include <string_view>\n\nnamespace stet::embedded {\n" + "\n".join(declarations) + "\n}\n")
    source.write_text(f'#include "embedded/{header.name}"\n\nnamespace stet::embedded {{\n' + "\n\n".join(definitions) + "\n}\n")


if __name__ == "__main__":
    main()
