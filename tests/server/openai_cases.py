"""The `openai` package."""

from __future__ import annotations

import asyncio

import openai
from harness import World, check, equal, raises

MESSAGES = [{"role": "user", "content": "Name three colours."}]
RUN = ("-p", "Name three colours.", "-n", 24)


def client(world: World, **options: object) -> openai.OpenAI:
    return openai.OpenAI(base_url=options.pop("base_url", world.server.v1), api_key="any", max_retries=0, timeout=120, **options)


def chat(world: World, **fields: object):
    fields = {"model": "any", "messages": MESSAGES, "max_tokens": 24, **fields}
    return client(world).chat.completions.create(**fields)


def complete(world: World, **fields: object):
    fields = {"model": "any", "prompt": "Once upon a time", "max_tokens": 24, **fields}
    return client(world).completions.create(**fields)


IDS = {"return_token_ids": True}


def test_models(world: World) -> None:
    models = client(world).models.list().data
    equal(len(models), 1)
    equal(client(world).models.retrieve(models[0].id).id, models[0].id)
    error = raises(openai.NotFoundError, client(world).models.retrieve, "gpt-5")
    equal(error.code, "model_not_found")


def test_chat_is_the_answer_of_stet_run(world: World) -> None:
    want = world.run(*RUN)
    got = chat(world, extra_body=IDS)
    equal(got.choices[0].token_ids, want["token_ids"], "ids")
    equal(got.choices[0].message.content, want["text"], "text")
    equal(got.choices[0].message.role, "assistant")
    equal(got.stet["digest"], want["digest"], "digest")
    equal(got.choices[0].finish_reason, "stop" if want["finish"] == "stop" else "length")
    equal(got.usage.completion_tokens, want["output_tokens"], "usage")
    equal(got.usage.prompt_tokens, want["prompt_tokens"], "usage")
    equal(got.usage.total_tokens, want["prompt_tokens"] + want["output_tokens"], "usage")
    equal(len(got.prompt_token_ids), want["prompt_tokens"])


def test_a_streamed_chat_is_the_same(world: World) -> None:
    want = world.run(*RUN)
    text, ids, finish, usage, roles, cycles = "", [], [], [], 0, []
    for chunk in chat(world, stream=True, stream_options={"include_usage": True}, extra_body={**IDS, "cycle_events": True}):
        usage += [chunk.usage] if chunk.usage else []
        for choice in chunk.choices:
            text += choice.delta.content or ""
            roles += choice.delta.role == "assistant"
            ids += getattr(choice, "token_ids", None) or []
            finish += [choice.finish_reason] if choice.finish_reason else []
        if "cycle" in (getattr(chunk, "stet", None) or {}):
            cycles.append(chunk.stet)
    equal((text, ids), (want["text"], want["token_ids"]))
    equal(finish, ["stop" if want["finish"] == "stop" else "length"])
    equal(roles, 1, "chunks with a role")
    equal([u.completion_tokens for u in usage], [len(ids)], "usage chunks")
    equal([c["cycle"] for c in cycles], list(range(len(cycles))))
    equal([t for c in cycles for t in c["token_ids"]], ids)
    check(all(c["accepted"] <= c["depth"] for c in cycles), cycles)
    times = [c["server_ns"] for c in cycles]
    equal(times, sorted(times))


def test_completions_are_those_of_stet_run_raw(world: World) -> None:
    want = world.run("-p", "Once upon a time", "--raw", "-n", 24)
    got = complete(world, extra_body=IDS)
    equal((got.choices[0].text, got.choices[0].token_ids), (want["text"], want["token_ids"]))
    text = "".join(c.choices[0].text for c in complete(world, stream=True))
    equal(text, want["text"])
    by_ids = complete(world, prompt=got.prompt_token_ids, extra_body=IDS)
    equal(by_ids.choices[0].token_ids, want["token_ids"], "a prompt of ids")


def test_sampled_answers_are_those_of_stet_run(world: World) -> None:
    want = world.run(*RUN, "--temperature", 0.8, "--top-p", 0.9, "--seed", 7)
    for _ in range(2):
        got = chat(world, temperature=0.8, top_p=0.9, seed=7, extra_body=IDS)
        equal(got.choices[0].token_ids, want["token_ids"])
        equal(got.stet["seed"], 7)
    other = chat(world, temperature=0.8, top_p=0.9, seed=8, extra_body=IDS)
    check(other.choices[0].token_ids != want["token_ids"], "another seed, another answer")


