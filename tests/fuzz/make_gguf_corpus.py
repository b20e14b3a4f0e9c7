#!/usr/bin/env python3
"""Writes the seed corpus of the GGUF fuzzer, small files that reach every branch of the reader, into tests/fuzz/corpus/gguf.

Needs nothing but the standard library: it is a second, independent writer. Run from the repository root.
"""
import pathlib
import struct

FOLDER = pathlib.Path("tests/fuzz/corpus/gguf")


def s(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def kv(key, kind, payload):
    return s(key) + struct.pack("<I", kind) + payload


def tensor(name, shape, kind, offset):
    return s(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, offset)


def gguf(values, tensors, data=b"", version=3, alignment=32):
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values)) + b"".join(values) + b"".join(tensors)
    return out + bytes(-len(out) % alignment) + data


def payload(n):
    return bytes((7 * i + 3) & 255 for i in range(n))


U32, STRING, ARRAY = 4, 8, 9
ARCH = kv("general.architecture", STRING, s("llama"))
scalars = [kv(f"k{kind}", kind, struct.pack(code, value)) for kind, code, value in [
    (0, "<B", 1), (1, "<b", -1), (2, "<H", 2), (3, "<h", -2), (4, "<I", 3), (5, "<i", -3), (6, "<f", 0.5), (7, "<B", 1),
    (10, "<Q", 4), (11, "<q", -4), (12, "<d", 0.25)]]
arrays = [kv("tokens", ARRAY, struct.pack("<IQ", STRING, 3) + s("a") + s("") + s(b"\xff\x1b[2J")),
          kv("types", ARRAY, struct.pack("<IQ3i", 5, 3, 1, 3, 6)),
          kv("flags", ARRAY, struct.pack("<IQ2B", 7, 2, 0, 1)),
          kv("nested", ARRAY, struct.pack("<IQ", ARRAY, 2) + struct.pack("<IQ", 0, 0) + struct.pack("<IQ", STRING, 1) + s("x"))]
formats = [("F32", 0, [4, 2], 32), ("F16", 1, [8], 16), ("BF16", 30, [3], 6), ("Q4_0", 2, [32, 2], 36), ("Q4_1", 3, [64], 40),
           ("Q8_0", 8, [32, 1, 2], 68), ("Q6_K", 14, [256, 1, 1, 1], 210)]


def place(table, alignment):
    infos, offset = [], 0
    for name, kind, shape, size in table:
        infos.append(tensor(name, shape, kind, offset))
        offset += size + -size % alignment
    return infos, payload(offset)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    infos, data = place(formats, 32)
    wide, wide_data = place(formats[:2], 64)
    files = {
        "empty_model": gguf([], []),
        "every_format": gguf([ARCH], infos, data),
        "version_2": gguf([ARCH], infos, data, version=2),
        "values": gguf(scalars + arrays, []),
        "alignment_64": gguf([kv("general.alignment", U32, struct.pack("<I", 64))], wide, wide_data, alignment=64),
        "unsupported_type": gguf([], [tensor("q4k", [256], 12, 0), tensor("odd", [7], 77, 160)], payload(192)),
        "split_part": gguf([kv("split.no", 2, struct.pack("<H", 0)), kv("split.count", 2, struct.pack("<H", 2)),
                            kv("split.tensors.count", 5, struct.pack("<i", 1))], [tensor("t", [4], 0, 0)], payload(16)),
        "version_1": b"GGUF" + struct.pack("<III", 1, 0, 0),
        "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "ggjt": b"tjgg" + struct.pack("<I", 3),
        "huge_counts": b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 1 << 62),
        "overlap": gguf([], [tensor("a", [16], 0, 0), tensor("b", [4], 0, 32)], payload(64)),
    }
    for name, content in files.items():
        (FOLDER / f"{name}.gguf").write_bytes(content)


main()
