"""The `litellm` package."""

from __future__ import annotations

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no download at import

import litellm  # noqa: E402
from harness import World, check, equal, raises  # noqa: E402

litellm.telemetry = False
litellm.suppress_debug_info = True

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is a proof-reader?"}]
RUN = ("-s", "Be brief.", "-p", "What is a proof-reader?", "-n", 20)


def chat(world: World, **fields: object):
    fields = {"messages": MESSAGES, "max_tokens": 20, **fields}
    return litellm.completion(model="openai/any", api_base=fields.pop("api_base", world.server.v1), api_key="any", num_retries=0, max_retries=0,
                              timeout=120, **fields)  # fmt: skip


def test_chat(world: World) -> None:
    want = world.run(*RUN)
    got = chat(world)
    equal(got.choices[0].message.content, want["text"])
    equal((got.usage.prompt_tokens, got.usage.completion_tokens), (want["prompt_tokens"], want["output_tokens"]))
    equal(got.choices[0].finish_reason, "stop" if want["finish"] == "stop" else "length")


def test_streamed(world: World) -> None:
    text, usage = "", []
    for chunk in chat(world, stream=True, stream_options={"include_usage": True}):
        text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        usage += [chunk.usage] if getattr(chunk, "usage", None) else []
    want = world.run(*RUN)
    equal(text, want["text"])
    equal(usage[-1].completion_tokens, want["output_tokens"])


def test_sampled(world: World) -> None:
    want = world.run(*RUN, "--temperature", 0.9, "--seed", 11)
    equal(chat(world, temperature=0.9, seed=11).choices[0].message.content, want["text"])


def test_text_completion(world: World) -> None:
    got = litellm.text_completion(model="text-completion-openai/any", prompt="Once upon a time", max_tokens=12, api_base=world.server.v1,
                                  api_key="any", timeout=120)  # fmt: skip
    equal(got.choices[0].text, world.run("-p", "Once upon a time", "--raw", "-n", 12)["text"])


def test_logprobs(world: World) -> None:
    got = chat(world, logprobs=True, top_logprobs=2, max_tokens=4)
    equal(len(got.choices[0].logprobs.content), got.usage.completion_tokens)


def test_errors(world: World) -> None:
    raises(litellm.ContextWindowExceededError, chat, world, messages=[{"role": "user", "content": "word " * 2000}])
    error = raises(litellm.BadRequestError, chat, world, n=2)
    check("n is not supported" in str(error), error)
    raises(litellm.NotFoundError, chat, world, api_base=world.server.url + "/v2")


TESTS = [value for name, value in list(globals().items()) if name.startswith("test_")]
