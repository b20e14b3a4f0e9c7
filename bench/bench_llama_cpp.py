#!/usr/bin/env python3
"""Measures llama.cpp on one GGUF file, through llama-cpp-python's ctypes layer.

Figures:
  decode   tokens per second at width 1 after C tokens of context (one llama_decode a token, logits fetched, no sampler)
  prompt   tokens per second of one prompt of P tokens (logits of the last position only)

Every rate is 1 / median over the repetitions; quartiles stand beside it. The calls time llama.cpp itself: Python adds
about ten microseconds a call. Weights are repacked as the build decides (llama.cpp's default); KV type is f16.

  python bench/bench_llama_cpp.py MODEL.gguf                       the whole table as JSON
  python bench/bench_llama_cpp.py MODEL.gguf --arm --threads 2 --contexts 100 --prompts 128
                                                             one point, in the form that `stet compare measure:...` reads

Needs: pip install llama-cpp-python (it compiles llama.cpp for this machine).
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import platform
import statistics
import sys
import time

import llama_cpp

KV_TYPES = {"f32": llama_cpp.GGML_TYPE_F32, "f16": llama_cpp.GGML_TYPE_F16}
FLASH = {"auto": -1, "off": 0, "on": 1}
# Lines of llama.cpp's log that say which buffers and kernels it chose.
LOG_MARKS = ("buffer size", "repack", "flash_attn", "Flash", "graph splits")

log_lines: list[str] = []


@llama_cpp.llama_log_callback
def keep_log(_level, text, _user):
    line = text.decode("utf-8", "replace").strip()
    if any(mark in line for mark in LOG_MARKS):
        log_lines.append(line)


def ggml_string(function: str) -> str:
    """A `const char *f(void)` of ggml-base, or "unknown" where the build lacks it."""
    folder = os.path.join(os.path.dirname(llama_cpp.__file__), "lib")
    for name in ("libggml-base.so", "libggml-base.dylib"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            try:
                entry = getattr(ctypes.CDLL(path), function)
            except AttributeError:
                return "unknown"
            entry.restype = ctypes.c_char_p
            return entry().decode()
    return "unknown"


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            return next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def identity(model: str) -> dict:
    digest = hashlib.sha256()
    with open(model, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return {
        "llama_cpp_python": llama_cpp.__version__,
        "ggml_version": ggml_string("ggml_version"),
        "ggml_commit": ggml_string("ggml_commit"),
        "system_info": llama_cpp.llama_print_system_info().decode(),
        "cpu": cpu_name(),
        "logical_cpus": os.cpu_count(),
        "affinity": len(os.sched_getaffinity(0)),
        "model": os.path.basename(model),
        "model_bytes": os.path.getsize(model),
        "model_sha256": digest.hexdigest(),
    }


def spread(seconds: list[float], tokens: int) -> dict:
    """Rates of `tokens` tokens that took each of `seconds`: the median and the quartiles."""
    ordered = sorted(seconds)
    quartile = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return {
        "tokens_per_second": tokens / statistics.median(ordered),
        "lower_quartile": tokens / quartile(0.75),
        "upper_quartile": tokens / quartile(0.25),
        "samples": len(ordered),
    }


class Engine:
    """One model and one context of llama.cpp, driven by its C interface."""

    def __init__(self, path: str, n_ctx: int, threads: int, kv: str, flash: str, repack: bool):
        model_params = llama_cpp.llama_model_default_params()
        model_params.use_extra_bufts = repack
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), model_params)
        if not self.model:
            sys.exit(f"llama.cpp could not load {path}")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_batch = 2048
        params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = KV_TYPES[kv]
        params.flash_attn_type = FLASH[flash]
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context:
            sys.exit(f"llama.cpp could not make a context of {n_ctx} tokens")
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.state = 12345

    def tokens(self, count: int) -> ctypes.Array:
        """Pseudo-random ids (a fixed generator), so that no run depends on a text."""
        ids = (llama_cpp.llama_token * count)()
        for i in range(count):
            self.state = (self.state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
            ids[i] = (self.state >> 33) % self.vocab
        return ids

    def decode(self, ids: ctypes.Array, count: int) -> float:
        """Runs `count` ids after what the cache holds and returns the seconds, the last logits fetched."""
        begin = time.perf_counter()
        status = llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(ids, count))
        logits = llama_cpp.llama_get_logits_ith(self.context, -1)
        llama_cpp.llama_synchronize(self.context)
        seconds = time.perf_counter() - begin
        if status != 0 or not logits:
            sys.exit(f"llama_decode of {count} tokens failed with {status}")
        return seconds

    def fill(self, count: int) -> None:
        llama_cpp.llama_memory_clear(self.memory, True)
        ids = self.tokens(count)
        for begin in range(0, count, 2048):
            part = (llama_cpp.llama_token * min(2048, count - begin))(*ids[begin : begin + 2048])
            self.decode(part, len(part))

    def decode_rate(self, context: int, steps: int, repeat: int) -> dict:
        """Tokens/s at width 1 after `context` tokens; the cache is cut back to them between repetitions."""
        self.fill(context)
        seconds = []
        for round_index in range(repeat + 1):
            llama_cpp.llama_memory_seq_rm(self.memory, 0, context, -1)
            for _ in range(steps):
                elapsed = self.decode(self.tokens(1), 1)
                if round_index > 0:  # the first round warms caches and thread pool
                    seconds.append(elapsed)
        return spread(seconds, 1)

    def prompt_rate(self, count: int, repeat: int) -> dict:
        seconds = []
        for round_index in range(repeat + 1):
            llama_cpp.llama_memory_clear(self.memory, True)
            elapsed = self.decode(self.tokens(count), count)
            if round_index > 0:
                seconds.append(elapsed)
        return spread(seconds, count)

    def close(self) -> None:
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def measure(args: argparse.Namespace) -> dict:
    n_ctx = max([0, *args.contexts]) + args.steps + 8
    n_ctx = max([n_ctx, *args.prompts])
    results = []
    for threads in args.threads:
        engine = Engine(args.model, n_ctx, threads, args.kv, args.flash, not args.no_repack)
        row: dict = {"threads": threads, "decode": {}, "prompt": {}}
        for prompt in args.prompts:
            row["prompt"][str(prompt)] = engine.prompt_rate(prompt, args.repeat)
        for context in args.contexts:
            row["decode"][str(context)] = engine.decode_rate(context, args.steps, args.repeat)
        engine.close()
        results.append(row)
    return {"results": results}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--contexts", type=numbers, default=[100, 2048, 8192], help="decode after so many tokens")
    parser.add_argument("--prompts", type=numbers, default=[128, 512])
    parser.add_argument("--steps", type=int, default=32, help="decoded tokens per repetition")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--kv", choices=KV_TYPES, default="f16")
    parser.add_argument("--flash", choices=FLASH, default="auto")
    parser.add_argument("--no-repack", action="store_true", help="keep the file's layout (llama.cpp's default repacks)")
    parser.add_argument("--arm", action="store_true", help="print one flat object for stet compare")
    args = parser.parse_args()
    if not os.path.isfile(args.model):
        sys.exit(f"no such file: {args.model}")

    llama_cpp.llama_log_set(keep_log, None)
    llama_cpp.llama_backend_init()
    load_before = os.getloadavg()
    report = measure(args)
    if args.arm:
        row = report["results"][0]
        first = lambda table: next(iter(table.values()))["tokens_per_second"] if table else None
        flat = {"decode_tokens_per_second": first(row["decode"]), "prefill_tokens_per_second": first(row["prompt"])}
        print(json.dumps(flat))
        return
    best = {
        kind: {
            size: max(report["results"], key=lambda row: row[kind][size]["tokens_per_second"])["threads"]
            for size in report["results"][0][kind]
        }
        for kind in ("decode", "prompt")
    }
    report = {
        **identity(args.model),
        "kv": args.kv,
        "flash_attention": args.flash,
        "repack": not args.no_repack,
        "log": sorted(set(log_lines)),
        "load_average_before": load_before,
        "load_average_after": os.getloadavg(),
        **report,
        "best_threads": best,
    }
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
