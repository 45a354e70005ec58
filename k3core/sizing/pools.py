"""Two static pools (SGLang): how to split memory between states and K/V, and which limit binds.

After sglang mem_cache/unified_cache/components/mamba_component.py and the skill compute-mamba-ratio.
"""

# State slots reserved per running request: base 3 (running, two for the tree) and the ping-pong buffer.
STATE_SLOTS = {
    "disable_radix": 1,
    "no_buffer": 3,
    "extra_buffer": 5,
    "extra_buffer_no_overlap": 4,
    "extra_buffer_lazy": 4,
}


def two_pool_ratio(slots: int, drafts: int, token_equivalent: float, tokens: int, dcp: int = 1) -> float:
    """Memory for states over memory for K/V at which both pools run out together.

    slots: state slots per request; drafts: draft tokens, 0 if replay makes their states needless;
    token_equivalent: tokens whose K/V weighs as much as one state; tokens: mean length of a request; dcp:
    ranks that share its K/V.
    """
    for name, value in (("slots", slots), ("tokens", tokens), ("dcp", dcp)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    return (slots + drafts) * token_equivalent * dcp / tokens


def running_limit(configured: int, kv_requests: int, state_slots: int, slots: int) -> tuple[int, str]:
    """Requests that can run at once, and what limits them: "configured", "kv" or "state" (first on a tie).

    kv_requests: requests the K/V pool can hold; state_slots: slots of the state pool; slots: of these per
    request.
    """
    if slots < 1:
        raise ValueError(f"slots is {slots}; a running request holds at least 1 state slot")
    limits = {"configured": configured, "kv": kv_requests, "state": state_slots // slots}
    binding = min(limits, key=limits.get)
    return limits[binding], binding


def speculative_scratch(slots: int, running: int, drafts: int, state_bytes: int) -> dict:
    """Bytes of draft states if every slot gets them, and the share that no running request can use (sglang
    #23643)."""
    if not 0 <= running <= slots or slots < 1:
        raise ValueError(f"running is {running}; it must lie between 0 and slots = {slots}")
    idle = slots - running
    return {
        "bytes": slots * drafts * state_bytes,
        "wasted_bytes": idle * drafts * state_bytes,
        "wasted_share": idle / slots,
    }
