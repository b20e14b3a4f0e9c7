#!/usr/bin/env python3
"""Writes the suites whose prompts are too long to write by hand.

  tools/make_suites.py [--check]

src/lab/suites/long-v1.json: prompts of about 2,000 and 4,000 tokens of five kinds of text that do not repeat themselves, composed from
word lists by a fixed generator (no text of anybody else's). src/lab/suites/boundary-v1.json: what may go wrong between two requests.
--check writes nothing and fails when a file is not what this script writes. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

SUITES = pathlib.Path(__file__).resolve().parent.parent / "src/lab/suites"
MASK = (1 << 64) - 1

NOUNS = """anchor apron archive arrow attic awning axle balcony ballast bamboo banner barley barrel basin basket beacon bellows bench
bicycle binder blanket boiler bonnet bracket bramble brazier breeze bridge brook broom bucket buckle bulletin burrow button cabin cable
candle canoe canvas capsule cargo carpet cart cask cellar chalk chapel charcoal chimney chisel cinder clasp clay cliff cloak clover cobble
collar comet compass copper coral cork corridor cotton cradle crane crate creek crest crystal cupboard current curtain cushion cymbal dagger
dairy dam dew dial ditch dock dome drawer drum dune easel elbow ember engine envelope fabric falcon feather fern ferry fiddle field filter
flask fleece flint flute foal fog forge fountain frame frost funnel furnace furrow gable gallery garden garnet gasket gate gauge geyser
glacier glade glove gorge grain granite gravel grove gutter hammock harbour harness harvest hatch hazel hearth hedge helmet heron hinge
holly hood hopper horn hull icicle ingot ink inlet iron island ivory jar jetty jewel journal jug juniper keel kennel kettle keyhole kiln
knot lace ladder lagoon lamp lantern larch latch lattice ledger lens lever lichen lighthouse lilac linen locket loom lute magnet mallet
manor mantle maple marble marsh mast meadow medal mill mirror mitten moat molten moor mortar moss motor mural nest nettle nickel nozzle
oar oasis orchard organ otter oven paddle panel parcel parchment parlour pasture pebble pedal pendulum pepper petal pier pigment pillar
pipe pivot plank plaster plateau plough plume pocket pollen pond porch potter prairie prism pulley pump quarry quartz quill quilt raft
rafter ravine reed reel reservoir ribbon ridge rivet robe roof rudder saddle sail salt satchel saucer scaffold scarf screw sculpture seam
shadow shale shawl shed shelf shell shingle shovel shutter sickle silk siphon slate sledge sleeve snare socket spindle spire spoke spring
spruce stable statue steam stencil stove strap stream summit swan tankard tapestry tar tavern telescope terrace thatch thicket thimble
thistle thread timber tinder torch tower trellis trench trough trowel tunnel turbine turret umbrella valley valve vase vault velvet
veranda vessel vineyard violin voyage wagon walnut warehouse weasel well wharf wheel whistle wicker willow winch window wool workshop
wreath yarn yoke zinc""".split()
VERBS = """admired altered approved arranged attached auctioned borrowed boxed braced brushed buried burnished catalogued chained charted
cleared clipped coated collected compared concealed copied counted covered crossed damaged delivered described discovered divided drained
drew dried dropped emptied enlarged examined exchanged exported fastened fetched filled filtered folded forgot found framed gathered
greased guarded heated hoisted imported inherited inspected insured labelled lent levelled lifted loaded locked lost lowered marked
measured mended mixed moved named noticed opened ordered packed painted patched photographed planted polished praised pressed priced
promised pushed questioned raised recorded refused reinforced released remembered removed repaired replaced rescued returned reviewed
rinsed rolled sanded scraped sealed searched selected shaped shared sharpened shipped sketched sold sorted spread stacked stained stirred
stored straightened stretched studied swept tested tied traced traded trimmed turned unloaded unpacked valued varnished warmed washed
weighed welded wrapped""".split()
ADJECTIVES = """ancient amber angular bare blunt bright brittle broad calm cheap chilly clean coarse cracked crooked crude curved damp dark
deep dense dim distant dry dull dusty early empty faded faint fine flat foreign fragile fresh frozen gentle glossy golden grey hard heavy
hollow honest humid idle inner jagged keen large late lean light local lonely long loose loud low mild modest muddy narrow neat new noisy
northern odd old open outer pale patient plain polished quiet rare raw rough round rural rusty salty secret shallow sharp short silent
simple slender slow smooth soft solid southern spare square stale steep stiff stout strange sturdy sudden tall tame thick thin tidy tiny
upright vacant vast warm weak western wet white wide wild wooden yellow""".split()
PLACES = "beside behind above below under near inside outside beyond across along around against toward within".split()
REASONS = """because although while until before after unless since whereas so once""".split()
ONSETS = "b br c cl d dr f fl g gr h j k l m n p pr qu r s sk st t th tr v w z".split()
VOWELS = "a e i o u ai ea io oa ou".split()
CODAS = "l m n r s t nd rk lt rn sh th x v p".split()
MONTHS = "January February March April May June July August September October November December".split()


class Draw:
    """SplitMix64: the same everywhere, for ever."""

    def __init__(self, seed: int):
        self.state = seed & MASK

    def below(self, n: int) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % n

    def of(self, items: list) -> object:
        return items[self.below(len(items))]

    def name(self) -> str:
        syllables = [self.of(ONSETS) + self.of(VOWELS) + (self.of(CODAS) if self.below(2) else "") for _ in range(2)]
        return "".join(syllables).capitalize()

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def thing(self) -> str:
        return f"{self.of(ADJECTIVES)} {self.of(NOUNS)}"


def prose(draw: Draw) -> str:
    who, thing, other, place = draw.name(), draw.thing(), draw.thing(), draw.thing()
    second = f"{draw.name()} {draw.of(VERBS)} {draw.of(['a', 'the', 'every', 'some', 'another'])} {draw.of(NOUNS)}"
    shapes = [
        f"{who} {draw.of(VERBS)} the {thing} {draw.of(PLACES)} a {place}, {draw.of(REASONS)} {second}.",
        f"{draw.of(PLACES).capitalize()} the {place}, {who} {draw.of(VERBS)} {draw.between(3, 97)} {draw.of(NOUNS)}s and the {other}.",
        f"The {thing} {draw.of(PLACES)} {draw.name()}'s {draw.of(NOUNS)} was {draw.of(VERBS)} on {draw.of(MONTHS)} {draw.between(1, 28)}, "
        f"{draw.of(REASONS)} {second}.",
        f'"{draw.of(ADJECTIVES).capitalize()} {draw.of(NOUNS)}s {draw.of(PLACES)} a {place}," said {who}, who {draw.of(VERBS)} the {other}.',
    ]
    return draw.of(shapes)


def code(draw: Draw) -> str:
    a, b, c = (draw.of(NOUNS) for _ in range(3))
    function = f"{draw.of(VERBS)}_{a}_{draw.between(10, 999)}"
    field, other = draw.of(ADJECTIVES), draw.of(VERBS)
    bodies = [
        f"    {c} = [{field}.{other} for {field} in {b} if {field}.{a} > {draw.between(2, 999)}]\n    return sorted({c})[:{draw.between(2, 60)}]",
        f"    {c} = {b}.get('{field}', {draw.between(1, 5000)})\n    while {c} % {draw.between(3, 89)}:\n        {c} -= {draw.between(1, 9)}\n"
        f"    return {c} * {draw.between(2, 77)}",
        f"    if not {b} or {b}[-1] == '{field}':\n        raise ValueError('{other} {c} {draw.between(100, 999)}')\n"
        f"    return {b}.replace('{draw.of(NOUNS)}', '{draw.of(ADJECTIVES)}')",
        f"    with open({b} + '.{field}') as {c}:\n        return {{line[{draw.between(1, 9)}:]: {draw.between(1, 400)} for line in {c} "
        f"if '{other}' in line}}",
    ]
    return f"def {function}({b}):\n{draw.of(bodies)}\n"


def problem(draw: Draw) -> str:
    who, n, m, k = draw.name(), draw.between(12, 480), draw.between(3, 29), draw.between(2, 17)
    thing, other, place = draw.of(NOUNS), draw.of(NOUNS), draw.thing()
    ask = draw.of(["how many", "what number of"])
    shapes = [
        f"{who} has {n} {thing}s, {draw.of(VERBS)} {k} and {draw.of(VERBS)} the rest in boxes of {m}; {ask} {other}s stay {draw.of(ADJECTIVES)}?",
        f"A {draw.thing()} costs {n} coins, a {draw.thing()} {m} less; {who} {draw.of(VERBS)} {k} of each: what is the {draw.of(ADJECTIVES)} bill?",
        f"If {m} {thing}s weigh as much as {k} {other}s of {n} grams, how heavy is {who}'s {draw.of(ADJECTIVES)} {thing} {draw.of(PLACES)} the {place}?",
        f"{who} walks {n} metres {draw.of(PLACES)} the {place}, then {m} times {k} metres {draw.of(PLACES)} a {other}; how far is {draw.name()}?",
        f"Of {n * k} {thing}s {draw.of(PLACES)} {who}'s {place}, one in {k} is {draw.of(ADJECTIVES)}; {draw.name()} {draw.of(VERBS)} {m}: {ask} {other}s remain?",
        f"Divide {n * m} {draw.of(ADJECTIVES)} {thing}s among {m} {other}s, {draw.of(REASONS)} {who} {draw.of(VERBS)} {k} for the {place}.",
    ]
    return draw.of(shapes)


def record(draw: Draw) -> str:
    return (
        f"{draw.between(10000, 99999)}; {draw.name()} {draw.name()}; {draw.thing()}; {draw.between(1, 28)} {draw.of(MONTHS)}; "
        f"{draw.between(3, 4999)}.{draw.between(10, 99)}; {draw.of(['paid', 'open', 'overdue', 'refunded', 'disputed'])}; {draw.of(NOUNS)} {draw.of(NOUNS)}"
    )


def scattered(draw: Draw) -> str:
    words = [draw.of([draw.of(NOUNS), draw.of(VERBS), draw.of(ADJECTIVES), draw.name(), str(draw.below(100000))]) for _ in range(draw.between(5, 12))]
    return " ".join(words) + draw.of([".", ";", "?", ":"])


# kind: (one piece, what stands between two, what is asked before and after)
KINDS = {
    "prose": (prose, " ", "Read this chronicle of a town.", "Retell what happened in your own words, in about two hundred words, beginning with the persons who acted most often."),
    "code": (code, "\n", "Read this Python module.", "Explain what the functions have in common, which of them can fail and how, and write a test for the last one."),
    "math": (problem, "\n", "Here are exercises for a class.", "Solve the last three exercises step by step, then say which of all of them is the hardest and why."),
    "extraction": (record, "\n", "These are records: number; customer; article; date; amount; state; shelf.", "List the records that are overdue, a line each with number, customer and amount, and say what they have in common."),
    "low-locality": (scattered, " ", "The following lines were mixed up by a faulty printer.", "Describe which kinds of words occur, guess three subjects that the original may have been about, and say why."),
}  # fmt: skip


def long_prompt(kind: str, seed: int, characters: int) -> str:
    piece, gap, before, after = KINDS[kind]
    draw, parts, length = Draw(seed), [], 0
    while length < characters:
        parts.append(piece(draw))
        length += len(parts[-1]) + len(gap)
    return f"{before}\n\n{gap.join(parts)}\n\n{after}"


# Characters that make about 2,000 and 4,000 tokens of the default model's tokenizer.
LONG = {
    "prose": (7600, 15250), "code": (5400, 11000), "math": (5850, 11800), "extraction": (4300, 8650), "low-locality": (5450, 10600),
}  # fmt: skip


def user(step: str, step_class: str, text: str, **more: object) -> dict:
    return {"id": step, "class": step_class, "messages": [{"role": "user", "content": text}], **more}


def long_suite() -> dict:
    steps = []
    for size in (0, 1):
        for at, kind in enumerate(LONG):
            steps.append(user(f"{kind}-{(2, 4)[size]}k", kind, long_prompt(kind, 1000 * size + at + 1, LONG[kind][size])))
    return {
        "suite_id": "long-v1", "version": 1,
        "description": "Prompts of about 2,000 and 4,000 tokens of five kinds of text that do not repeat themselves (at least 90 % of their runs of eight words occur once), each sent once to a cold server. Composed by tools/make_suites.py.",
        "cold": True, "repeats_allowed": False, "ordered": False, "nonce": True, "max_tokens": 256, "steps": steps,
    }  # fmt: skip


def boundary_suite() -> dict:
    story = "Write a long report about a year at a weather station on an island, month by month, with many details."
    next_text = "Name the three primary colours of light, separated by commas, and nothing else."
    canaries = json.loads((SUITES / "canary-v1.json").read_text())["steps"]
    audit = long_prompt("extraction", 77, 3300)

    def follow(after: str) -> dict:
        return user(f"next-{after}", "next", next_text, max_tokens=48)

    steps = [
        follow("fresh"),
        user("long", "long-then-next", story, max_tokens=512, ignore_eos=True), follow("after-long"),
        user("rollover", "rollover", audit, max_tokens=640, ignore_eos=True), follow("after-rollover"),
        user("early-end", "early-end", "Answer with the single word yes.", max_tokens=32), follow("after-early-end"),
        user("stop-text", "early-end", "Count from one to twenty in words, separated by commas.", max_tokens=96, stop=[","]), follow("after-stop-text"),
        user("cancel", "cancel", story, max_tokens=512, ignore_eos=True, action={"cancel_after_tokens": 8}), follow("after-cancel"),
        user("cancel-late", "cancel", story, max_tokens=512, ignore_eos=True, action={"cancel_after_tokens": 130}), follow("after-cancel-late"),
        user("reset", "reset", audit, max_tokens=640, ignore_eos=True, action={"cancel_after_tokens": 0}), follow("after-reset"),
        user("long-again", "long-then-next", story, max_tokens=512, ignore_eos=True), follow("after-long-again"),
        {"rounds": 70, "steps": canaries},
        follow("after-canaries"),
    ]  # fmt: skip
    return {
        "suite_id": "boundary-v1", "version": 1,
        "description": "What one request may leave to the next: after a long answer, a long prompt and answer across position 2,048, an early end, a stop text, a client that leaves early, late, or before the first token; then the canaries seventy times on the same process, across the 28th and the 58th round, where counters have rolled over before. The prompt called next is the first that the process sees, and must be answered the same ever after.",
        "cold": True, "repeats_allowed": True, "ordered": True, "nonce": False, "max_tokens": 32, "steps": steps,
    }  # fmt: skip


def written(suite: dict) -> str:
    head = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in suite.items() if key != "steps"]
    steps = ",\n".join("    " + json.dumps(step, ensure_ascii=True) for step in suite["steps"])
    return "{\n" + "\n".join(head) + '\n  "steps": [\n' + steps + "\n  ]\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check, wrong = parser.parse_args().check, 0
    for suite in (long_suite(), boundary_suite()):
        path, text = SUITES / f"{suite['suite_id']}.json", written(suite)
        if not check:
            path.write_text(text)
        elif path.read_text() != text:
            print(f"{path.name} is not what this script writes", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
