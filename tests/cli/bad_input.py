"""Every kind of bad input: one clear line of error and the exit code of docs/cli.md."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

from harness import TIMEOUT_S, Skip, Stet, check, equal, replaced_value, tensor_entry, with_tensor

TINY = "synth:tiny:q4_0"
ENDLESS = ("run", "-m", TINY, "-p", "x", "--ctx", 100000, "--ignore-eos")  # minutes of text


def run(model: object) -> tuple:
    return ("run", "-m", model, "-p", "hi", "-n", 2)


def synth_file(stet: Stet, name: str = "tiny:q4_0") -> pathlib.Path:
    path = stet.folder / (name.replace(":", "-") + ".gguf")
    if not path.exists():
        stet.ok("synth", name, "--out", path)
    return path


def synth_bytes(stet: Stet, name: str = "tiny:q4_0") -> bytes:
    return synth_file(stet, name).read_bytes()


def broken(stet: Stet, data: bytes) -> pathlib.Path:
    path = stet.folder / "broken.gguf"
    path.write_bytes(data)
    return path


def no_model(stet: Stet) -> None:
    stet.refuses(2, "run", "-p", "hi", says=("no model given", "-m"))
    stet.refuses(2, *run(""), says="no model given")


def no_such_file(stet: Stet) -> None:
    logits = ("logits", "-m", "nowhere.gguf", "--tokens", 1, "-o", "x.npy")
    for verb in (run("nowhere.gguf"), ("inspect", "nowhere.gguf"), logits):
        stet.refuses(3, *verb, says=("nowhere.gguf", "no such file"))
    stet.refuses(3, "tokenize", "-m", "nowhere.gguf", says="no such file")
    stet.refuses(3, *run(stet.folder), says="folder without config.json")
    stet.refuses(3, *run("smollm2-135m"), says=("demo", str(stet.folder / "cache")))


def unknown_synthetic_model(stet: Stet) -> None:
    stet.refuses(2, *run("synth:huge:q4_0"), says=("huge", "llama-1b"))
    stet.refuses(2, *run("synth:tiny:q9"), says=("q9", "Q4_0"))
    stet.refuses(2, *run("synth:tiny"), says="synth:GEOMETRY:FORMAT")


def not_a_gguf(stet: Stet) -> None:
    stet.refuses(3, *run(broken(stet, b"#!/bin/sh\necho hello, this is no model\n")), says="not a GGUF")
    hostile = stet.refuses(3, *run(broken(stet, b"\x1b]52;c;x\x07" + bytes(100))))
    check("\x1b" not in hostile.err and "\x07" not in hostile.err, f"control characters reach the terminal: {hostile}")


def truncated_files(stet: Stet) -> None:
    data = synth_bytes(stet)
    table = tensor_entry(data, "blk.0.attn_q.weight")
    for size in (0, 3, 4, 8, 23, 24, 100, table // 2, table + 5, table + 4000, len(data) // 2, len(data) - 1):
        stet.refuses(3, *run(broken(stet, data[:size])), says="broken.gguf")


def tensors_overlapping_or_absurd(stet: Stet) -> None:
    data = synth_bytes(stet)
    for name, change in {
        "overlapping": {"offset": 0}, "beyond the end": {"offset": 1 << 40}, "unaligned": {"offset": 33},
        "huge": {"shape": 1 << 62}, "empty": {"shape": 0}, "part of a block": {"shape": 65},
    }.items():  # fmt: skip
        result = stet.refuses(3, *run(broken(stet, with_tensor(data, "blk.0.attn_q.weight", **change))))
        check("blk.0.attn_q.weight" in result.err, f"{name}: the tensor is not named: {result}")
    counts = bytearray(data)
    struct.pack_into("<Q", counts, 8, 1 << 60)
    stet.refuses(3, *run(broken(stet, bytes(counts))), says="tensors")


def big_endian_file(stet: Stet) -> None:
    data = synth_bytes(stet)
    stet.refuses(4, *run(broken(stet, data[:4] + struct.pack(">IQQ", 3, 1, 1) + data[24:])), says="big-endian")


def unsupported_architecture(stet: Stet) -> None:
    data = replaced_value(synth_bytes(stet), "general.architecture", "llama", "mamba")
    stet.refuses(4, *run(broken(stet, data)), says=("mamba", "llama"))


def unsupported_format(stet: Stet) -> None:
    data = with_tensor(synth_bytes(stet, "tiny-256:q8_0"), "blk.0.attn_q.weight", kind=12)
    path = broken(stet, data)
    stet.refuses(4, *run(path), says=("Q4_K", "blk.0.attn_q.weight", "Q8_0"))
    check(b"Q4_K" in stet.ok("inspect", path).out, "inspect does not show the format that stet lacks")


def unsupported_tokenizer(stet: Stet) -> None:
    data = synth_bytes(stet)
    stet.refuses(4, *run(broken(stet, replaced_value(data, "tokenizer.ggml.model", "gpt2", "bert"))), says="bert")
    stet.refuses(4, *run(broken(stet, replaced_value(data, "tokenizer.ggml.pre", "gpt-2", "gpt-9"))), says=("gpt-9", "smollm"))


def context_overflow(stet: Stet) -> None:
    stet.refuses(2, "run", "-m", TINY, "-p", "x" * 600, says=("619", "512"))
    stet.refuses(2, "run", "-m", TINY, "-p", "hello", "--ctx", 16, says=("24", "16"))
    stet.refuses(2, "logits", "-m", TINY, "--tokens", ",".join(["1"] * 40), "--ctx", 32, "-o", "x.npy", says=("40", "32"))
    result = stet.ok("run", "-m", TINY, "-p", "hello", "--ctx", 32, "--ignore-eos")
    check("context of 32 tokens is full" in result.err and "finish context" in result.err, result)


def context_beyond_memory(stet: Stet) -> None:
    stet.refuses(5, "run", "-m", "synth:tiny:q4_0", "-p", "x", "--ctx", 1 << 30, says=("1073741824", "MiB", "--ctx"))


def draft_of_another_vocabulary(stet: Stet) -> None:
    stet.refuses(2, "run", "-m", TINY, "-p", "x", "--draft", "model:synth:tiny-gqa:q4_0", says=("330", "320", "vocabulary"))
    stet.refuses(3, "run", "-m", TINY, "-p", "x", "--draft", "model:nowhere.gguf", says="no such file")
    stet.refuses(2, "run", "-m", TINY, "-p", "x", "--draft", "oracle", says=("oracle", "ngram"))


def zero_or_absurd_flags(stet: Stet) -> None:
    for flag, bad in {
        "--threads": ("0", "-1", "1e3", "99999", "two"), "--ctx": ("0", "-5"), "--max-tokens": ("0", "-1", "99999999999"),
        "--temperature": ("-1", "nan", "inf", "warm", "101"), "--top-k": ("-1", "0.5"), "--top-p": ("0", "1.5", "-1"),
        "--min-p": ("-0.1", "2"), "--repetition-penalty": ("0", "-1"), "--presence-penalty": ("1000",),
        "--frequency-penalty": ("x",), "--seed": ("-1", "18446744073709551616", "x"), "--kv": ("f8", ""),
        "--isa": ("sse",), "--pack": ("disk",), "--replay": ("fast",), "--draft-depth": ("0", "16", "3"),
        "--logit-bias": ("5", "x=1", "5=", "320=1"), "--stop": ("", "\\q"),
    }.items():  # fmt: skip
        for value in bad:
            stet.refuses(2, "run", "-m", TINY, "-p", "x", "-n", 1, flag, value, says=flag.split("-")[2])
    stet.refuses(2, "run", "-m", TINY, "-p", "x", "--tempreature", "1", says="did you mean --temperature")
    stet.refuses(2, "run", "-m", TINY, "-p", "x", "--zzz", says="--max-tokens")
    stet.refuses(2, "run", "-m", TINY, "-p", "x", "-p", "y", says="2 times")
    stet.refuses(2, "run", "-m", TINY, "-p", "x", "-f", "y", says="choose one")
    stet.refuses(2, "run", "-m", TINY, "-p", "", says="empty")
    stet.refuses(2, "run", "-m", TINY, text=b"", says="empty")
    stet.refuses(3, "run", "-m", TINY, "-f", "nowhere.txt", says="nowhere.txt")
    stet.refuses(2, "rnu", says="run")
    stet.refuses(2, says="tokenize")


def logits_of_bad_tokens(stet: Stet) -> None:
    for tokens in ("", "1,,2", "-1", "x", "2147483648"):
        stet.refuses(2, "logits", "-m", TINY, "--tokens", tokens, "-o", "x.npy")
    stet.refuses(2, "logits", "-m", TINY, "--tokens", "320", "-o", "x.npy", says="320")
    stet.refuses(5, "logits", "-m", TINY, "--tokens", "1", "-o", "nowhere/x.npy", says="nowhere")
    check(not (stet.folder / "x.npy").exists(), "a refused command left its file")


def bad_token_lists(stet: Stet) -> None:
    stet.refuses(2, "tokenize", "-m", TINY, "--decode", text=b"[1, 2", says="standard input")
    stet.refuses(2, "tokenize", "-m", TINY, "--decode", text=b"[99999]", says="99999")
    stet.refuses(2, "tokenize", "-m", TINY, "--bos", "--no-bos", text=b"x")


def text_too_short_for_perplexity(stet: Stet) -> None:
    stet.refuses(2, "perplexity", "-m", TINY, "-f", "-", text=b"x" * 1000, says=("1000", "512"))


@contextlib.contextmanager
def small_disk(stet: Stet, kib: int):
    """A file system of its own, where the user may mount one."""
    folder = stet.folder / "disk"
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "tmpfs", folder]
    if os.geteuid() != 0 or not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode != 0:
        raise Skip("a file system of its own cannot be mounted here (that needs root)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def no_space_for_the_pack(stet: Stet) -> None:
    with small_disk(stet, 64) as disk:
        env, model = {"XDG_CACHE_HOME": str(disk)}, synth_file(stet)
        stet.refuses(5, *run(model), env=env, says=("bytes", "free"))
        stet.ok(*run(model), "--pack", "none", env=env)
        equal([p for p in disk.rglob("*") if p.is_file() and p.stat().st_size > 4096], [], "what a refused pack left")


def read_only_cache(stet: Stet) -> None:
    model = synth_file(stet)
    if os.geteuid() != 0:
        folder = stet.folder / "fixed"
        folder.mkdir(mode=0o500)
        stet.refuses(5, *run(model), env={"XDG_CACHE_HOME": str(folder)}, says="fixed")
        return
    with small_disk(stet, 64) as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        stet.refuses(5, *run(model), env={"XDG_CACHE_HOME": str(disk)}, says=str(disk))
        stet.ok(*run(model), "--pack", "none", env={"XDG_CACHE_HOME": str(disk)})


def cache_that_others_can_write(stet: Stet) -> None:
    folder = stet.folder / "open"
    (folder / "stet").mkdir(parents=True)
    (folder / "stet").chmod(0o777)
    stet.refuses(5, *run(synth_file(stet)), env={"XDG_CACHE_HOME": str(folder)}, says=str(folder))


def interrupt_prints_what_stands(stet: Stet) -> None:
    process = stet.start(*ENDLESS)
    result = stet.interrupt_after(process, process.stdout)
    equal(result.code, 130, result)
    check(len(result.out) > 0 and "finish cancelled" in result.err and "digest" in result.err, result)
    check("error" not in result.err, result)


def interrupt_with_json_prints_the_object(stet: Stet) -> None:
    import json

    process = stet.start(*ENDLESS, "--json")
    result = stet.interrupt_after(process, None)
    equal(result.code, 130, result)
    answer = json.loads(result.out)
    equal(answer["finish"], "cancelled")
    check(len(answer["token_ids"]) > 0, "no tokens")


def second_interrupt_ends_at_once(stet: Stet) -> None:
    # Only tokens without text: nothing comes by at which the first interrupt could be noticed early.
    process = stet.start(*ENDLESS, "--logit-bias", "0=1000")
    time.sleep(0.5)
    for _ in range(50):  # on a busy machine two that come close together are one
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
            break
    process.communicate(timeout=TIMEOUT_S)
    equal(process.returncode, 130, "exit code")


def closed_output_pipe(stet: Stet) -> None:
    process = stet.start(*ENDLESS)
    os.read(process.stdout.fileno(), 1)
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=30)
    equal(process.returncode, 5, err)
    equal(err.count(b"stet: error: "), 1, err)
    check(b"closed by its reader" in err, err)


def closed_or_full_output(stet: Stet) -> None:
    with open("/dev/full", "wb") as full:
        stet.refuses(5, *run(TINY), stdout=full, says="No space left")
    stet.refuses(5, *run(TINY), preexec_fn=lambda: os.close(1), says="closed")
    equal(stet(*run(TINY), preexec_fn=lambda: os.close(2)).code, 0, "exit code without standard error")


TESTS = [
    no_model, no_such_file, unknown_synthetic_model, not_a_gguf, truncated_files, tensors_overlapping_or_absurd,
    big_endian_file, unsupported_architecture, unsupported_format, unsupported_tokenizer, context_overflow,
    context_beyond_memory, draft_of_another_vocabulary, zero_or_absurd_flags, logits_of_bad_tokens, bad_token_lists,
    text_too_short_for_perplexity, no_space_for_the_pack, read_only_cache, cache_that_others_can_write,
    interrupt_prints_what_stands, interrupt_with_json_prints_the_object, second_interrupt_ends_at_once,
    closed_output_pipe, closed_or_full_output,
]  # fmt: skip
