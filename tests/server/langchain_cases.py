"""The `langchain-openai` package."""

from __future__ import annotations

import asyncio

import openai
from harness import World, check, equal, raises
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAI

PROMPT = "What is a proof-reader?"
RUN = ("-s", "Be brief.", "-p", PROMPT, "-n", 20)
MESSAGES = [SystemMessage("Be brief."), HumanMessage(PROMPT)]


def chat(world: World, **fields: object) -> ChatOpenAI:
    fields = {"max_tokens": 20, **fields}
    return ChatOpenAI(model="any", base_url=world.server.v1, api_key="any", max_retries=0, timeout=120, **fields)


def test_invoke(world: World) -> None:
    want = world.run(*RUN)
    got = chat(world).invoke(MESSAGES)
    equal(got.content, want["text"])
    equal((got.usage_metadata["input_tokens"], got.usage_metadata["output_tokens"]), (want["prompt_tokens"], want["output_tokens"]))
    equal(got.response_metadata["finish_reason"], "stop" if want["finish"] == "stop" else "length")


def test_stream(world: World) -> None:
    whole = None
    for chunk in chat(world, stream_usage=True).stream(MESSAGES):
        whole = chunk if whole is None else whole + chunk
    want = world.run(*RUN)
    equal(whole.content, want["text"])
    equal(whole.usage_metadata["output_tokens"], want["output_tokens"])


def test_async_stream(world: World) -> None:
    async def text() -> str:
        return "".join([chunk.content async for chunk in chat(world).astream(MESSAGES)])

    equal(asyncio.run(text()), world.run(*RUN)["text"])


def test_a_batch_waits_in_the_queue(world: World) -> None:
    got = chat(world).batch([MESSAGES] * 4)
    equal([m.content for m in got], [world.run(*RUN)["text"]] * 4)


def test_sampled_and_stopped(world: World) -> None:
    want = world.run(*RUN, "--temperature", 0.9, "--top-p", 0.8, "--seed", 5, "--stop", "e")
    equal(chat(world, temperature=0.9, top_p=0.8, seed=5, stop=["e"]).invoke(MESSAGES).content, want["text"])


def test_logprobs(world: World) -> None:
    got = chat(world, max_tokens=4).bind(logprobs=True, top_logprobs=2).invoke(MESSAGES)
    equal(len(got.response_metadata["logprobs"]["content"]), got.usage_metadata["output_tokens"])


def test_a_conversation(world: World) -> None:
    turns = [*MESSAGES, AIMessage("Somebody who reads proofs."), HumanMessage("Of what?")]
    check(chat(world).invoke(turns).usage_metadata["input_tokens"] > 20, "all turns are in the prompt")


def test_completions(world: World) -> None:
    llm = OpenAI(model="any", base_url=world.server.v1, api_key="any", max_retries=0, max_tokens=12, temperature=0)
    want = world.run("-p", "Once upon a time", "--raw", "-n", 12)["text"]
    equal(llm.invoke("Once upon a time"), want)
    equal("".join(llm.stream("Once upon a time")), want)


def test_errors(world: World) -> None:
    error = raises(openai.BadRequestError, chat(world).bind(response_format={"type": "json_object"}).invoke, MESSAGES)
    equal(error.param, "response_format")
    raises(openai.BadRequestError, chat(world).invoke, "word " * 2000)


TESTS = [value for name, value in list(globals().items()) if name.startswith("test_")]
