"""What happens in the tab `page-table`: requests come, grow, fork and leave over one real pool of blocks."""

from collections import Counter

from k3core.paged_cache import BlockPool, PageTables
from k3core.sizing import blocks_per_request

STAGES = 8  # a request comes with 5/8 of its tokens and grows by an eighth at a time


class Timeline:
    """The pool, the requests over it, and one frame (plain data) per thing that happens.

    A request is let in only if it fits at full length besides what the running ones will still take; so growing
    never fails. `discrepancies` counts blocks whose references are not the tables that hold them, and tables that
    are not as long as the sizing formulas say: none, if the mechanism is right.
    """

    def __init__(self, layout, settings, num_blocks: int):
        self.layout, self.settings = layout, settings
        self.pool = BlockPool(num_blocks)
        self.tables = PageTables(self.pool, len(layout.groups))
        self.final: dict[str, int] = {}  # tokens of a request at full length
        self.tokens: dict[str, int] = {}  # tokens that a running request holds now
        self.waiting: list[str] = []
        self.to_fork: list[str] = []
        self.frames: list[dict] = []
        self.discrepancies = 0
        self.fullest = 0

    def play(self, requests: list) -> None:
        """Let requests (name, tokens, whether it forks) come one by one, and then leave in the same order."""
        self._record("empty")
        for name, tokens, forks in requests:
            self.final[name] = tokens
            self.to_fork += [name] if forks else []
            self._arrive(name)
            self._grow()
        self._settle()
        self.fullest = len(self.frames) - 1
        while self.tokens:
            self._leave(next(iter(self.tokens)))
            if self._let_in():
                self._settle()

    def need(self, tokens: int) -> list[int]:
        """Blocks of a request in each group."""
        return [blocks_per_request(group, tokens, self.settings) for group in self.layout.groups]

    def _room(self) -> int:
        """Free blocks that no running request will need to reach its full length."""
        promised = sum(sum(self.need(self.final[name])) - self._held(name) for name in self.tokens)
        return self.pool.free_blocks - promised

    def _held(self, name: str) -> int:
        return sum(map(len, self.tables.tables[name]))

    def _arrive(self, name: str) -> None:
        need = sum(self.need(self.final[name]))
        if need > self.pool.num_blocks - 1:
            self._record("refuse", name, need=need)
        elif need > self._room():
            self.waiting.append(name)
            self._record("wait", name, need=need, room=self._room())
        else:
            self._start(name, "arrive")

    def _let_in(self) -> bool:
        """Start those that wait, first come first served; whether there was one."""
        before = len(self.waiting)
        while self.waiting and sum(self.need(self.final[self.waiting[0]])) <= self._room():
            self._start(self.waiting.pop(0), "let_in")
        return len(self.waiting) < before

    def _start(self, name: str, kind: str) -> None:
        self.tokens[name] = -(-self.final[name] * 5 // STAGES)
        taken = self.tables.allocate(name, self.need(self.tokens[name]))
        self._record(kind, name, taken)

    def _grow(self) -> bool:
        """Let every running request grow by one stage; whether any did."""
        growing = [name for name, tokens in self.tokens.items() if tokens < self.final[name]]
        taken = [[] for _ in self.layout.groups]
        for name in growing:
            step = -(-self.final[name] // STAGES)
            self.tokens[name] = min(self.final[name], self.tokens[name] + step)
            for group, blocks in enumerate(self._fill_up(name)):
                taken[group] += blocks
        full = all(tokens == self.final[name] for name, tokens in self.tokens.items())
        if any(taken) or (growing and full):  # most growth stays within the blocks that are there
            self._record("grow", None, taken)
        return bool(growing)

    def _fill_up(self, name: str) -> list:
        """Append the blocks that a request's tokens need by now, and return them per group."""
        held = map(len, self.tables.tables[name])
        return self.tables.allocate(name, [need - have for need, have in zip(self.need(self.tokens[name]), held)])

    def _settle(self) -> None:
        """Let everybody grow to full length, then fork those that fork."""
        while self._grow():
            pass
        for name in [name for name in self.to_fork if name in self.tokens]:
            self.to_fork.remove(name)
            self._fork(name, name.lower())

    def _fork(self, name: str, fork: str) -> None:
        """The fork shares every block, then writes one token into blocks of its own."""
        tokens, written = self.tokens[name], written_next(self.layout, self.settings, self.tokens[name])
        extra = len(written) + sum(self.need(tokens + 1)) - sum(self.need(tokens))
        if extra > self._room():
            self._record("fork_refused", name, need=extra, room=self._room())
            return
        self.tables.fork(name, fork)
        self.tokens[fork] = self.final[fork] = tokens
        self._record("fork", fork, source=name)
        copied = [[] for _ in self.layout.groups]
        for group, index in written:
            copied[group].append(self.tables.writable(fork, group, index)[0])
        self.tokens[fork] = self.final[fork] = tokens + 1
        for group, blocks in enumerate(self._fill_up(fork)):
            copied[group] += blocks
        self._record("write", fork, copied, source=name)

    def _leave(self, name: str) -> None:
        blocks = [block for table in self.tables.tables[name] for block in table]
        self.tables.release(name)
        del self.tokens[name]
        self._record("leave", name, freed=[block for block in blocks if not self.pool.references[block]],
                     held=len(blocks))

    def _record(self, kind: str, name: str | None = None, taken=(), freed=(), **more) -> None:
        tables = {other: [list(table) for table in self.tables.tables[other]] for other in self.tokens}
        running = {other: running_index(self.layout, self.settings, tokens) for other, tokens in self.tokens.items()}
        self.frames.append({"kind": kind, "request": name, "tables": tables, "tokens": dict(self.tokens),
                            "running": running, "waiting": list(self.waiting), "freed": list(freed),
                            "taken": [list(blocks) for blocks in taken],
                            "used": self.pool.num_blocks - 1 - self.pool.free_blocks} | more)
        self.discrepancies += discrepancies(self.pool.references, tables)
        self.discrepancies += sum(list(map(len, table)) != self.need(self.tokens[other])
                                  for other, table in tables.items())
        self.discrepancies += self.pool.free_blocks != self.pool.references[1:].count(0)


def discrepancies(references: list, tables: dict) -> int:
    """Blocks that are not in exactly as many page tables as their reference count says; the null block in none."""
    held = Counter(block for groups in tables.values() for table in groups for block in table)
    return sum(held[block] != count for block, count in enumerate(references)) + (held[0] > 0)


def written_next(layout, settings, tokens: int) -> list:
    """The table entries (group, index) of a request of `tokens` tokens that its next token writes into: the block
    of rows that is part full, the running state, and the states of the drafts."""
    written = []
    for group, spec in enumerate(layout.groups):
        count = blocks_per_request(spec, tokens, settings)
        full = tokens % layout.block_size == 0
        if not spec.recurrent:
            written += [] if full else [(group, count - 1)]
            continue
        states = count - settings.drafts
        written += [] if full and settings.mode == "all" else [(group, states - 1)]
        written += [(group, index) for index in range(states, count)]
    return written


def running_index(layout, settings, tokens: int) -> list:
    """Where a request's page tables hold its running state: one index per group, None in a group of rows."""
    return [blocks_per_request(group, tokens, settings) - settings.drafts - 1 if group.recurrent else None
            for group in layout.groups]


def role(running: int | None, index: int) -> str:
    """What entry `index` of a page table holds, given `running_index` of its group: "rows", the "running" state, a
    state "kept" for reuse, or one of a "draft"."""
    if running is None:
        return "rows"
    return "running" if index == running else "kept" if index < running else "draft"


def contents(frame: dict, block_size: int) -> dict:
    """What each block in use holds: block -> {"role", "group", "rows", "holders"}, in the order of the tables."""
    held: dict[int, dict] = {}
    for name, tables in frame["tables"].items():
        tokens = frame["tokens"][name]
        for group, (table, running) in enumerate(zip(tables, frame["running"][name])):
            for index, block in enumerate(table):
                kind = role(running, index)
                rows = min(block_size, tokens - index * block_size) if kind == "rows" else 0
                seen = held.setdefault(block, {"role": kind, "group": group, "rows": 0, "holders": []})
                seen["rows"] = max(seen["rows"], rows)
                seen["role"] = "running" if kind == "running" else seen["role"]
                seen["holders"].append(name)
    return held
