"""What each verb does when nothing is wrong."""

from __future__ import annotations

import hashlib
import json
import math
import pathlib
import struct

from harness import Stet, Terminal, check, equal

TINY = "synth:tiny:q4_0"
KEYS = {
    "model": str, "synthetic": bool, "text": str, "token_ids": list, "digest": str, "finish": str, "prompt_tokens": int,
    "cached_tokens": int, "output_tokens": int, "prefill_tokens_per_second": float, "decode_tokens_per_second": float,
    "first_token_seconds": float, "total_seconds": float, "draft": str, "draft_depth": int, "history_accelerated": bool,
    "tokens_per_cycle": float, "acceptance": list, "temperature": float, "seed": (int, type(None)), "profile": str,
    "activations": str, "kv": str, "context": int, "isa": str, "threads": int, "device": str, "device_name": str, "pack": str, "weights": str,
}  # fmt: skip


def help_and_version(stet: Stet) -> None:
    check(stet.ok("--version").out.startswith(b"stet "), "--version")
    text = stet.ok("--help").out.decode()
    verbs = [line.split()[0] for line in text.split("Verbs:\n")[1].split("\n\n")[0].splitlines()]
    check({"run", "inspect", "tokenize", "logits", "perplexity", "cache", "synth"} <= set(verbs), verbs)
    for verb in verbs:
        result = stet.ok(verb, "--help")
        check(b"--help" in result.out and result.err == "", f"{verb}: {result}")
        check(max(len(line) for line in result.out.decode().splitlines()) <= 140, f"{verb}: lines too long for a terminal")


def text_on_stdout_and_all_else_on_stderr(stet: Stet) -> None:
    result = stet.ok("run", "-m", TINY, "-p", "hello", "-n", 20)
    answer = stet.json("run", "-m", TINY, "-p", "hello", "-n", 20)
    ids = json.dumps(answer["token_ids"]).encode()
    equal(result.out, stet.ok("tokenize", "-m", TINY, "--decode", text=ids).out, "the exact bytes")
    check("context 512 tokens" in result.err and "synthetic" in result.err, result)
    check(answer["digest"][:16] in result.err, "the digest in the figures")
    quiet = stet.ok("run", "-m", TINY, "-p", "hello", "-n", 20, "-q")
    equal((quiet.out, quiet.err), (result.out, ""), "--quiet")


def json_contract(stet: Stet) -> None:
    answer = stet.json("run", "-m", TINY, "-p", "hello", "-n", 12, "--draft", "ngram", "--threads", 2, "--kv", "f32")
    equal(set(answer), set(KEYS), "keys")
    for key, kind in KEYS.items():
        value = float(answer[key]) if kind is float and type(answer[key]) is int else answer[key]
        check(isinstance(value, kind), f"{key} is {answer[key]!r}")
    equal(answer["digest"], hashlib.sha256(struct.pack(f"<{len(answer['token_ids'])}i", *answer["token_ids"])).hexdigest())
    equal((answer["output_tokens"], answer["finish"], answer["prompt_tokens"]), (12, "length", 24))
    equal((answer["synthetic"], answer["draft"], answer["history_accelerated"], answer["seed"]), (True, "ngram", True, None))
    equal((answer["threads"], answer["kv"], answer["activations"], answer["profile"]), (2, "f32", "a8", "portable"))
    equal(stet.json("run", "-m", TINY, "-p", "x", "-n", 1, "--temperature", 1, "--seed", 9)["seed"], 9)
    for flags, activations in (((), "a8"), (("--float",), "f32"), (("--activations", "f32"), "f32")):
        equal(stet.json("run", "-m", TINY, "-p", "x", "-n", 1, *flags)["activations"], activations)
    stet.refuses(2, "run", "-m", TINY, "-p", "x", "--activations", "checkpoint", says="declare none")


def page_names_every_key(stet: Stet) -> None:
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/cli.md").read_text(encoding="utf-8")
    (stet.folder / "page.txt").write_bytes(bytes(i % 95 + 32 for i in range(40)))
    shown = {*KEYS, *stet.json("perplexity", "-m", TINY, "-f", "page.txt", "--ctx", 16), *stet.json("cache", "list")}
    equal([key for key in sorted(shown) if f"`{key}`" not in page], [], "keys that docs/cli.md lacks")


