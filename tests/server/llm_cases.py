"""The `llm` command."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from harness import TIMEOUT_S, World, check, equal

PROMPT = "Name three colours."


def llm(world: World, *args: str, code: int = 0) -> str:
    folder = world.folder / "llm"
    folder.mkdir(exist_ok=True)
    (folder / "extra-openai-models.yaml").write_text(
        f"- model_id: stet\n  model_name: any\n  api_base: {world.server.v1}\n"
        f"- model_id: stet-text\n  model_name: any\n  api_base: {world.server.v1}\n  completion: true\n"
    )
    done = subprocess.run([sys.executable, "-m", "llm", *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
                          env={**os.environ, "LLM_USER_PATH": str(folder)})  # fmt: skip
    equal(done.returncode, code, f"llm {args}: {done.stderr[-600:]}")
    return done.stdout if code == 0 else done.stderr


def test_prompts(world: World) -> None:
    want = world.run("-s", "Be brief.", "-p", PROMPT, "-n", 20)["text"]
    for more in ((), ("--no-stream",)):
        equal(llm(world, "-m", "stet", "-s", "Be brief.", "-o", "max_tokens", "20", *more, PROMPT).rstrip("\n"), want.rstrip("\n"))


def test_sampled(world: World) -> None:
    want = world.run("-p", PROMPT, "-n", 20, "--temperature", 0.7, "--seed", 9)["text"]
    got = llm(world, "-m", "stet", "-o", "max_tokens", "20", "-o", "temperature", "0.7", "-o", "seed", "9", PROMPT)
    equal(got.rstrip("\n"), want.rstrip("\n"))


def test_completions(world: World) -> None:
    want = world.run("-p", "Once upon a time", "--raw", "-n", 12)["text"]
    equal(llm(world, "-m", "stet-text", "-o", "max_tokens", "12", "Once upon a time").rstrip("\n"), want.rstrip("\n"))


def test_usage_is_logged(world: World) -> None:
    want = world.run("-p", PROMPT, "-n", 10)
    llm(world, "-m", "stet", "-o", "max_tokens", "10", PROMPT)
    last = json.loads(llm(world, "logs", "-n", "1", "--json"))[0]
    equal((last["input_tokens"], last["output_tokens"]), (want["prompt_tokens"], want["output_tokens"]))


def test_a_conversation_goes_on(world: World) -> None:
    llm(world, "-m", "stet", "-o", "max_tokens", "8", PROMPT)
    check(llm(world, "-c", "-o", "max_tokens", "8", "And three more?"), "an answer")


def test_an_error_is_shown(world: World) -> None:
    said = llm(world, "-m", "stet", "-o", "json_object", "true", PROMPT, code=1)
    check("response_format is not supported" in said, said)


TESTS = [value for name, value in list(globals().items()) if name.startswith("test_")]
