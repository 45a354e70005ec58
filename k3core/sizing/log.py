"""An answer in the words of an engine's log, so that it can be compared with a real one line by line."""


def log_lines(answer: dict) -> list[str]:
    """The lines in which vLLM would log an answer of `size` at start: layout, padding layers, capacity."""
    lines = []
    if answer["checkpoint_bytes"] and answer["block_size"]:
        block, percent = answer["block_size"], answer["padding_percent"]
        lines += [f"Setting attention block size to {block} tokens to ensure that attention page size is >= "
                  "mamba page size.",
                  f"Padding mamba page size by {percent:.2f}% to ensure that mamba page size and attention "
                  "page size are exactly equal."]
    by_kind: dict[str, list[int]] = {}
    for group in answer["groups"]:
        by_kind.setdefault(group["kind"], []).append(group["layers"])
    for layers in by_kind.values() if answer["padding_layers"] else ():
        padding = len(layers) * answer["group_size"] - sum(layers)
        if padding:
            percent = 100 * padding / sum(layers)
            lines.append(f"Add {padding} padding layers, may waste at most {percent:.2f}% KV cache memory")
    if answer["reported_tokens"] is not None:
        tokens, times = answer["settings"]["max_model_len"], answer["max_concurrency"]
        lines += [f"GPU KV cache size: {answer['reported_tokens']:,} tokens",
                  f"Maximum concurrency for {tokens:,} tokens per request: {times:.2f}x"]
    return lines