def prompt_from_flag_file_and_pipe(stet: Stet) -> None:
    text = "zwei Zeilen\nmit Ümlaut"
    (stet.folder / "prompt.txt").write_text(text + "\n", encoding="utf-8")
    ids = stet.json("run", "-m", TINY, "-p", text, "-n", 8)["token_ids"]
    equal(stet.json("run", "-m", TINY, "-f", "prompt.txt", "-n", 8)["token_ids"], ids, "file")
    equal(stet.json("run", "-m", TINY, "-n", 8, text=(text + "\n").encode())["token_ids"], ids, "pipe")
    equal(stet.json("run", "-m", TINY, "-f", "-", "-n", 8, text=text.encode())["token_ids"], ids, "-")
    equal(stet.json("run", "-m", TINY, "--raw", "-n", 1, text=b"ab\n")["prompt_tokens"], 3, "--raw takes every byte")
    equal(stet.json("run", "-m", TINY, "-p", "-n 5", "-n", 1)["prompt_tokens"], 23, "a prompt that looks like a flag")
    more = stet.json("run", "-m", TINY, "-p", text, "-s", "Be brief.", "-n", 8)
    check(more["prompt_tokens"] > len(text.encode()) + 19 + len("Be brief."), "the system message")


def stop_strings(stet: Stet) -> None:
    flags = ("run", "-m", TINY, "-p", "stop", "-n", 40, "--raw", "--ignore-eos", "-q")
    whole = stet.ok(*flags).out
    stop = whole[9:11]
    written = "".join(f"\\x{byte:02x}" for byte in stop)
    for more in ((), ("--draft", "ngram")):
        equal(stet.ok(*flags, "--stop", written, "--stop", "[never]", *more).out, whole[: whole.index(stop)], more)
        equal(stet.json(*flags, "--stop", written, *more)["finish"], "stop", more)


def speculation_changes_nothing(stet: Stet) -> None:
    drafts = (("ngram",), ("model:synth:tiny:q8_0",), ("model:synth:tiny:f32:7", "--draft-depth", "9"))
    for temperature, seed in ((0, 0), (0.7, 1), (1.3, 2)):
        sampling = ("--temperature", temperature, "--seed", seed, "--ignore-eos")
        flags = ("run", "-m", TINY, "-p", "abc abc abc abc", "-n", 60, *sampling)
        plain = stet.json(*flags)
        for draft in drafts:
            answer = stet.json(*flags, "--draft", *draft)
            equal((answer["token_ids"], answer["text"]), (plain["token_ids"], plain["text"]), (temperature, draft))
            equal(answer["history_accelerated"], draft[0] == "ngram")
    other = stet.json(*flags, "--isa", "scalar", "--threads", 3, "--replay", "eager", "--pack", "none")
    equal(other["digest"], plain["digest"], "another machine")


def reported_seed_repeats_the_answer(stet: Stet) -> None:
    flags = ("run", "-m", TINY, "-p", "x", "-n", 20, "--temperature", 1)
    first, second = stet.json(*flags), stet.json(*flags)
    check(first["seed"] != second["seed"], "two draws gave one seed")
    equal(stet.json(*flags, "--seed", first["seed"])["token_ids"], first["token_ids"])


def notes_flags_that_play_no_part(stet: Stet) -> None:
    check("play no part" in stet.ok("run", "-m", TINY, "-p", "x", "-n", 1, "--top-p", 0.9).err, "no note")


def inspect_shows_a_file(stet: Stet) -> None:
    stet.ok("synth", "tiny:q6_k", "--out", "inspected.gguf")
    text = stet.ok("inspect", "inspected.gguf").out.decode()
    check("blk.1.ffn_down.weight" in text and "per token" in text, text[:400])
    info = json.loads(stet.ok("inspect", "inspected.gguf", "--json").out)
    equal(info["metadata"]["general.architecture"], "llama")
    equal(json.loads(stet.ok("inspect", "synth:tiny:q6_k", "--json").out)["synthetic"], True)


