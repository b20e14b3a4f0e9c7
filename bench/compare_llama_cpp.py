#!/usr/bin/env python3
"""Paired comparison of two engines on one model file: A-B-B-A rounds, medians of ratios.

An arm is a command that measures one point in a fresh process and prints, as its last line, one JSON object
  {"decode_tokens_per_second": number or null, "prefill_tokens_per_second": number or null}
Placeholders in a command: {model} {threads} {context} {prompt}; {context} is the number of tokens before the first
decoded one, {prompt} the length of the timed prompt.

  python bench/compare_llama_cpp.py MODEL.gguf --b 'build/stet-bench {model} --threads {threads} ...'
  python bench/compare_llama_cpp.py MODEL.gguf            A/A: llama.cpp against itself, which states the noise floor

Each round runs A B B A and gives two ratios B/A (first with second run, fourth with third), so a drift that is linear
in time cancels in their mean. The table shows the medians of both arms, the median of the ratios, its range and the
smallest effect that this many pairs could show: half the width of the distribution-free interval for the median that
covers at least 95 % (order statistics of the ratios; the whole range where there are too few pairs for that).
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys

from order_statistics import median_interval  # of this folder, which Python looks into first

HERE = os.path.dirname(os.path.abspath(__file__))
LLAMA_CPP = (
    f"{shlex.quote(sys.executable)} {shlex.quote(os.path.join(HERE, 'bench_llama_cpp.py'))} "
    "{model} --arm --threads {threads} --contexts {context} --prompts {prompt}"
)
METRICS = {"decode": "decode_tokens_per_second", "prefill": "prefill_tokens_per_second"}


def run_arm(command: str, fields: dict, timeout: float) -> dict:
    """One measurement in a fresh process; exits with the command and its output when it fails."""
    words = [word.format(**fields) for word in shlex.split(command)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
    lines = done.stdout.strip().splitlines()
    try:
        if done.returncode != 0:
            raise ValueError(f"exit code {done.returncode}")
        result = json.loads(lines[-1])
        return {name: result[key] for name, key in METRICS.items()}
    except (ValueError, KeyError, IndexError) as error:
        sys.exit(f"arm failed ({error!r}): {shlex.join(words)}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")


def summarise(samples: dict[str, list[float]]) -> dict:
    """Medians of both arms and of the paired ratios B/A."""
    ratios = [b / a for a, b in zip(samples["a"], samples["b"])]
    low, high, covers = median_interval(ratios)
    return {
        "a_median": statistics.median(samples["a"]),
        "b_median": statistics.median(samples["b"]),
        "ratio_median": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "interval": [low, high],
        "interval_covers_95_percent": covers,
        "smallest_effect": (high - low) / 2,
        "ratios": ratios,
    }


def measure_point(args: argparse.Namespace, context: int, prompt: int) -> dict:
    fields = {"model": args.model, "threads": args.threads, "context": context, "prompt": prompt}
    samples = {name: {"a": [], "b": []} for name in METRICS}
    for round_index in range(args.rounds):
        a1 = run_arm(args.a, fields, args.timeout)
        b1 = run_arm(args.b, fields, args.timeout)
        b2 = run_arm(args.b, fields, args.timeout)
        a2 = run_arm(args.a, fields, args.timeout)
        for name in METRICS:
            for a, b in ((a1[name], b1[name]), (a2[name], b2[name])):
                if a is not None and b is not None:
                    samples[name]["a"].append(a)
                    samples[name]["b"].append(b)
        print(f"context {context}, prompt {prompt}: round {round_index + 1} of {args.rounds}", file=sys.stderr)
    return {name: summarise(arms) for name, arms in samples.items() if arms["a"]}


def table(rows: list[tuple[str, dict]], args: argparse.Namespace) -> str:
    lines = [
        f"| {args.threads} threads | {args.a_name} tokens/s | {args.b_name} tokens/s | ratio, median | range "
        "| smallest effect |",
        "| --- | ---: | ---: | ---: | --- | ---: |",
    ]
    for label, row in rows:
        note = "" if row["interval_covers_95_percent"] else " (range)"
        lines.append(
            f"| {label} | {row['a_median']:.1f} | {row['b_median']:.1f} | {row['ratio_median']:.3f} "
            f"| {row['ratio_min']:.3f} .. {row['ratio_max']:.3f} | {row['smallest_effect']:.3f}{note} |"
        )
    return "\n".join(lines)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--a", default=LLAMA_CPP, help="command of arm A (default: llama.cpp)")
    parser.add_argument("--b", default=LLAMA_CPP, help="command of arm B (default: llama.cpp, an A/A run)")
    parser.add_argument("--a-name", default="llama.cpp")
    parser.add_argument("--b-name", default="B")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--contexts", type=numbers, default=[100, 2048, 8192])
    parser.add_argument("--prompts", type=numbers, default=[128, 512], help="measured beside the contexts, in turn")
    parser.add_argument("--rounds", type=int, default=4, help="A-B-B-A rounds; each gives two ratios")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one process")
    parser.add_argument("--json", help="also write everything measured to this file")
    args = parser.parse_args()
    if not os.path.isfile(args.model) and not args.model.startswith("synth:"):
        sys.exit(f"no such file: {args.model}")
    if not args.contexts or not args.prompts:
        sys.exit("--contexts and --prompts need at least one number each")

    load_before = os.getloadavg()
    rows, points = [], []
    prefill_seen: set[int] = set()
    for index in range(max(len(args.contexts), len(args.prompts))):
        # One process measures a context and a prompt; the shorter list repeats its last entry (shown once).
        context = args.contexts[min(index, len(args.contexts) - 1)]
        prompt = args.prompts[min(index, len(args.prompts) - 1)]
        result = measure_point(args, context, prompt)
        points.append({"context": context, "prompt": prompt, **result})
        if "decode" in result and index < len(args.contexts):
            rows.append((f"decode after {context}", result["decode"]))
        if "prefill" in result and prompt not in prefill_seen:
            prefill_seen.add(prompt)
            rows.append((f"prompt of {prompt}", result["prefill"]))
    load_after = os.getloadavg()

    print(table(rows, args))
    print(f"\n{args.rounds} rounds of A-B-B-A; load average before {load_before[0]:.2f}, after {load_after[0]:.2f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            everything = {"a": args.a, "b": args.b, "model": os.path.basename(args.model), "threads": args.threads}
            everything.update(points=points, load_average_before=load_before, load_average_after=load_after)
            json.dump(everything, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
