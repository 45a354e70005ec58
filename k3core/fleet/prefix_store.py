"""What the fleet needs to know of a cluster's prefix cache: how much of a session it still holds.

The interface is four calls: `hit` looks, `open` starts a request, `close` ends it, `clear` loses everything.
The pages are one pool, shared by running requests and by the prefixes that finished requests leave behind, as
in a unified page pool with KDA checkpoints.
"""


class PrefixStore:
    """Per-session prefixes in a pool of pages, the least recently used idle one evicted first.

    A prefix of n tokens takes ceil(n / page_tokens) pages for its MLA rows and state_pages for its
    checkpoint; a running request takes the pages its hit does not cover, and state_pages for its own state.
    Hits are whole multiples of page_tokens and leave at least the last prompt token to compute. pages None
    means no limit. A session below 0 has no prefix: nothing is looked up and nothing is kept.
    """

    def __init__(self, pages: int | None, page_tokens: int, state_pages: int):
        self.pages, self.page_tokens, self.state_pages = pages, page_tokens, state_pages
        self.clear()

    def clear(self) -> None:
        """Lose everything, as when the cluster fails."""
        self.total = 2**62 if self.pages is None else self.pages
        self.free = self.total
        self.idle_pages = 0
        self._idle: dict[int, int] = {}  # session -> tokens, least recently used first
        self._held: dict[int, list[int]] = {}  # session -> [tokens, running requests that read it]

    def need(self, tokens: int) -> int:
        """Pages of a prefix, or of a request of which nothing is cached."""
        return -(-tokens // self.page_tokens) + self.state_pages

    @property
    def active_pages(self) -> int:
        """Pages in use by running requests, the prefixes they read included."""
        return self.total - self.free - self.idle_pages

    def hit(self, session: int, prompt: int) -> int:
        """Prompt tokens that need not be computed; changes nothing."""
        held = self._held.get(session)
        tokens = held[0] if held else self._idle.get(session, 0)
        return min(tokens, max(0, prompt - 1)) // self.page_tokens * self.page_tokens

    def seed(self, session: int, tokens: int) -> None:
        """Put a prefix there from before the start; nothing happens if it is there or there is no room."""
        need = self.need(tokens)
        if session not in self._idle and need <= self.free:
            self._idle[session] = tokens
            self.free -= need
            self.idle_pages += need

    def open(self, session: int, prompt: int, need: int) -> int | None:
        """Take a starting request's pages, evicting idle prefixes; the hit in tokens, or None if no room.

        need: pages of the whole request, need(prompt + output tokens).
        """
        hit = self.hit(session, prompt) if session >= 0 else 0
        own_idle = self.need(self._idle[session]) if hit and session in self._idle else 0
        need -= hit // self.page_tokens
        if need > self.free + self.idle_pages - own_idle:
            return None
        if hit:
            if own_idle:
                self._held[session] = [self._idle.pop(session), 0]
                self.idle_pages -= own_idle
            self._held[session][1] += 1
        while self.free < need:
            pages = self.need(self._idle.pop(next(iter(self._idle))))
            self.idle_pages -= pages
            self.free += pages
        self.free -= need
        return hit

    def close(self, session: int, tokens: int, need: int, hit: int) -> None:
        """End a request of `tokens` in all: its pages return, its tokens stay as its session's prefix."""
        self.free += need - hit // self.page_tokens
        if session < 0 or tokens == 0:
            return
        held = self._held.get(session)
        if held:
            before = held[0]
        else:
            before = self._idle.pop(session, 0)
            self.idle_pages -= self.need(before) if before else 0
        after = max(before, tokens)
        self.free -= self.need(after) - (self.need(before) if before else 0)
        if held:
            held[0] = after
            held[1] -= 1 if hit else 0
            if held[1]:
                return
            del self._held[session]
        self._idle[session] = after
        self.idle_pages += self.need(after)
