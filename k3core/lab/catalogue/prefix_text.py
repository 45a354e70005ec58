"""Chinese entries of real text on the prefix cache: shared by `prefix-hit`, `prefix-miss` and `checkpoint-atomicity`."""

ZH = {
    # parameters
    "counting": "只计数",
    "Characters per answer": "每次回答的字符数",
    "Hash block, in characters": "哈希块（字符数）",
    "page is {page} hash blocks of {block} characters; the trained model's KDA state takes as much as {rows} rows, so take "
    "{least} hash blocks or more":
        "page 是 {page} 个哈希块，每块 {block} 个字符；训练好的模型的 KDA 状态相当于 {rows} 行，所以至少要 {least} 个哈希块",
    # check
    "text, states and rows are, to the bit, those of a run without a cache": "文本、状态和行与不用缓存的运行逐位相同",
    "{differing} of {numbers} numbers differ; tokens were chosen with a lead of {lead} or more":
        "{numbers} 个数中有 {differing} 个不同；所选词元至少领先 {lead}",
    "no difference": "没有差异",
    # scene
    "{who} answers {text}: what it writes without a cache, and all {count} numbers in its states and rows are the same to "
    "the bit.":
        "{who}回答 {text}：与不用缓存时写的一样，状态和行里的 {count} 个数也逐位相同。",
    "{who} answers {text}. Without a cache it writes the same, but {differing} of {count} numbers in its states and rows are "
    "others.":
        "{who}回答 {text}。不用缓存时写的也一样，但状态和行里的 {count} 个数中有 {differing} 个不同。",
    "{who} answers {text}. Without a cache it writes {right}. No error is raised.":
        "{who}回答 {text}。不用缓存时它写的是 {right}。没有任何报错。",
    "without the cache it writes": "不用缓存时它写的是",
    "written by the model: {tokens} tokens": "模型写出：{tokens} 个词元",
    "written otherwise than without a cache: {tokens} tokens": "与不用缓存时写的不同：{tokens} 个词元",
}
