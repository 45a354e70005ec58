"""The tiny model: tokens per second, plain and with prompt look-up, and acceptance by position.

Prompts are 400 characters from the middle of files of this Python's own standard library that the model was not
trained on (with CPython 3.13.0: exactly those held out; see tools/train_tiny.py).
"""

import hashlib
import sysconfig
from pathlib import Path
from time import process_time

from k3core.decode import Gumbel, PromptLookup, Speculation, acceptance_by_position, encode, tiny_model
from k3core.replayssm import ProjectionStore

FILES, NEW, DRAFTS = 8, 150, 7
SKIPPED = {"site-packages", "test", "tests", "idle_test", "encodings"}


def prompts():
    """FILES prompts, lists of token ids."""
    root, found = Path(sysconfig.get_path("stdlib")), []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        held_out = hashlib.sha256(name.as_posix().encode()).digest()[0] < 13
        if held_out and not SKIPPED & set(name.parts) and len(found) < FILES:
            text = path.read_bytes()
            if text.isascii() and len(text) > 2000:
                found.append(encode(text[1000:1400].decode()))
    return found


def plain(ids, sampler):
    """Seconds for NEW tokens after the first, which the prompt gives, by plain decoding."""
    stream = tiny_model().stream(ids, sampler=sampler)
    next(stream)
    start = process_time()
    for _ in range(NEW):
        next(stream)
    return process_time() - start


def looked_up(ids, sampler):
    """(seconds for NEW tokens after the first, the rounds it took) with prompt look-up."""
    speculation = Speculation(tiny_model(), ids, PromptLookup(), ProjectionStore, DRAFTS, sampler)
    start = process_time()
    rounds = speculation.run(NEW + 1)
    return process_time() - start, rounds


def main():
    """Print a line per temperature."""
    given = prompts()
    start = process_time()
    for ids in given:
        tiny_model().prefill(ids)
    read = sum(map(len, given)) / (process_time() - start)
    print(f"  {len(given)} prompts, read at {read:,.0f} tokens/s; {NEW} new tokens each, {DRAFTS} drafts a round")
    for temperature in (0.0, 0.5, 1.0):
        samplers = [Gumbel(seed, temperature) for seed in range(len(given))]
        slow = sum(map(plain, given, samplers))
        runs = [looked_up(ids, sampler) for ids, sampler in zip(given, samplers)]
        rounds, total = [r for _, part in runs for r in part], NEW * len(given)
        shares = " ".join(f"{right / drafted:.2f}" for right, drafted in acceptance_by_position(rounds))
        print(f"  temperature {temperature:.1f}: plain {total / slow:>5,.0f} tokens/s, "
              f"look-up {total / sum(seconds for seconds, _ in runs):>5,.0f}, "
              f"{total / len(rounds):.2f} tokens a round; accepted by position {shares}")


if __name__ == "__main__":
    main()
