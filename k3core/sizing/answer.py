"""The whole answer for one model and one set of settings, every number with its derivation."""

from dataclasses import replace

from ..models import Model
from .capacity import reported_tokens, reported_tokens_before
from .derivation import Derivation, byte_answers
from .groups import blocks_per_request, state_slots
from .layout import Layout, make_layout
from .pools import STATE_SLOTS, two_pool_ratio
from .settings import MODES, Settings, resolve


def size(model: Model, settings: Settings = Settings()) -> dict:
    """Everything about a model's cache as plain data: bytes and blocks of one TP rank, and their derivation.

    None where something was not given: num_blocks, max_concurrency, reported_tokens, limit need memory or a number
    of blocks; blocks_per_request and what follows from it need a max_model_len. Raises ValueError for settings that
    do not fit the model.
    """
    settings = resolve(model, settings)
    layout, steps = make_layout(model, settings), Derivation()
    answer = {"model": model.name, "title": model.title, "note": model.note,
              "settings": {name: getattr(settings, name) for name in Settings.__dataclass_fields__}}
    answer |= byte_answers(model, settings, steps)
    answer |= _layout_answers(layout, settings, steps)
    answer |= _request_answers(model, layout, settings, steps)
    answer |= _pool_answers(layout, settings, answer["blocks_per_request"], steps)
    answer["two_pool_ratio"] = _two_pools(settings, answer["token_equivalent"], steps)
    answer["policy"] = _policy(model, answer["bytes_per_token"], steps)
    answer["derivation"] = steps.steps
    return answer


def _layout_answers(layout: Layout, settings: Settings, steps: Derivation) -> dict:
    _block_steps(layout, settings, steps)
    layers = sum(len(group.layers) for group in layout.groups)
    steps.add("group_size", f"rule {settings.grouping}: layers per group, from the layers of each kind",
              layout.group_size, **_layers_by_kind(layout))
    steps.add("padding_layers", "groups * group_size - layers" if not layout.group_bytes else "none: one page per layer",
              layout.padding_layers, groups=len(layout.groups), group_size=layout.group_size, layers=layers)
    if layout.group_bytes:
        steps.add("block_bytes", "bytes of the widest group: a page per layer", layout.block_bytes,
                  group_bytes=list(layout.group_bytes))
    else:
        steps.add("block_bytes", "page_bytes * group_size", layout.block_bytes, page_bytes=layout.page_bytes,
                  group_size=layout.group_size)
    return {"block_size": layout.block_size, "page_bytes": layout.page_bytes,
            "padding_percent": layout.padding_percent, "padding_layers": layout.padding_layers,
            "group_size": layout.group_size, "block_bytes": layout.block_bytes,
            "groups": [{"kind": group.kind, "layers": len(group.layers), "block_size": group.block_size,
                        "layer_indices": list(group.layers)} for group in layout.groups]}


def _layers_by_kind(layout: Layout) -> dict[str, int]:
    counts: dict[str, int] = {}
    for group in layout.groups:
        counts[group.kind] = counts.get(group.kind, 0) + len(group.layers)
    return counts


def _block_steps(layout: Layout, settings: Settings, steps: Derivation) -> None:
    state, token, align = layout.state_bytes, layout.token_bytes, settings.align
    if layout.block_size is None:
        steps.add("page_bytes", "state_bytes: there is no attention to share the page with", layout.page_bytes,
                  state_bytes=state)
        return
    if not state:
        fixed = "align" if layout.block_size == align else "fixed by the layout"
        steps.add("block_size", f"{fixed}: there is no state to fit", layout.block_size, align=align)
    elif settings.mode == "all":
        steps.add("block_size", "step * ceil(ceil(state_bytes / token_bytes) / step), step = lcm(chunk, align)",
                  layout.block_size, state_bytes=state, token_bytes=token, align=align)
    else:
        steps.add("block_size", "align * ceil(state_bytes / (align * token_bytes))", layout.block_size,
                  state_bytes=state, token_bytes=token, align=align)
    if not layout.group_bytes:
        steps.add("page_bytes", "block_size * token_bytes", layout.page_bytes, block_size=layout.block_size,
                  token_bytes=token)
    if state:
        steps.add("padding_percent", "100 * (page_bytes - state_bytes) / state_bytes", layout.padding_percent,
                  page_bytes=layout.page_bytes, state_bytes=state)


def _request_answers(model: Model, layout: Layout, settings: Settings, steps: Derivation) -> dict:
    tokens = settings.max_model_len
    recurrent = any(group.recurrent for group in layout.groups)
    unknown = dict.fromkeys(("slots_per_request", "blocks_per_request", "blocks_per_request_replay",
                             "blocks_per_request_by_mode"))
    if tokens is None:
        return unknown
    slots = {"snapshots": 0, "replay": 0}
    if recurrent:
        held = {"none": "1", "align": "2", "all": "ceil(max_model_len / block_size)"}[settings.mode]
        for name, replay, formula in (("snapshots", False, f"{held} + drafts"), ("replay", True, held)):
            slots[name] = steps.add(f"slots_per_request.{name}", formula, state_slots(
                settings.mode, settings.drafts, tokens, layout.block_size, replay), mode=settings.mode,
                drafts=settings.drafts)
    by_mode = {mode: make_layout(model, other).blocks_per_request(tokens, other)
               for mode in MODES if (other := replace(settings, mode=mode))} if recurrent else None
    needs = [blocks_per_request(group, tokens, settings) for group in layout.groups]
    need = steps.add("blocks_per_request", " + ".join(f"blocks_{i}" for i in range(len(needs))), sum(needs),
                     **{f"blocks_{i}": blocks for i, blocks in enumerate(needs)}, max_model_len=tokens)
    return {"slots_per_request": slots, "blocks_per_request": need,
            "blocks_per_request_replay": layout.blocks_per_request(tokens, settings, replay=True),
            "blocks_per_request_by_mode": by_mode}


