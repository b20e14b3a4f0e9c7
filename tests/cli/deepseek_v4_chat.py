"""Conversations with a checkpoint of DeepSeek V4, which has no chat template: run, serve, tokenize."""

from __future__ import annotations

import contextlib
import json
import pathlib
import struct

from harness import TIMEOUT_S, Stet, check, equal
from serve import Server

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
PROMPTS = GOLDEN / "deepseek_v4_prompts"
KV = ("--kv", "f32")
CHAT = "{% for m in messages %}{{ m.content }}{% endfor %}"


def safetensors(data: bytes) -> dict[str, tuple[str, list[int], bytes]]:
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    return {name: (t["dtype"], t["shape"], body[slice(*t["data_offsets"])]) for name, t in header.items() if name != "__metadata__"}


def joined(tensors: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def checkpoint(folder: pathlib.Path, tokenizer: pathlib.Path) -> pathlib.Path:
    """The golden model `mixed` with another vocabulary: its rows, again and again."""
    folder.mkdir()
    file = json.loads(tokenizer.read_text(encoding="utf-8"))
    vocab = max([*file["model"]["vocab"].values(), *(t["id"] for t in file["added_tokens"])]) + 1
    config = json.loads((GOLDEN / "deepseek_v4/mixed/config.json").read_text(encoding="utf-8"))
    rows = config["vocab_size"]
    tensors = safetensors((GOLDEN / "deepseek_v4/mixed/model.safetensors").read_bytes())
    widened = [n for n in tensors if n in ("embed.weight", "head.weight") or n.endswith("tid2eid")]
    equal(len(widened), 2 + config["num_hash_layers"], widened)
    for name in widened:
        dtype, shape, data = tensors[name]
        equal(shape[0], rows, name)
        size = len(data) // rows * vocab
        tensors[name] = (dtype, [vocab, *shape[1:]], (data * (vocab // rows + 1))[:size])
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": vocab}), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(joined(tensors))
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    return folder


def golden() -> dict:
    return json.loads((PROMPTS / "prompts.json").read_text(encoding="utf-8"))


def post(server: Server, path: str, body: dict) -> tuple[int, dict]:
    with contextlib.closing(server.connection()) as connection:
        connection.timeout = TIMEOUT_S
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def prompts_are_those_of_the_golden(stet: Stet, folder: pathlib.Path, ids: str) -> int:
    """Every conversation of the golden that a request can state. Returns how many."""
    compared = 0
    with Server(stet, *KV, model=str(folder)) as server:
        for case in golden()["cases"]:
            if not case["messages"] or any(m["role"] == "latest_reminder" for m in case["messages"]):
                continue
            body = {"messages": case["messages"], "add_generation_prompt": case["add_generation_prompt"],
                    "chat_template_kwargs": {"thinking": case["thinking"]}}  # fmt: skip
            status, answer = post(server, "/tokenize", body)
            if "refused" in case:
                equal(status, 400, case)
            else:
                equal(status, 200, (case, answer))
                equal(answer["tokens"], case[ids], case)
            compared += 1
    return compared


def tokenize_gives_the_ids_of_the_golden(stet: Stet) -> None:
    folder = checkpoint(stet.folder / "deepseek-ids", PROMPTS / "tokenizer.json")
    check(prompts_are_those_of_the_golden(stet, folder, "ids") > 150, "few cases")
    # A text has no markup either, unless it is asked for.
    markup = golden()["markup"]
    for flags, count in (((), 0), (("--special",), len(markup))):
        ids = json.loads(stet.ok("tokenize", "-m", folder, *flags, text=" ".join(markup).encode()).out)
        known = [json.loads(stet.ok("tokenize", "-m", folder, "--special", text=t.encode()).out)[0] for t in markup[:3]]
        equal(sum(ids.count(i) for i in known), min(count, 3), flags)


def chats_are_answered(stet: Stet) -> None:
    folder = checkpoint(stet.folder / "deepseek-chat", PROMPTS / "tokenizer.json")
    case = {(c["name"], c["thinking"]): c for c in golden()["cases"] if c["add_generation_prompt"]}
    run = ("run", "-m", folder, *KV, "-p", "hello", "-n", 6)
    for thinking, flag in ((False, "--no-think"), (True, "--think")):
        wanted = case["one user", thinking]
        answer = stet.json(*run, flag)
        equal(answer["prompt_tokens"], len(wanted["ids"]))
        with Server(stet, *KV, model=str(folder)) as server:
            body = {"messages": wanted["messages"], "max_tokens": 6, "return_token_ids": True}
            status, served = post(server, "/v1/chat/completions", {**body, "chat_template_kwargs": {"enable_thinking": thinking}})
            equal(status, 200, served)
            equal(served["prompt_token_ids"], wanted["ids"])
            equal(served["choices"][0]["token_ids"], answer["token_ids"])
            equal(served["stet"]["digest"], answer["digest"])
            if not thinking:
                equal(post(server, "/v1/chat/completions", body)[1]["stet"]["digest"], answer["digest"], "chat is the default")
            status, refused = post(server, "/v1/chat/completions", {"messages": [*wanted["messages"], {"role": "assistant", "content": "x"}]})
            equal(status, 400)
            check("'assistant'" in refused["error"]["message"], refused)
    equal(stet.json(*run)["digest"], stet.json(*run, "--no-think")["digest"])
    stet.refuses(2, *run, "--think", "--no-think", says="contradict")
    stet.refuses(2, *run, "--think", "--raw", says="contradict")
    stet.refuses(3, "run", "-m", "synth:tiny:q4_0", "-p", "x", "--think", says="no switch for reasoning")
    # Not every text is a chat, and a template of the folder wins.
    equal(stet.json(*run, "--raw")["prompt_tokens"], len(json.loads(stet.ok("tokenize", "-m", folder, text=b"hello").out)))
    (folder / "chat_template.jinja").write_text(CHAT, encoding="utf-8")
    equal(stet.json(*run)["prompt_tokens"], stet.json(*run, "--raw")["prompt_tokens"])


def a_tokenizer_of_another_model_is_refused(stet: Stet) -> None:
    folder = checkpoint(stet.folder / "deepseek-other", PROMPTS / "tokenizer.json")
    file = (folder / "tokenizer.json").read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(file.replace("<｜User｜>", "<｜user｜>"), encoding="utf-8")
    stet.refuses(3, "run", "-m", folder, *KV, "-p", "hello", says="has no token '<｜User｜>'")
    stet.ok("run", "-m", folder, *KV, "-p", "hello", "--raw", "-n", 1)


TESTS = [tokenize_gives_the_ids_of_the_golden, chats_are_answered, a_tokenizer_of_another_model_is_refused]
