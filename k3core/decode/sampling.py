"""Choosing the next token: the most likely one, or one drawn with noise that hangs on seed and position alone.

Adding Gumbel noise to the logits and taking the largest draws from softmax(logits / temperature). The noise of
a position is the same however decoding got there, so speculative, resumed and replayed decoding draw the text
of plain decoding. Source: Maddison, Tarlow, Minka 2014 (A* sampling, arXiv 1411.0030), section 2.
"""

import numpy as np


class Greedy:
    """Chooses the largest logit."""

    def scores(self, logits, position):
        """What is compared: logits [vocab], float32 or float64, for the token at `position` (the first of the prompt
        has 0) -> [vocab]."""
        return logits

    def choose(self, logits, position):
        """The chosen token id, an int; a tie goes to the smaller id. Arguments as for `scores`."""
        return int(np.argmax(self.scores(logits, position)))

    def choose_with_margin(self, logits, position):
        """The chosen token id and its margin: (int, float). Arguments as for `scores`."""
        scores = self.scores(logits, position)
        return int(np.argmax(scores)), margin(scores)


class Gumbel(Greedy):
    """Draws from softmax(logits / temperature); the same seed, position and logits give the same token.

    seed is an int from 0, temperature a number from 0, which is greedy. Raises ValueError. The noise has the
    same bits on every platform but for the last ones of a logarithm.
    """

    def __init__(self, seed, temperature):
        if not isinstance(seed, int) or seed < 0:
            raise ValueError(f"seed must be an integer from 0, not {seed!r}")
        if not 0 <= temperature < np.inf:
            raise ValueError(f"temperature must be a finite number from 0, not {temperature!r}")
        self.seed, self.temperature = seed, temperature

    def scores(self, logits, position):
        """logits + temperature * noise, in float64: a lead over the second best is in units of a logit."""
        if self.temperature == 0:
            return logits
        noise = -np.log(np.random.default_rng([self.seed, position]).standard_exponential(len(logits)))
        return logits + self.temperature * noise


def margin(scores):
    """By how much the best of scores [vocab] leads over the second best, a float."""
    second, first = np.sort(scores)[-2:]
    return float(first - second)