def tokenize_and_back(stet: Stet) -> None:
    text = bytes(range(256)) + "Ünïcode 漢字 <|im_end|>".encode()
    ids = stet.ok("tokenize", "-m", TINY, text=text).out
    equal(stet.ok("tokenize", "-m", TINY, "--decode", text=ids).out, text, "round trip")
    equal(len(json.loads(ids)), len(text), "ids")
    equal(json.loads(stet.ok("tokenize", "-m", TINY, "--special", text=b"<|im_end|>").out), [3])
    equal(stet.ok("tokenize", "-m", TINY, "--decode", text=b"[3]").out, b"", "a control token")
    equal(stet.ok("tokenize", "-m", TINY, "--decode", "--special", text=b"[3]").out, b"<|im_end|>")
    equal(json.loads(stet.ok("tokenize", "-m", TINY, "--bos", text=b"").out), [0])
    equal(stet.ok("tokenize", "-m", TINY, text=b"").out, b"[]\n")


def read_npy(path) -> tuple[tuple[int, ...], list[float]]:
    data = path.read_bytes()
    equal(data[:6], b"\x93NUMPY")
    size = struct.unpack_from("<H", data, 8)[0]
    shape = tuple(int(n) for n in data[10 : 10 + size].split(b"(")[1].split(b")")[0].split(b",") if n.strip())
    values = struct.unpack(f"<{math.prod(shape)}f", data[10 + size :])
    return shape, list(values)


def logits_of_every_position(stet: Stet) -> None:
    ids = json.loads(stet.ok("tokenize", "-m", TINY, text=b"logits").out)
    stet.ok("logits", "-m", TINY, "--tokens", ",".join(map(str, ids)), "--out", "a.npy")
    shape, values = read_npy(stet.folder / "a.npy")
    equal(shape, (6, 320))
    last = values[-320:]
    greedy = stet.json("run", "-m", TINY, "--raw", "-p", "logits", "-n", 1)["token_ids"]
    equal(greedy, [last.index(max(last))], "the next token")
    stet.ok("logits", "-m", TINY, "--tokens", "-", "--out", "b.npy", "--isa", "scalar", text=json.dumps(ids).encode())
    equal((stet.folder / "a.npy").read_bytes(), (stet.folder / "b.npy").read_bytes(), "scalar")
    stet.ok("logits", "-m", TINY, "--tokens", json.dumps(ids), "--out", "b.npy", "--float", "-q")
    floats = read_npy(stet.folder / "b.npy")[1]
    check(floats != values and max(abs(a - b) for a, b in zip(floats, values)) < 1.0, "the float path is near, and another")


