#!/usr/bin/env python3
"""Compares `stet tokenize` with the Hugging Face `tokenizers` package on fresh random strings.

    python3 tests/text_oracle_test.py --stet build/stet [--count 3000] [--seed N] [--tokenizer TOKENIZER.json]... [MODEL.gguf...]

Every string is encoded as plain text (no special tokens) and must give the same ids, and those must decode to the same
bytes. Strings with a byte that the vocabulary lacks must be refused. Then the same of folders with a tokenizer.json that the package
wrote, of every kind of pre-tokenizer, and of published files (--tokenizer), as they are. Prints the counts and exits non-zero on the first
difference. Needs: tokenizers.
"""
import argparse
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "oracle"))
import text_oracle as oracle  # noqa: E402


def run(stet, model, data, *flags):
    """Standard output of one call, or None when it refused."""
    done = subprocess.run([stet, "tokenize", "-m", model, *flags], input=data, capture_output=True, check=False)
    if done.returncode < 0:
        sys.exit("%s died of signal %d on %r" % (stet, -done.returncode, data))
    return done.stdout if done.returncode == 0 else None


def ids_of(output):
    value = json.loads(output)
    return value["ids"] if isinstance(value, dict) else value


def representable(meta, text):
    alphabet = oracle.byte_alphabet()
    tokens = set(meta["tokenizer.ggml.tokens"])
    return all(alphabet[b] in tokens for b in text.encode())


def check(stet, model, strings):
    meta = oracle.read_gguf(model)
    hf = oracle.tokenizer_from_gguf(model)
    plain = oracle.tokenizer(meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.merges"], meta["tokenizer.ggml.pre"])
    joined = [s for s in strings if representable(meta, s)]
    refused = [s for s in strings if not representable(meta, s)]
    texts = joined[: len(joined) // 10] + ["".join(joined[i:i + 20]) for i in range(len(joined) // 10, len(joined), 20)]
    for text in texts:
        output = run(stet, model, text.encode())
        expected = plain.encode(text, add_special_tokens=False).ids
        if output is None or ids_of(output) != expected:
            sys.exit("%s: %r\n  expected %s\n  got      %s" % (model, text, expected, output))
        if run(stet, model, json.dumps(expected).encode(), "--decode") != text.encode():
            sys.exit("%s: %r does not come back from its ids" % (model, text))
    special = [t for t, is_special in added(meta) if is_special]
    marked = [random.Random(i).choice(special) + s for i, s in enumerate(joined[:50])] if special else []
    for text in marked:
        output = run(stet, model, text.encode(), "--special")
        if output is None or ids_of(output) != hf.encode(text, add_special_tokens=False).ids:
            sys.exit("%s --special: %r\n  got %s" % (model, text, output))
    for text in refused[:20]:
        if run(stet, model, text.encode()) is not None:
            sys.exit("%s: %r holds a byte without a token and was not refused" % (model, text))
    print("%s: %d strings in %d texts equal, %d with special tokens, %d refused" %
          (os.path.basename(model), len(joined), len(texts), len(marked), min(20, len(refused))))


# A checkpoint whose weights nobody looks at.
def checkpoint(folder, hf, vocab):
    config = {"model_type": "llama", "vocab_size": vocab, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
              "num_attention_heads": 1, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    header = json.dumps({"model.norm.weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + bytes(4))
    if isinstance(hf, str):
        shutil.copyfile(hf, os.path.join(folder, "tokenizer.json"))
    else:
        hf.save(os.path.join(folder, "tokenizer.json"))


# tokenizer.json as the library itself writes it, of every kind.
def check_saved(stet, strings):
    golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "text")
    for name in ("gpt-2", "smollm", "llama-bpe", "qwen2", "deepseek-v3"):
        with open(os.path.join(golden, "bpe_%s.json" % name), encoding="utf-8") as f:
            vocabulary = json.load(f)
        tokens = [t for t, kind in zip(vocabulary["tokens"], vocabulary["types"]) if kind == 1]
        special = [(t, kind == 3) for t, kind in zip(vocabulary["tokens"], vocabulary["types"]) if kind != 1]
        hf = oracle.tokenizer(tokens, vocabulary["merges"], name, special)
        with tempfile.TemporaryDirectory() as folder:
            checkpoint(folder, hf, len(tokens) + len(special))
            for text in ("".join(strings[i:i + 25]) for i in range(0, len(strings), 25)):
                output = run(stet, folder, text.encode(), "--special")
                expected = hf.encode(text, add_special_tokens=False).ids
                if output is None or ids_of(output) != expected:
                    sys.exit("tokenizer.json of %s: %r\n  expected %s\n  got      %s" % (name, text, expected, output))
        print("tokenizer.json of %s: %d strings equal" % (name, len(strings)))


# A published tokenizer.json: random strings with its added tokens between some of them.
def check_published(stet, path, strings):
    from tokenizers import Tokenizer
    hf = Tokenizer.from_file(path)
    tokens = sorted(t.content for t in hf.get_added_tokens_decoder().values())
    rng = random.Random(len(strings))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint(folder, path, max(hf.get_vocab().values()) + 1)
        texts = ["".join(s + (rng.choice(tokens) if rng.random() < 0.2 else "") for s in strings[i:i + 100])
                 for i in range(0, len(strings), 100)] + ["".join(tokens[i:i + 100]) for i in range(0, len(tokens), 100)]
        for text in texts:
            output = run(stet, folder, text.encode(), "--special")
            expected = hf.encode(text, add_special_tokens=False).ids
            if output is None or ids_of(output) != expected:
                sys.exit("%s: %r\n  expected %s\n  got      %s" % (path, text, expected, output))
            if run(stet, folder, json.dumps(expected).encode(), "--decode", "--special") != text.encode():
                sys.exit("%s: %r does not come back from its ids" % (path, text))
    print("%s: %d strings in %d texts equal, %d added tokens" % (path, len(strings), len(texts), len(tokens)))


def added(meta):
    types = meta["tokenizer.ggml.token_type"]
    return [(t, types[i] == 3) for i, t in enumerate(meta["tokenizer.ggml.tokens"]) if types[i] in (3, 4)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stet", default="build/stet")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--tokenizer", action="append", default=[], help="a published tokenizer.json")
    parser.add_argument("models", nargs="*")
    args = parser.parse_args()
    print("seed", args.seed)
    for model in args.models:
        check(args.stet, model, oracle.random_strings(args.seed, args.count))
    check_saved(args.stet, oracle.random_strings(args.seed + 1, args.count))
    for path in args.tokenizer:
        check_published(args.stet, path, oracle.random_strings(args.seed + 2, args.count))


if __name__ == "__main__":
    main()
