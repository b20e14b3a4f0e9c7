"""What the text oracles share: seeded random strings, GGUF vocabularies, and Hugging Face tokenizers built from them."""
import random
import struct

CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'\u017f", "'x", "'", "\u2019s"]
WORDS = [
    "the", "Hello", "world", "don", "I", "we", "naïve", "straße", "Καλημέρα", "Привет", "שלום", "مرحبا", "हिन्दी",
    "สวัสดี", "日本語", "你好世界", "ひらがな", "カタカナ", "한국어", "ｆｕｌｌ", "\u0130stanbul", "\u01c5", "\U00010400\U00010428",
    "\U0001d4d0", "int main", "return", "0x1F", "foo_bar", "CamelCase", "e\u0301a\u0308o", "q\u0323\u0307",
]
DIGITS = ["0", "7", "12", "345", "2024", "31415926", "٣٤", "४५", "½", "²", "Ⅷ", "一二", "\U0001d7d8\U0001d7d9", "１２３４"]
BLANKS = [
    " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", " \t ", "\u00a0", "\u2003", "\u3000", "\u0085",
    "\u2028", "\x0b", "\x0c", "\u200b", "\u200d", "\ufeff", "        ",
]
MARKS = [
    ".", ",", "!", "?!", "...", "-", "--", "_", "(", ")", "[]", "{}", "<", ">", "=>", "+=", "$", "€", "£", "^", "~",
    "|", "`", "``", "\"", "«", "»", "、", "。", "！", "—", "…", "•", "/", "\\", "//", "@", "#", "&", "*", "%", ";", ":",
    "\u0301", "\u20dd",
]
EMOJI = ["🦙", "👍🏽", "👩‍👩‍👧", "🇩🇪", "❤️", "\U0001fae9", "☃", "✓"]
CONTROLS = [chr(c) for c in range(32)] + ["\x7f", "\x80", "\x9f", "\u0378", "\ufffd", "\uffff", "\U000e0001", "\U0010ffff"]
POOLS = [(WORDS, 30), (DIGITS, 12), (BLANKS, 20), (MARKS, 18), (EMOJI, 4), (CONTROLS, 3), (CONTRACTIONS, 8)]


def random_case(rng, word):
    return rng.choice([word, word, word, word.upper(), word.capitalize(), word.swapcase()])


def random_piece(rng):
    if rng.random() < 0.05:  # any character at all
        while True:
            c = rng.choice([rng.randrange(0x300), rng.randrange(0x3000), rng.randrange(0x20000), rng.randrange(0x110000)])
            if not 0xD800 <= c < 0xE000:
                return chr(c)
    if rng.random() < 0.05:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz ABC019'.\n") for _ in range(rng.randrange(1, 12)))
    pool = rng.choices([p for p, _ in POOLS], [w for _, w in POOLS])[0]
    piece = random_case(rng, rng.choice(pool))
    return piece * rng.choice([1, 1, 1, 1, 1, 2, 3])


def random_strings(seed, count):
    rng = random.Random(seed)
    return ["".join(random_piece(rng) for _ in range(rng.choice([1, 2, 3, 4, 6, 9, 14]))) for _ in range(count)]


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
            r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_alphabet():
    """The character that stands for each byte in byte-level vocabularies."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(0x100 + i) for i, b in enumerate(rest)}}


def pre_tokenizer(name, byte_level=True):
    """The Hugging Face pre-tokenizer that a name in tokenizer.ggml.pre stands for."""
    from tokenizers import Regex, pre_tokenizers as pt
    def split(pattern):
        return pt.Split(Regex(pattern), "isolated")
    steps = {
        "gpt-2": [split(GPT2)],
        "smollm": [pt.Digits(individual_digits=True), split(GPT2)],
        "llama-bpe": [split(LLAMA % "{1,3}")],
        "qwen2": [split(LLAMA % "")],
        "deepseek-v3": [split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK)],
    }[name]
    if byte_level and name in ("gpt-2", "smollm"):  # as their tokenizer.json has it: the expression inside ByteLevel
        steps[-1] = pt.ByteLevel(add_prefix_space=False, use_regex=True)
    elif byte_level:
        steps.append(pt.ByteLevel(add_prefix_space=False, use_regex=False))
    return pt.Sequence(steps)


ALIASES = {"starcoder": "smollm"}


def tokenizer(tokens, merges, pre, added=()):
    """A Hugging Face tokenizer. added: list of (text, special)."""
    from tokenizers import AddedToken, Tokenizer, decoders, models
    pre = ALIASES.get(pre, pre)
    pairs = [tuple(m.split(" ")) for m in merges]
    model = models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=pairs, ignore_merges=pre == "llama-bpe")
    t = Tokenizer(model)
    t.pre_tokenizer = pre_tokenizer(pre)
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(x, normalized=False, special=True) for x, special in added if special])
    t.add_tokens([AddedToken(x, normalized=False, special=False) for x, special in added if not special])
    return t


def read_gguf(path):
    """The metadata of a GGUF file."""
    with open(path, "rb") as f:
        data = f.read(64 << 20)
    at = 0
    def number(code):
        nonlocal at
        value = struct.unpack_from("<" + code, data, at)[0]
        at += struct.calcsize(code)
        return value
    def string():
        nonlocal at
        n = number("Q")
        at += n
        return data[at - n:at].decode("utf-8", "surrogateescape")
    codes = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    def value(kind):
        if kind == 8:
            return string()
        if kind == 9:
            element = number("I")
            return [value(element) for _ in range(number("Q"))]
        return number(codes[kind])
    assert data[:4] == b"GGUF", path
    at = 4
    number("I"), number("Q")
    count = number("Q")
    out = {}
    for _ in range(count):
        key = string()
        out[key] = value(number("I"))
    return out


def tokenizer_from_gguf(path):
    meta = read_gguf(path)
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    added = [(t, types[i] == 3) for i, t in enumerate(tokens) if types[i] in (3, 4)]
    return tokenizer(tokens, meta["tokenizer.ggml.merges"], meta["tokenizer.ggml.pre"], added)
