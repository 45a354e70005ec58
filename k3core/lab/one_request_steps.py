"""One request on its way: the mechanisms of the home page's figure, each the one that its own tab takes apart."""

from dataclasses import dataclass

import numpy as np

from k3core.fleet.affinity import fail_over
from k3core.fleet.cluster import Budget, ClusterSpec, RequestClass
from k3core.fleet.hashing import make_scheme
from k3core.fleet.latency import decode_step
from k3core.fleet.simulate import Fleet
from k3core.fleet.simulate import run as simulated
from k3core.fleet.traffic import Requests
from k3core.kda import KDATokens, gate_lower_bound, kda_trace, l2norm
from k3core.lab.prefix_requests import draw_tokens
from k3core.paged_cache import BlockPool, PageTables
from k3core.prefix_cache import Hit, Policy, PrefixCache
from k3core.replayssm import ProjectionStore

CLUSTERS = ("a", "b", "c", "d")
HASH_BLOCK, PAGE, INTERVAL = 512, 1536, 2048  # tokens: found, stored, and kept as a state at least this often
GROUPS = 3  # KDA groups beside the one of MLA rows: K3's 69 KDA layers in three times 23
BLOCKS = 96  # of one cluster's pool, drawn one by one
FIRST, FRESH, ANSWER = 8000, 1000, 300  # tokens of turn 1, new ones of turn 2, of its answer
VIP, ORDINARY = 0, 1
SLOTS = {VIP: 2, ORDINARY: 6}
CLASSES = (RequestClass("vip", 0, Budget(SLOTS[VIP], None, 40)),
           RequestClass("ordinary", 1, Budget(SLOTS[ORDINARY], None, 60)))
SPEC = ClusterSpec(sum(SLOTS.values()), None, page_tokens=HASH_BLOCK)
BURST_PROMPT, BURST_OUTPUT, GAP = 3000, 150, 0.1  # tokens of an ordinary request; seconds from one to the next
TOKEN_SECONDS = decode_step(4, FIRST)
ACCEPTANCE = 0.7  # that a draft is right, if the one before was
HEADS, DK, DV = 2, 8, 12  # the small KDA layer whose state is really computed
SHOWN = 4  # verify rounds that are computed and drawn


@dataclass(frozen=True)
class Route:
    """Where a session goes: all clusters in its order of preference, and the first that is up."""

    order: tuple
    cluster: str

    @property
    def at_home(self) -> bool:
        """Whether this is the cluster that served turn 1."""
        return self.cluster == self.order[0]


def route(session: str, down: str) -> Route:
    """Rendezvous hashing of the session's name over the clusters; `down` is one of them, or "none"."""
    scheme = make_scheme("rendezvous", CLUSTERS)
    failed = [] if down == "none" else [down]
    order = scheme.rank([session], len(CLUSTERS))[0]
    return Route(tuple(CLUSTERS[i] for i in order), CLUSTERS[fail_over(scheme, [session], failed)[0]])


@dataclass(frozen=True)
class Queue:
    """What the request met: who ran and who waited when it arrived, its own wait and first token in seconds."""

    running: int  # ordinary requests
    waiting: int
    wait: float
    ttft: float


def admit(burst: int, vip: bool, prompt: int, hit: int) -> Queue:
    """Strict reservation on the cluster, after `burst` ordinary requests: slots and a share of the prefill each."""
    n = burst + 1
    own = VIP if vip else ORDINARY
    requests = Requests(
        arrival=GAP * np.arange(n), klass=np.array([ORDINARY] * burst + [own], np.int64),
        session=np.array([-1] * burst + [0], np.int64), prompt=np.array([BURST_PROMPT] * burst + [prompt], np.int64),
        output=np.array([BURST_OUTPUT] * burst + [ANSWER], np.int64),
        decode=TOKEN_SECONDS * np.array([BURST_OUTPUT] * burst + [ANSWER]))
    fleet = Fleet(1, SPEC, CLASSES, "strict")
    done = simulated(requests, fleet, warm=[(burst, hit)] if hit else [])
    now, others = requests.arrival[-1], slice(0, burst)
    inside = done.end[others] > now
    running = inside & (done.start[others] <= now)
    return Queue(int(running.sum()), int((inside & ~running).sum()), float(done.wait[-1]), float(done.ttft[-1]))


