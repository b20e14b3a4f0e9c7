"""What every kind of request needs: where the server is, what is right, where to count."""

from __future__ import annotations

import random
import threading

from expected import Expected
from tally import Tally
from wire import PATIENCE_S, Line


class Context:
    def __init__(self, address: tuple[str, int], expected: list[Expected], tally: Tally, patience: float = PATIENCE_S):
        self.address, self.expected, self.tally, self.patience = address, expected, tally, patience
        self.short = [e for e in expected if not e.is_long]
        self.long = [e for e in expected if e.is_long]
        self.texts = [e for e in expected if e.prompt_ids is not None]
        self.first = min(self.texts, key=lambda e: (len(e.ids) < 4, len(e.ids)))  # short, but of several cycles
        self.crowd = threading.BoundedSemaphore(2)  # so that many at once stay below the limit of connections
        self.lines: list[Line] = []  # of the case that is running, for its failure

    def line(self, receive_buffer: int = 0) -> Line:
        line = Line(self.address, receive_buffer, self.patience)
        self.lines.append(line)
        return line

    def of_case(self) -> Context:
        """The same for one case, with connections of its own."""
        other = object.__new__(Context)
        other.__dict__.update(self.__dict__, lines=[])
        return other

    def pick(self, rng: random.Random) -> Expected:
        """Mostly short ones: they are what collides."""
        return rng.choice(self.long if self.long and rng.random() < 0.04 else self.short)

    def pick_text(self, rng: random.Random) -> Expected:
        return rng.choice(self.texts)