def perplexity_by_the_rule(stet: Stet) -> None:
    text = bytes((i * 7 + i // 3) % 95 + 32 for i in range(300))
    (stet.folder / "text.txt").write_bytes(text)
    report = stet.json("perplexity", "-m", TINY, "-f", "text.txt", "--ctx", 64, "--kl")
    equal((report["windows"], report["window"], report["scored_tokens"], report["text_tokens"]), (4, 64, 4 * 31, 300))
    ids = json.loads(stet.ok("tokenize", "-m", TINY, text=text).out)
    losses = []
    for window in range(4):
        part = ids[window * 64 : window * 64 + 64]
        stet.ok("logits", "-m", TINY, "--tokens", ",".join(map(str, part)), "--out", "w.npy", "-q")
        values = read_npy(stet.folder / "w.npy")[1]
        for position in range(32, 63):
            row = values[position * 320 : position * 320 + 320]
            losses.append(math.log(sum(math.exp(x - max(row)) for x in row)) - (row[part[position + 1]] - max(row)))
    want = math.exp(sum(losses) / len(losses))
    check(abs(report["perplexity"] / want - 1) < 1e-9, (report["perplexity"], want))
    check(0 < report["mean_kl"] < 0.1 and 0.5 < report["same_first_choice"] <= 1, report)
    text_report = stet.ok("perplexity", "-m", TINY, "-f", "text.txt", "--ctx", 64).out.decode()
    check("4 windows of 64 tokens" in text_report and "positions 33 to 63" in text_report, text_report)


def cache_list_verify_clear(stet: Stet) -> None:
    env = {"XDG_CACHE_HOME": str(stet.folder / "own")}
    stet.ok("synth", "tiny:q8_0", "--out", "packed.gguf")
    run = ("run", "-m", "packed.gguf", "-p", "x", "-n", 4)
    equal(stet.json("cache", "list", env=env)["packs"], [])
    first = stet.ok(*run, env=env)
    check("writing the packed weights" in first.err and "own/stet/packs" in first.err, first)
    check("writing" not in stet.ok(*run, env=env).err, "packed twice")
    (pack,) = stet.json("cache", "list", env=env)["packs"]
    check("1 pack," in stet.ok("cache", "list", env=env).out.decode(), "list")
    equal(stet.json("cache", "verify", env=env)["packs"][0]["problem"], None)
    with open(pack["path"], "r+b") as file:
        file.seek(pack["bytes"] // 2)
        byte = file.read(1)[0]
        file.seek(pack["bytes"] // 2)
        file.write(bytes([byte ^ 1]))
    damaged = stet("cache", "verify", env=env)
    check(damaged.code == 3 and b"unusable" in damaged.out, damaged)
    mended = stet.ok(*run, env=env)
    equal(mended.out, first.out, "after the damage")
    check("made again" in mended.err, mended)
    check(stet.json("cache", "clear", env=env)["files"] >= 1, "clear")
    equal(stet.json("cache", "list", env=env)["packs"], [])
    stet.refuses(2, "cache", "burn", env=env, says=("burn", "verify"))


def synth_writes_a_file(stet: Stet) -> None:
    listing = json.loads(stet.ok("synth", "--list", "--json").out)
    check("tiny" in [g["name"] for g in listing["geometries"]] and "Q4_0" in listing["formats"], listing)
    check(b"llama-1b" in stet.ok("synth", "--list").out, "--list")
    stet.ok("synth", "synth:tiny:q4_0", "--out", "written.gguf")
    flags = ("-p", "file or name", "-n", 12)
    equal(stet.json("run", "-m", "written.gguf", *flags)["token_ids"], stet.json("run", "-m", TINY, *flags)["token_ids"])
    equal(stet.json("run", "-m", "written.gguf", *flags)["synthetic"], True, "the file says so")
    stet.refuses(2, "synth", "tiny:q4_0", "--out", "written.gguf", says="exists")
    stet.ok("synth", "tiny:q4_0:5", "--out", "written.gguf", "--overwrite")


def terminal_sees_no_control_characters(stet: Stet) -> None:
    flags = ("run", "-m", TINY, "-p", "hello", "-n", 200, "--ignore-eos", "-q", "-t", 1.5, "--seed", 1)
    exact = stet.ok(*flags).out
    check(any(b < 32 and b not in (9, 10) for b in exact), "the model wrote no control character")
    terminal = Terminal(stet, *flags)
    equal(terminal.close(), 0)
    check(all(b >= 32 or b in (9, 10, 13) for b in terminal.all), terminal.all)
    check(b"\x7f" not in terminal.all and b"\\x1" in terminal.all, terminal.all)


def progress_and_colours_on_a_terminal_only(stet: Stet) -> None:
    flags = ("run", "-m", TINY, "-p", "x" * 300, "-n", 3)
    check("\x1b" not in stet.ok(*flags).err, "escape sequences in a pipe")
    plain, coloured = Terminal(stet, *flags, env={"NO_COLOR": "1"}), Terminal(stet, *flags)
    equal((plain.close(), coloured.close()), (0, 0))
    check(b"\x1b[2m" in coloured.all and b"\x1b[2m" not in plain.all, "NO_COLOR")


TESTS = [
    help_and_version, text_on_stdout_and_all_else_on_stderr, json_contract, page_names_every_key,
    prompt_from_flag_file_and_pipe, stop_strings, speculation_changes_nothing, reported_seed_repeats_the_answer,
    notes_flags_that_play_no_part, inspect_shows_a_file, tokenize_and_back, logits_of_every_position,
    perplexity_by_the_rule, cache_list_verify_clear, synth_writes_a_file, terminal_sees_no_control_characters,
    progress_and_colours_on_a_terminal_only,
]  # fmt: skip
