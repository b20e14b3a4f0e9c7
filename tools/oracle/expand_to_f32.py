#!/usr/bin/env python3
"""Writes a GGUF file again with every tensor dequantised to F32; all metadata is kept but general.file_type.

  python tools/oracle/expand_to_f32.py IN.gguf OUT.gguf [--add-no-vocab]

An engine that runs the result does the float arithmetic on exactly the weights of the input. --add-no-vocab adds
`tokenizer.ggml.model = none` where a file has no tokenizer key, because llama.cpp refuses such files.
"""

from __future__ import annotations

import argparse

import gguf
import numpy as np
from gguf.quants import dequantize

SKIPPED = {"GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture", "general.file_type",
           "general.quantization_version"}  # fmt: skip


def expand(source: str, target: str, add_no_vocab: bool = False) -> None:
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.get_field("general.architecture").contents())
    for key, field in reader.fields.items():
        if key in SKIPPED:
            continue
        kind = field.types[0]
        sub_type = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, sub_type)
    writer.add_file_type(0)
    if add_no_vocab and reader.get_field("tokenizer.ggml.model") is None:
        writer.add_tokenizer_model("none")
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--add-no-vocab", action="store_true")
    args = parser.parse_args()
    expand(args.source, args.target, args.add_no_vocab)


if __name__ == "__main__":
    main()