def test_penalties_and_bias_are_those_of_stet_run(world: World) -> None:
    want = world.run(*RUN, "--frequency-penalty", 0.5, "--presence-penalty", 0.25, "--repetition-penalty", 1.1, "--logit-bias", "300=-50",
                     "--min-p", 0.1, "--top-k", 20, "--temperature", 0.5, "--seed", 3)  # fmt: skip
    got = chat(world, frequency_penalty=0.5, presence_penalty=0.25, logit_bias={"300": -50}, temperature=0.5, seed=3,
               extra_body={**IDS, "repetition_penalty": 1.1, "min_p": 0.1, "top_k": 20})  # fmt: skip
    equal(got.choices[0].token_ids, want["token_ids"])


def test_a_drawn_seed_is_reported(world: World) -> None:
    first = chat(world, temperature=1.0, extra_body=IDS)
    again = chat(world, temperature=1.0, seed=first.stet["seed"], extra_body=IDS)
    equal(again.choices[0].token_ids, first.choices[0].token_ids)


def test_stop(world: World) -> None:
    whole = complete(world).choices[0].text
    stop = whole[len(whole) // 2 :][:3]
    for streamed in (False, True):
        got = complete(world, stop=[stop, "\x00never"], stream=streamed)
        choices = [c.choices[0] for c in got] if streamed else [got.choices[0]]
        equal("".join(c.text for c in choices), whole[: whole.index(stop)])
        equal(choices[-1].finish_reason, "stop")


def test_logprobs(world: World) -> None:
    got = chat(world, logprobs=True, top_logprobs=3, max_tokens=8)
    content = got.choices[0].logprobs.content
    equal(len(content), got.usage.completion_tokens)
    for entry in content:
        equal(len(entry.top_logprobs), 3)
        equal(entry.logprob, entry.top_logprobs[0].logprob, "greedy takes the most probable")
        check(entry.logprob <= 0, entry)
    bytes_of = bytes(b for entry in content for b in entry.bytes)
    check(bytes_of.decode("utf-8", "replace").startswith(got.choices[0].message.content), "the bytes are the text")
    streamed = []
    for chunk in chat(world, logprobs=True, top_logprobs=3, max_tokens=8, stream=True):
        streamed += chunk.choices[0].logprobs.content if chunk.choices[0].logprobs else []
    equal([e.model_dump() for e in streamed], [e.model_dump() for e in content], "streamed")


def test_completion_logprobs(world: World) -> None:
    got = complete(world, logprobs=2, max_tokens=8).choices[0]
    equal(len(got.logprobs.tokens), len(got.logprobs.token_logprobs))
    for token, offset in zip(got.logprobs.tokens, got.logprobs.text_offset):
        if not token.startswith(("bytes:", "<|")):
            equal(got.text[offset : offset + len(token)], token, "text_offset")


def test_cached_tokens(world: World) -> None:
    chat(world)
    again = chat(world)
    equal(again.usage.prompt_tokens_details.cached_tokens, again.usage.prompt_tokens - 1)
    cold = chat(world, extra_body={"cache_prompt": False})
    equal(cold.usage.prompt_tokens_details.cached_tokens, 0)
    equal(cold.choices[0].message.content, again.choices[0].message.content)


def test_a_conversation_reuses_what_it_shares(world: World) -> None:
    first = chat(world, max_tokens=8)
    turns = [*MESSAGES, {"role": "assistant", "content": first.choices[0].message.content}, {"role": "user", "content": "And then?"}]
    second = chat(world, messages=turns, max_tokens=8)
    check(second.usage.prompt_tokens_details.cached_tokens > 0, second.usage)


def test_refused_fields(world: World) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    for name, value in {"tools": [tool], "n": 2, "response_format": {"type": "json_object"}, "reasoning_effort": "high", "temperature": 1000,
                        "logit_bias": {"99999999": 1}, "top_logprobs": 3}.items():  # fmt: skip
        error = raises(openai.BadRequestError, chat, world, **{name: value})
        check((error.param or "").startswith(name), f"{name}: {error}")
        equal(error.type, "invalid_request_error")
    error = raises(openai.BadRequestError, chat, world, extra_body={"temprature": 0.5})
    equal(error.param, "temprature")
    parts = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]}]
    equal(raises(openai.BadRequestError, chat, world, messages=parts).param, "messages[0].content[0].type")


def test_every_parameter_of_the_client_is_known(world: World) -> None:
    """What the client can send is in the tables: nothing is refused as unknown."""
    from openai.types.chat import completion_create_params as for_chat
    from openai.types import completion_create_params as for_completions

    for call, params in ((chat, for_chat), (complete, for_completions)):
        for name in params.CompletionCreateParamsBase.__annotations__:
            if name in ("messages", "prompt", "model", "stream"):
                continue
            try:
                call(world, max_tokens=1, extra_body={name: ["odd"]})
            except openai.BadRequestError as error:
                check("not known" not in str(error), f"{name}: {error}")


