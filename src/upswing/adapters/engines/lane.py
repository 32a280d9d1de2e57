"""What does one model do in its turn? A token for everyone who speaks, then some of a prompt.

Requests join and leave at each token. Who has ended, or has nobody left who listens, gives up the row
at once; the last row takes its place.

    waiting ─▶ reading, a portion a turn ─▶ speaking, a token a turn ─▶ ended
                    └──────────────┴─▶ left: nobody listens
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from random import Random
from typing import Any

import torch
from torch import Tensor

from upswing.adapters.engines.reading import Read, Reader
from upswing.adapters.engines.slab import Slab
from upswing.errors import Transient
from upswing.serve.ports import Finish, Piece, Prompt, Top
from upswing.serve.sampling import Taste, draw, likeliest, logprobs
from upswing.serve.schedule import portion
from upswing.serve.spelling import Spelling

Said = Piece | Exception


@dataclass(eq=False, slots=True)
class Speaker:
    """One request while it is worked on."""

    prompt: Prompt
    read: Read
    chance: Random
    spelling: Spelling
    limit: int
    """Tokens that may be drawn."""
    tell: Callable[[Said], None]
    done: int = 0
    """Tokens of the prompt that the model has read."""
    drawn: list[int] = field(default_factory=list)
    left: bool = False
    """Nobody listens any more."""

    @property
    def taste(self) -> Taste:
        return Taste(self.prompt.temperature, self.prompt.top_p)

    @property
    def length(self) -> int:
        """Tokens that the model has seen."""
        return self.done + max(0, len(self.drawn) - 1)


@dataclass(slots=True)
class Counts:
    """So far."""

    steps: int = 0
    drawn: int = 0
    cancelled: int = 0


class Lane:
    """The requests of one model that are in the batch."""

    def __init__(self, name: str, layers: int, reader: Reader, ends: frozenset[int]) -> None:
        self.name = name
        self._layers, self._reader, self._ends = layers, reader, ends
        self._slab = Slab(layers)
        self._speaking: list[Speaker] = []
        self._reading: deque[Speaker] = deque()

    def __len__(self) -> int:
        return len(self._speaking) + len(self._reading)

    def join(self, speaker: Speaker) -> None:
        self._reading.append(speaker)

    def turn(self, model: Any, budget: int, counts: Counts) -> None:
        """A token for those who speak; `budget` tokens of prompts for those who wait to."""
        self._let_go(counts)
        if self._speaking:
            counts.steps += 1
            counts.drawn += len(self._speaking)
            self._speak(model)
        while self._reading and (count := portion(self._unread(), budget)):
            budget -= count
            self._read(model, count)
        if not self:
            self._slab = Slab(self._layers)  # what a crowd needed is given back

    def fail(self, error: Exception) -> None:
        """Everybody here hears why it ends."""
        for speaker in (*self._speaking, *self._reading):
            speaker.tell(error)
        self._speaking, self._reading = [], deque()
        self._slab = Slab(self._layers)

    # ── passes ───────────────────────────────────────────────────────────────────────────────────

    def _speak(self, model: Any) -> None:
        seen = self._slab.speak([speaker.length for speaker in self._speaking])
        tokens_B1 = torch.tensor([[each.drawn[-1]] for each in self._speaking], dtype=torch.long)
        speaking = list(self._speaking)
        ended = self._draw(speaking, self._pass(model, tokens_B1, seen))
        for speaker in ended:
            self._leave(self._speaking.index(speaker))

    def _read(self, model: Any, count: int) -> None:
        """A portion of the first prompt; behind its end, the first token."""
        speaker, row = self._reading[0], len(self._speaking)
        part = speaker.read.ids[speaker.done : speaker.done + count]
        seen = self._slab.read(row, speaker.done, count)
        logits_1V = self._pass(model, torch.tensor([part], dtype=torch.long), seen)
        speaker.done += count
        if speaker.done < len(speaker.read.ids):
            return
        ended = self._draw([speaker], logits_1V)
        self._reading.popleft()
        if ended:
            self._slab.clear(row)
        else:
            self._speaking.append(speaker)

    def _pass(self, model: Any, tokens_BT: Tensor, seen: dict[str, Tensor]) -> Tensor:
        out = model(
            input_ids=tokens_BT,
            past_key_values=self._slab.cache,
            use_cache=True,
            logits_to_keep=1,
            **seen,
        )
        logits_BV: Tensor = out.logits[:, -1]
        return logits_BV

    def _unread(self) -> int:
        return len(self._reading[0].read.ids) - self._reading[0].done

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    def _draw(self, speakers: Sequence[Speaker], logits_BV: Tensor) -> list[Speaker]:
        """The next token of each; those that have ended with it."""
        logps_BV = logprobs(logits_BV)
        chances = [each.chance.random() if each.taste.temperature else 0.0 for each in speakers]
        tokens = draw(logps_BV, [each.taste for each in speakers], chances)
        ended = []
        for row, (speaker, token) in enumerate(zip(speakers, tokens, strict=True)):
            logprob = float(logps_BV[row, token])
            if not isfinite(logprob):
                speaker.tell(Transient(f"What {self.name} computes is no number."))
                ended.append(speaker)
                continue
            piece = self._piece(speaker, token, logprob, logps_BV[row])
            speaker.tell(piece)
            if piece.finish:
                ended.append(speaker)
        return ended

    def _piece(self, speaker: Speaker, token: int, logprob: float, logps_V: Tensor) -> Piece:
        first = not speaker.drawn
        speaker.drawn.append(token)
        text, finish = self._spelled(speaker, token)
        asked = speaker.prompt.top_logprobs
        if finish and not speaker.spelling.stopped:
            ids = tuple(speaker.drawn)
            self._reader.said(speaker.read, ids, ended=token in self._ends)
        return Piece(
            text=text,
            token_ids=(token,),
            logprobs=(min(logprob, 0.0),),
            tokens=() if asked is None else (self._reader.word(token),),
            top=(self._top(logps_V, asked),) if asked else (),
            finish=finish,
            prompt_token_ids=speaker.read.ids if first else None,
        )

    def _spelled(self, speaker: Speaker, token: int) -> tuple[str, Finish | None]:
        spelling = speaker.spelling
        if token in self._ends:
            return spelling.end(), "stop"
        text, full = spelling.add(token), len(speaker.drawn) >= speaker.limit
        if full:
            text += spelling.end()
        if spelling.stopped:
            return text, "stop"
        return text, "length" if full else None

    def _top(self, logps_V: Tensor, count: int) -> tuple[Top, ...]:
        return tuple(
            (token, self._reader.word(token), logprob)
            for token, logprob in likeliest(logps_V, count)
        )

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────

    def _let_go(self, counts: Counts) -> None:
        """Nobody listens: a row is given up before anything more is done for it."""
        for speaker in [each for each in self._speaking if each.left]:
            self._leave(self._speaking.index(speaker))
            counts.cancelled += 1
        gone = [each for each in self._reading if each.left]
        for speaker in gone:
            if speaker.done:
                self._slab.clear(len(self._speaking))
            self._reading.remove(speaker)
            counts.cancelled += 1

    def _leave(self, row: int) -> None:
        """The last who speaks takes this row, and whoever is being read to moves up."""
        last = len(self._speaking) - 1
        if row != last:
            self._slab.move(last, row, self._speaking[last].length)
            self._speaking[row] = self._speaking[last]
        self._speaking.pop()
        free = last
        if self._reading and self._reading[0].done:
            self._slab.move(last + 1, last, self._reading[0].done)
            free = last + 1
        self._slab.clear(free)
