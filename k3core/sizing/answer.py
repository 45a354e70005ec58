"""The whole answer for one model and one set of settings, every number with its derivation."""

from dataclasses import replace

from ..models import Model
from .capacity import reported_tokens, reported_tokens_before
from .derivation import Derivation, byte_answers
from .groups import blocks_per_request, state_slots
from .layout import Layout, make_layout
from .pools import STATE_SLOTS, two_pool_ratio
from .settings import MODES, Settings, resolve


def size(model: Model, settings: Settings | None = None) -> dict:
    """Everything about a model's cache as plain data: bytes and blocks of one TP rank, and their derivation.

    state_dtype_from: "given" by the settings, else as in Model. None where something was not given: num_blocks,
    max_concurrency, reported_tokens and limit need memory or a number of blocks; blocks_per_request and what
    follows from it need a max_model_len. Raises ValueError for settings that do not fit the model.
    """
    given = "given" if settings is not None and settings.state_dtype else model.state_dtype_from
    settings = resolve(model, settings or Settings())
    layout, steps = make_layout(model, settings), Derivation()
    answer = {"model": model.name, "title": model.title, "note": model.note,
              "state_dtype_from": given if model.recurrent else "",
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
    layers = list(layout.layers)
    rule = "min" if layout.group_bytes else settings.grouping
    steps.add("group_size", GROUP_SIZE_FORMULAS[rule], layout.group_size, layers=layers)
    steps.add("padding_layers", "0" if layout.group_bytes else "groups * group_size - sum(layers)",
              layout.padding_layers, groups=len(layout.groups), group_size=layout.group_size, layers=layers)
    if layout.group_bytes:
        steps.add("block_bytes", "max(group_bytes)", layout.block_bytes, group_bytes=list(layout.group_bytes))
    else:
        steps.add("block_bytes", "page_bytes * group_size", layout.block_bytes, page_bytes=layout.page_bytes,
                  group_size=layout.group_size)
    return {"block_size": layout.block_size, "page_bytes": layout.page_bytes,
            "padding_percent": layout.padding_percent, "padding_layers": layout.padding_layers,
            "group_size": layout.group_size, "block_bytes": layout.block_bytes,
            "groups": [{"kind": group.kind, "layers": len(group.layers), "block_size": group.block_size,
                        "layer_indices": list(group.layers)} for group in layout.groups]}


# layers: how many there are of each kind. The last two are found by search: groups.choose_group_size.
GROUP_SIZE_FORMULAS = {
    "default": "max(layers) if max(layers) < 1.5 * min(layers) else min(layers)",
    "min": "min(layers)",
    "balanced": "the size of least padding layers + groups",
    "memory": "the size of least pages for one request of max_model_len",
}


def _block_steps(layout: Layout, settings: Settings, steps: Derivation) -> None:
    """Block size, page, padding."""
    state, token, block = layout.state_bytes, layout.token_bytes, layout.block_size
    if block is None:
        steps.add("page_bytes", "state_bytes", layout.page_bytes, state_bytes=state)
    elif len(layout.group_bytes) > 1:
        steps.add("block_size", str(block), block)
        steps.add("page_bytes", "group_bytes", layout.page_bytes, group_bytes=layout.group_bytes[0])
    else:
        values = {"state_bytes": state, "token_bytes": token, "align": settings.align}
        formula = "align * ceil(state_bytes / (align * token_bytes))" if state else "align"
        if state and settings.mode == "all":
            formula = "lcm(chunk, align) * ceil(ceil(state_bytes / token_bytes) / lcm(chunk, align))"
            values["chunk"] = layout.chunk
        steps.add("block_size", formula, block, **values)
        steps.add("page_bytes", "block_size * token_bytes", layout.page_bytes, block_size=block,
                  token_bytes=token)
    if state:
        steps.add("padding_percent", "100 * (page_bytes - state_bytes) / state_bytes", layout.padding_percent,
                  page_bytes=layout.page_bytes, state_bytes=state)


def _request_answers(model: Model, layout: Layout, settings: Settings, steps: Derivation) -> dict:
    tokens = settings.max_model_len
    answer = dict.fromkeys(("slots_per_request", "blocks_per_request", "blocks_per_request_replay",
                            "blocks_per_request_by_mode", "request_bytes"))
    if tokens is None:
        return answer
    if any(group.recurrent for group in layout.groups):
        answer["slots_per_request"] = _slots(layout, settings, steps)
        answer["blocks_per_request_by_mode"] = {
            mode: make_layout(model, other).blocks_per_request(tokens, other)
            for mode, other in ((mode, replace(settings, mode=mode)) for mode in MODES)}
    needs = [blocks_per_request(group, tokens, settings) for group in layout.groups]
    answer["blocks_per_request"] = steps.add(
        "blocks_per_request", "sum(blocks_of_each_group)", sum(needs), blocks_of_each_group=needs,
        groups=[group.kind for group in layout.groups], max_model_len=tokens)
    answer["blocks_per_request_replay"] = layout.blocks_per_request(tokens, settings, replay=True)
    answer["request_bytes"] = steps.add(
        "request_bytes", "blocks_per_request * block_bytes", answer["blocks_per_request"] * layout.block_bytes,
        blocks_per_request=answer["blocks_per_request"], block_bytes=layout.block_bytes)
    return answer


def _slots(layout: Layout, settings: Settings, steps: Derivation) -> dict:
    """State blocks of one request in one recurrent group, with a snapshot per draft and with replay."""
    held = {"none": "1", "align": "2", "all": "ceil(max_model_len / block_size)"}[settings.mode]
    mode, drafts, tokens, block = settings.mode, settings.drafts, settings.max_model_len, layout.block_size
    values = {"drafts": drafts, "max_model_len": tokens, "block_size": block}
    return {"snapshots": steps.add("slots_per_request.snapshots", f"{held} + drafts",
                                   state_slots(mode, drafts, tokens, block), **values),
            "replay": steps.add("slots_per_request.replay", held,
                                state_slots(mode, drafts, tokens, block, replay=True), **values)}


def _pool_answers(layout: Layout, settings: Settings, need: int | None, steps: Derivation) -> dict:
    blocks, tokens = settings.num_blocks, settings.max_model_len
    if settings.memory_bytes is not None:
        blocks = steps.add("num_blocks", "floor(memory_bytes / block_bytes)",
                           settings.memory_bytes // layout.block_bytes, memory_bytes=settings.memory_bytes,
                           block_bytes=layout.block_bytes)
    answer = {"num_blocks": blocks} | dict.fromkeys((
        "max_concurrency", "max_concurrency_replay", "reported_tokens", "reported_tokens_before",
        "reported_tokens_at", "limit"))
    if blocks is None or need is None:
        return answer
    values = {"num_blocks": blocks, "blocks_per_request": need}
    answer["max_concurrency"] = steps.add("max_concurrency", "num_blocks / blocks_per_request", blocks / need,
                                          **values)
    answer["max_concurrency_replay"] = blocks / layout.blocks_per_request(tokens, settings, replay=True)
    answer["reported_tokens"] = steps.add(
        "reported_tokens", "floor(num_blocks * max_model_len / blocks_per_request)",
        reported_tokens(blocks, need, tokens), max_model_len=tokens, **values)
    if layout.block_size is not None:
        answer["reported_tokens_before"] = steps.add(
            "reported_tokens_before", "floor(num_blocks / groups) * min(block_sizes)",
            reported_tokens_before(blocks, layout.groups), num_blocks=blocks, groups=len(layout.groups),
            block_sizes=[group.block_size for group in layout.groups])
    answer["reported_tokens_at"] = [
        {"max_model_len": length,
         "tokens": reported_tokens(blocks, layout.blocks_per_request(length, settings), length)}
        for length in sorted({max(1, tokens // part) for part in (64, 16, 4, 1)})]
    answer["limit"] = _limit(layout, settings, values, steps)
    return answer


def _limit(layout: Layout, settings: Settings, values: dict, steps: Derivation) -> dict:
    """Requests at once, long and short, and what kind of cache most of a long one is."""
    held = {"attention": 0, "state": 0, "window": 0}
    for group in layout.groups:
        kind = "state" if group.recurrent else "window" if group.window else "attention"
        held[kind] += blocks_per_request(group, settings.max_model_len, settings)
    blocks, shortest = values["num_blocks"], layout.blocks_per_request(1, settings)
    longest = steps.add("limit.requests_at_max_model_len", "floor(num_blocks / blocks_per_request)",
                        blocks // values["blocks_per_request"], **values)
    most = steps.add("limit.requests_at_one_token", "floor(num_blocks / blocks_of_one_token)",
                     blocks // shortest, num_blocks=blocks, blocks_of_one_token=shortest)
    return {"requests_at_max_model_len": longest, "requests_at_one_token": most,
            **{f"{kind}_blocks": count for kind, count in held.items()},
            "binds": max(held, key=held.get) if longest else "none fits"}


def _two_pools(settings: Settings, equivalent: int | None, steps: Derivation) -> dict | None:
    """State pool over K/V pool for requests of max_model_len, per way of reserving slots (SGLang)."""
    tokens = settings.max_model_len
    if equivalent is None or tokens is None:
        return None
    answer = {}
    for name, slots in STATE_SLOTS.items():
        values = {"slots": slots, "drafts": settings.drafts, "token_equivalent": equivalent,
                  "max_model_len": tokens}
        snapshots = steps.add(f"two_pool_ratio.{name}", "(slots + drafts) * token_equivalent / max_model_len",
                              two_pool_ratio(slots, settings.drafts, equivalent, tokens), **values)
        answer[name] = {"slots": slots, "snapshots": snapshots,
                        "replay": two_pool_ratio(slots, 0, equivalent, tokens)}
    return answer


def _policy(model: Model, per_token: int | float, steps: Derivation) -> dict | None:
    """A policy computes its prefix once and runs its suffix several times: bytes kept, tokens computed."""
    policy = model.policy
    if policy is None:
        return None
    prefix, suffix, flow = policy.prefix_tokens, policy.suffix_tokens, policy.flow_steps
    answer = {"prefix_tokens": prefix, "suffix_tokens": suffix, "flow_steps": flow}
    answer |= dict.fromkeys(("prefix_bytes", "tokens_with_cache", "tokens_without_cache"))
    if prefix is None or flow is None:
        return answer
    values = {"prefix_tokens": prefix, "suffix_tokens": suffix, "flow_steps": flow}
    answer["prefix_bytes"] = steps.add("policy.prefix_bytes", "prefix_tokens * bytes_per_token",
                                       prefix * per_token, prefix_tokens=prefix, bytes_per_token=per_token)
    answer["tokens_with_cache"] = steps.add(
        "policy.tokens_with_cache", "prefix_tokens + suffix_tokens * flow_steps",
        prefix + suffix * flow, **values)
    answer["tokens_without_cache"] = steps.add(
        "policy.tokens_without_cache", "(prefix_tokens + suffix_tokens) * flow_steps",
        (prefix + suffix) * flow, **values)
    return answer