def test_hints_change_nothing(world: World) -> None:
    hints = {"user": "u", "metadata": {"a": "b"}, "store": False, "service_tier": "auto", "prompt_cache_key": "k", "safety_identifier": "s",
             "parallel_tool_calls": True}  # fmt: skip
    equal(chat(world, **hints).choices[0].message.content, chat(world).choices[0].message.content)
    world.server.wait_for("field safety_identifier changes nothing")
    equal(sum("field user changes nothing" in line for line in world.server.lines), 1)


def test_a_prompt_that_does_not_fit(world: World) -> None:
    for stream in (False, True):
        error = raises(openai.BadRequestError, chat, world, messages=[{"role": "user", "content": "word " * 2000}], stream=stream)
        equal((error.code, error.param), ("context_length_exceeded", "messages"))
        check("512" in str(error), error)
    long = chat(world, messages=MESSAGES, max_tokens=128000, extra_body={"ignore_eos": True})
    equal((long.choices[0].finish_reason, long.stet["finish"]), ("length", "context"))
    equal(long.usage.total_tokens, 512)


def test_unknown_paths(world: World) -> None:
    raises(openai.NotFoundError, client(world).embeddings.create, model="any", input="x")


def test_async(world: World) -> None:
    async def both() -> list[str]:
        async with openai.AsyncOpenAI(base_url=world.server.v1, api_key="any", max_retries=0, timeout=120) as c:
            async def one() -> str:
                stream = await c.chat.completions.create(model="any", messages=MESSAGES, max_tokens=24, stream=True)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

            return await asyncio.gather(one(), one(), one())

    equal(asyncio.run(both()), [world.run(*RUN)["text"]] * 3, "three at once, one after another")


def test_a_stream_that_is_left_ends(world: World) -> None:
    since = len(world.server.lines)
    stream = chat(world, stream=True, max_tokens=400, extra_body={"ignore_eos": True})
    for _, chunk in zip(range(3), stream):
        check(chunk.choices, chunk)
    stream.close()
    equal(chat(world, extra_body=IDS).choices[0].token_ids, world.run(*RUN)["token_ids"], "the next answer")
    world.server.wait_for(" 499 ", since)


def test_with_streaming_response(world: World) -> None:
    with client(world).chat.completions.with_streaming_response.create(model="any", messages=MESSAGES, max_tokens=8) as response:
        equal(response.headers["content-type"].split(";")[0], "application/json")
        check(response.parse().choices[0].message.content is not None, "a body")


def test_a_full_queue(world: World) -> None:
    with world.another("--queue", "0") as server:
        c = client(world, base_url=server.v1)
        fields = {"model": "any", "messages": MESSAGES, "max_tokens": 400, "extra_body": {"ignore_eos": True}}
        stream = c.chat.completions.create(**fields, stream=True)
        next(iter(stream))
        error = raises(openai.RateLimitError, c.chat.completions.create, **fields)
        equal((error.code, error.response.headers["retry-after"]), ("queue_full", "1"))
        stream.close()


def test_a_key(world: World) -> None:
    key = world.folder / "key"
    key.write_text("sesame-opens-the-door\n")
    key.chmod(0o600)
    with world.another("--api-key-file", str(key)) as server:
        raises(openai.AuthenticationError, client(world, base_url=server.v1).models.list)
        good = openai.OpenAI(base_url=server.v1, api_key="sesame-opens-the-door", max_retries=0)
        equal(len(good.models.list().data), 1)


def test_a_deadline(world: World) -> None:
    """Either the answer is complete, or it says that time was up: never cut in silence."""
    with world.another("--deadline", "1") as server:
        c = client(world, base_url=server.v1)
        fields = {"model": "any", "messages": MESSAGES, "max_tokens": 490, "extra_body": {"ignore_eos": True}}
        try:
            equal(c.chat.completions.create(**fields).usage.completion_tokens, 490)
        except openai.InternalServerError as error:
            equal((error.status_code, error.code), (504, "deadline_exceeded"))
        try:
            check(any(chunk.choices[0].finish_reason for chunk in c.chat.completions.create(**fields, stream=True)), "a cut stream looks complete")
        except openai.APIError as error:
            check("deadline" in str(error), error)


TESTS = [value for name, value in list(globals().items()) if name.startswith("test_")]