class Cluster:
    """A pool of pages and the prefix cache over it, in which turn 1 may have left its rows and states."""

    def __init__(self):
        tables = PageTables(BlockPool(BLOCKS + 1), 1 + GROUPS)
        self.cache = PrefixCache(tables, PAGE, HASH_BLOCK, Policy("retain", interval=INTERVAL), decode=True)
        self.others = []

    def serve(self, tokens: list) -> tuple:
        """Prefill a whole prompt and release it -> the positions at which a state was kept."""
        self.cache.start("turn 1", tokens)
        self.cache.landed("turn 1")
        saves = self.prefill("turn 1", tokens, 0)
        self.cache.release("turn 1")
        return saves

    def occupy(self, requests: int) -> None:
        """Running requests of others take their pages and states from the same pool."""
        for i in range(requests):
            pages = -(-(BURST_PROMPT + BURST_OUTPUT) // PAGE)
            for group in self.cache.tables.allocate(f"other {i}", [pages] + [1] * GROUPS):
                self.others += group

    def prefill(self, name: str, tokens: list, done: int) -> tuple:
        """Compute the prompt from `done` on -> the positions at which a state was kept."""
        saves = []
        while done < len(tokens):
            step = self.cache.plan(name, len(tokens) - done)
            self.cache.commit(name, tokens[step.start : step.end])
            done = step.end
            saves += [done] if step.saves else []
        return tuple(saves)

    def decode(self, name: str, answer: list, accepted: list, window: int) -> tuple:
        """Reserve a window, keep the accepted tokens, round by round -> the positions at which a state was kept."""
        done, saves = 0, []
        for kept in accepted:
            while kept:  # a window ends where a checkpoint is due; the rest of the round is another step
                step = self.cache.plan(name, window)
                now = min(kept, step.end - step.start)
                self.cache.commit(name, answer[done : done + now])
                saves += [step.end] if step.saves and now == step.end - step.start else []
                done, kept = done + now, kept - now
        return tuple(saves)

    def blocks(self, hit: Hit | None = None) -> str:
        """What every block of the pool holds, one letter each: see `BLOCK_KINDS` of the view."""
        tables, cache, letters = self.cache.tables.tables.get("turn 2"), self.cache, []
        others, shared = set(self.others), set(hit.pages) if hit else ()
        rows = set(tables[0]) if tables else ()
        states = {block for group in tables[1:] for block in group} if tables else ()
        for block in range(1, BLOCKS + 1):
            letters.append("o" if block in others else "h" if block in shared else "r" if block in rows
                           else "s" if block in states else "k" if cache.checkpoints.of_block(block)
                           else "m" if cache.rows.of_block(block) else ".")
        return "".join(letters)


def draw_accepted(drafts: int, rng) -> list:
    """Tokens kept by each verify round until the answer is complete: one, and the drafts up to the first wrong."""
    kept, left = [], ANSWER
    while left:
        wrong = np.flatnonzero(rng.random(drafts) >= ACCEPTANCE)
        kept.append(min(left, 1 + (int(wrong[0]) if len(wrong) else drafts)))
        left -= kept[-1]
    return kept


def replay_rounds(accepted: list, drafts: int, keep_rejected: bool, rng) -> float:
    """Verify rounds on a real state -> the largest difference from plain decoding of the accepted tokens.

    A window is the committed token and its drafts; those behind the accepted ones must leave no trace.
    """
    window = drafts + 1
    state = rng.standard_normal((HEADS, DK, DV), np.float32)
    store = ProjectionStore(state, np.zeros((3, 1), np.float32), window)
    for kept in accepted:
        tokens = draw_window(window, rng)
        store.advance(tokens)
        store.commit(window if keep_rejected else kept)
        *_, (_, _, state) = kda_trace(*(part[:kept] for part in tokens[:5]), state)
    return float(np.abs(store.state - state).max())


def draw_window(window: int, rng) -> KDATokens:
    """Inputs of a window of tokens, as a KDA layer makes them."""
    q, k = l2norm(rng.standard_normal((2, window, HEADS, DK), np.float32))
    v = rng.standard_normal((window, HEADS, DV), np.float32)
    g = gate_lower_bound(rng.standard_normal((window, HEADS, DK), np.float32), np.zeros(HEADS, np.float32))
    return KDATokens(q, k, v, g, rng.random((window, HEADS), np.float32), np.zeros((window, 1), np.float32))


def prompts(shared: int, rng) -> tuple:
    """Tokens of turn 1, of turn 2, which begins with the first `shared` of them, and of its answer."""
    first = draw_tokens(rng, FIRST, 0)
    return first, first[:shared] + draw_tokens(rng, FRESH, 1), draw_tokens(rng, ANSWER, 2)


def resume_at(saves: tuple, shared: int, prompt: int) -> int:
    """Where the request may resume, without a hash or an index: the last kept state within what is the same."""
    return max((end for end in saves if end <= min(shared, prompt - 1)), default=0)