def _pool_answers(layout: Layout, settings: Settings, need: int | None, steps: Derivation) -> dict:
    blocks, tokens = settings.num_blocks, settings.max_model_len
    if settings.memory_bytes is not None:
        blocks = steps.add("num_blocks", "floor(memory_bytes / block_bytes)",
                           settings.memory_bytes // layout.block_bytes, memory_bytes=settings.memory_bytes,
                           block_bytes=layout.block_bytes)
    answer = {"num_blocks": blocks, "max_concurrency": None, "max_concurrency_replay": None, "reported_tokens": None,
              "reported_tokens_before": None, "reported_tokens_at": None, "limit": None}
    if blocks is None or need is None:
        return answer
    answer["max_concurrency"] = steps.add("max_concurrency", "num_blocks / blocks_per_request", blocks / need,
                                          num_blocks=blocks, blocks_per_request=need)
    answer["max_concurrency_replay"] = blocks / layout.blocks_per_request(tokens, settings, replay=True)
    answer["reported_tokens"] = steps.add(
        "reported_tokens", "floor(num_blocks * max_model_len / blocks_per_request)",
        reported_tokens(blocks, need, tokens), num_blocks=blocks, max_model_len=tokens, blocks_per_request=need)
    answer["reported_tokens_before"] = steps.add(
        "reported_tokens_before", "floor(num_blocks / groups) * smallest block_size",
        reported_tokens_before(blocks, layout.groups), num_blocks=blocks, groups=len(layout.groups),
        block_size=min(group.block_size or tokens for group in layout.groups))
    answer["reported_tokens_at"] = [
        {"max_model_len": length,
         "tokens": reported_tokens(blocks, layout.blocks_per_request(length, settings), length)}
        for length in (max(1, tokens // 64), max(1, tokens // 16), max(1, tokens // 4), tokens)]
    answer["limit"] = _limit(layout, settings, blocks, need, steps)
    return answer


def _limit(layout: Layout, settings: Settings, blocks: int, need: int, steps: Derivation) -> dict:
    """Requests at once, long and short, and what kind of cache most of a long one is."""
    held = {"attention": 0, "state": 0, "window": 0}
    for group in layout.groups:
        kind = "state" if group.recurrent else "window" if group.window else "attention"
        held[kind] += blocks_per_request(group, settings.max_model_len, settings)
    shortest = layout.blocks_per_request(1, settings)
    longest = steps.add("limit.requests_at_max_model_len", "floor(num_blocks / blocks_per_request)", blocks // need,
                        num_blocks=blocks, blocks_per_request=need)
    most = steps.add("limit.requests_at_one_token", "floor(num_blocks / blocks_of_one_token)", blocks // shortest,
                     num_blocks=blocks, blocks_of_one_token=shortest)
    return {"requests_at_max_model_len": longest, "requests_at_one_token": most,
            **{f"{kind}_blocks": count for kind, count in held.items()},
            "binds": max(held, key=held.get) if longest else "none fits"}


def _two_pools(settings: Settings, equivalent: int | None, steps: Derivation) -> dict | None:
    """State pool over K/V pool for requests of max_model_len, per way of reserving slots (SGLang)."""
    if equivalent is None or settings.max_model_len is None:
        return None
    answer = {}
    for name, slots in STATE_SLOTS.items():
        ratios = {kind: two_pool_ratio(slots, drafts, equivalent, settings.max_model_len)
                  for kind, drafts in (("snapshots", settings.drafts), ("replay", 0))}
        answer[name] = {"slots": slots, **ratios}
        steps.add(f"two_pool_ratio.{name}", "(slots + drafts) * token_equivalent / max_model_len",
                  ratios["snapshots"], slots=slots, drafts=settings.drafts, token_equivalent=equivalent,
                  max_model_len=settings.max_model_len)
    return answer


def _policy(model: Model, per_token: int | float, steps: Derivation) -> dict | None:
    """A policy computes its prefix once and runs its suffix several times: bytes kept, tokens computed."""
    policy = model.policy
    if policy is None:
        return None
    answer = {"prefix_tokens": policy.prefix_tokens, "suffix_tokens": policy.suffix_tokens,
              "flow_steps": policy.flow_steps, "prefix_bytes": None, "tokens_with_cache": None,
              "tokens_without_cache": None}
    if policy.prefix_tokens is None or policy.flow_steps is None:
        return answer
    values = {"prefix": policy.prefix_tokens, "suffix": policy.suffix_tokens, "flow_steps": policy.flow_steps}
    answer["prefix_bytes"] = steps.add("policy.prefix_bytes", "prefix * bytes_per_token",
                                       policy.prefix_tokens * per_token, prefix=policy.prefix_tokens,
                                       bytes_per_token=per_token)
    answer["tokens_with_cache"] = steps.add("policy.tokens_with_cache", "prefix + suffix * flow_steps",
                                            policy.prefix_tokens + policy.suffix_tokens * policy.flow_steps, **values)
    answer["tokens_without_cache"] = steps.add(
        "policy.tokens_without_cache", "(prefix + suffix) * flow_steps",
        (policy.prefix_tokens + policy.suffix_tokens) * policy.flow_steps, **values)
    return answer
