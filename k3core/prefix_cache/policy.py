"""Checkpoint policies: at which token positions of a prompt the KDA state is kept for later requests.

Names follow vLLM: align is its mamba_cache_mode, marconi the rule of #37898 (after Marconi, arXiv
2411.19379), retain its prefix_cache_retention_interval (#45845, #52216).
"""

from dataclasses import dataclass

KINDS = ("dense", "align", "marconi", "retain")


@dataclass(frozen=True)
class Policy:
    """Where checkpoints are written, always at multiples of the grain.

    dense: at every one. align: at the last one of the prompt. marconi: also where the request left rows that
    others had computed before (the junction). retain: at the last one below the last token, at junctions,
    and every `interval` tokens. chunk: with align or marconi, also wherever a prefill chunk of that many
    tokens ends, counted from the hit.
    """

    kind: str
    chunk: int | None = None
    interval: int | None = None

    def check(self, grain: int) -> None:
        """Raise ValueError if chunk or interval does not fit the grain."""
        if self.chunk is not None and self.chunk < grain:
            raise ValueError(f"policy {self} has chunks shorter than the grain of {grain} tokens")
        if self.interval and self.interval % grain:
            raise ValueError(f"policy {self} must name a multiple of the grain of {grain} tokens")

    def boundaries(self, tokens: int, hit: int, rows: int, grain: int) -> list[int]:
        """Positions behind the hit where a prompt of `tokens` tokens leaves checkpoints, ascending.

        hit: tokens taken from the cache; rows: tokens of which the cache had the attention rows, at least
        hit. Both are multiples of the grain.
        """
        end = tokens // grain * grain
        if self.kind == "dense":
            return list(range(hit + grain, end + 1, grain))
        if self.kind == "retain":
            end = (tokens - 1) // grain * grain
        found = {end}
        if self.kind != "align":
            found.add(rows)
        step = self.chunk // grain * grain if self.chunk else self.interval
        if step:
            first = hit + step if self.chunk else (hit // step + 1) * step
            found.update(range(first, end + 1, step))
        return sorted(position for position in found if position > hit)

    def __str__(self) -> str:
        if self.kind == "retain":
            return f"retain:{self.interval}"
        return self.kind + (f"+{self.chunk}" if self.chunk else "")


def read_policy(text: str) -> Policy:
    """A policy by name: dense, align, align+N, marconi, marconi+N, retain:N (0: no interval), retain:none.

    Raises ValueError. retain:none keeps every one, as an engine without a retention interval does: dense.
    """
    kind, plus, chunk = text.partition("+")
    if kind in ("align", "marconi") and (not plus or _whole(chunk)):
        return Policy(kind, chunk=int(chunk) if plus else None)
    if text in ("dense", "retain:none"):
        return Policy("dense")
    kind, _, interval = text.partition(":")
    if kind == "retain" and (interval == "0" or _whole(interval)):
        return Policy("retain", interval=int(interval))
    raise ValueError(f"policy {text!r} is not known; choose dense, align, align+N, marconi, marconi+N or "
                     "retain:N, N in tokens")


def _whole(text: str) -> bool:
    """Whether text is a positive number of at most 9 digits."""
    return text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text) > 0
