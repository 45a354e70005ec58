"""The token bucket, which limits a class at the entrance of the fleet."""

from math import isfinite


class TokenBucket:
    """Tokens flow in at `rate` per second up to `burst`; a request passes if its tokens are there, whole.

    In any time t it passes at most burst + rate t tokens.
    """

    def __init__(self, rate: float, burst: float):
        if not (isfinite(rate) and rate > 0 and isfinite(burst) and burst > 0):
            raise ValueError(f"token_rate is {rate} and token_burst {burst}; both must be finite and above 0")
        self.rate, self.burst = rate, burst
        self.level, self.at = burst, 0.0

    def take(self, tokens: int, now: float) -> bool:
        """Whether `tokens` may pass at time `now` (never earlier than the call before); takes them if so."""
        self.level = min(self.burst, self.level + self.rate * (now - self.at))
        self.at = now
        if tokens > self.level:
            return False
        self.level -= tokens
        return True
