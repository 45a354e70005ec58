"""Chinese entries of the tab `page-table`."""

ZH = {
    "Page table": "页表",
    "Page table: one pool, two kinds of cache": "页表：一个池，两种缓存",
    "MLA rows grow with every token, a KDA state never grows. If both live in blocks of one size, how much of "
    "a block is useful, and what does a short request cost?":
        "MLA 的行随每个词元增长，KDA 的状态从不增长。如果两者都住在同样大小的块里，一个块有多少是有用的？一个短请求要付出多少？",
    "every block is in as many page tables as its reference count says, and every table is as long as the "
    "formula says":
        "每个块所在的页表数等于它的引用计数，每张页表的长度与公式一致",
    "what the page tables lead to, block by block, is what the formula counts": "沿页表逐块数出的有用字节，与公式的结果相同",
    "when the last request has left, every block is free again": "最后一个请求离开后，所有块都重新空闲",
    "attention reads the rows that were written": "注意力读到的就是写入的行",
    "no difference": "没有差异",
    "One pool of blocks, and the page tables that lead into it": "一个块池，以及指向它的页表",
    "Real bytes: a page of rows, a page of state, and what attention reads": "真实的字节：一页行、一页状态，以及注意力读到的内容",
    "{blocks} blocks, {bytes}, of which {share} is useful.": "{blocks} 个块，{bytes}，其中 {share} 有用。",
    "{total} values, none differs": "{total} 个值，全部相同",
    "{wrong} of {total} values differ, {bad} are no finite numbers, the largest is off by {off}":
        "{total} 个值中有 {wrong} 个不同，{bad} 个不是有限数，最大偏差 {off}",
    "request": "请求",
    "blocks of rows": "行占的块",
    "blocks of states": "状态占的块",
    "takes": "占用",
    "useful": "有用",
    "The requests, each at full length and on its own": "各个请求，按完整长度单独计算",
    "bytes of": "字节用途",
    "in blocks in use": "已用块中",
    "share": "占比",
    "Where the bytes are at the fullest moment": "池最满时，字节都在哪里",
    "blocks, align": "块数，align",
    "useful, align": "有用，align",
    "blocks, none": "块数，none",
    "useful, none": "有用，none",
    "Useful share of one request, by length": "单个请求的有用占比，按长度",
    "mode": "模式",
    "useful, of the blocks that these requests take": "这些请求所占块中有用的比例",
    "useful, of a block of KDA states": "一个 KDA 状态块中有用的比例",
    "useful, of a full block of MLA rows": "一个写满的 MLA 块中有用的比例",
    "padding in the state blocks of these requests": "这些请求的状态块中的填充",
    "tokens in a block, so that a page holds a state": "一个块的词元数，使一页放得下一份状态",
    "useful, of all blocks in use at the fullest moment": "池最满时，全部已用块中有用的比例",
    "saved by sharing blocks at the fullest moment": "池最满时，共享块节省的字节",
    "Tokens of requests A, B, C, …": "请求 A、B、C……的词元数",
    "Each request: 0 away, 1 comes, 2 forks": "每个请求：0 不来，1 来，2 会分叉",
    "In the drawing: ×, + and the word fork. What the list leaves out comes.":
        "对应图中的 ×、+ 和“分叉”。列表没有写到的请求都会来。",
    "States kept": "保留的状态",
    "running": "运行中的",
    "and aligned": "再加对齐的",
    "every block": "每块一份",
    "For prefix reuse: none, the one at the last block boundary, or one per block.":
        "为复用前缀而保留：不保留、保留最近块边界处的一份，或每块保留一份。",
    "Each needs a state of its own until it is accepted, and a column of the convolution's window.":
        "每个草稿词元在被接受之前都需要自己的一份状态，还要在卷积窗口里多占一列。",
    "MLA rows in": "MLA 行的数据类型",
    "Block a multiple of": "块大小取其倍数",
    "Model": "模型",
    "Blocks in the pool": "池中的块数",
    "Read rows through the KDA table": "通过 KDA 的页表读取行",
    "The block is there, its bytes are another layer's state.": "块确实存在，但其中是另一种层的状态。",
    "Six requests": "六个请求",
    "A 12-token request takes 7 blocks, 141.75 MiB. F waits until A and B have left; D's fork copies 4 blocks of 33.":
        "12 个词元的请求占用 7 个块，共 141.75 MiB。F 要等 A 和 B 离开；D 的分叉只复制 33 个块中的 4 个。",
    "12 tokens": "12 个词元",
    "7 blocks of 20.25 MiB for 12 tokens: 37.9 % is useful. Six such requests fill this pool of 47 blocks, "
    "almost 1 GiB for 72 tokens, and two must wait.":
        "12 个词元占用 7 个 20.25 MiB 的块，其中 37.9 % 有用。六个这样的请求就占满了 47 个块的池：72 个词元用去将近 1 GiB，另外两个只能等待。",
    "7 drafts": "7 个草稿",
    "The page fits better, 95.2 % of a state block is useful; but every request holds 27 state blocks instead "
    "of 6, and a short one uses a tenth of what it takes.":
        "页更合身，状态块的 95.2 % 有用；但每个请求要占 27 个状态块，而不是 6 个，短请求只用到所占内存的十分之一。",
    "Kimi-Linear, 120,000 tokens": "Kimi-Linear，120,000 个词元",
    "TP2 in bf16: blocks of 960 tokens, 131 per request. Of 319 two requests get in, the third waits: 2.44 at "
    "a time.":
        "TP2、bf16：每块 960 个词元，每个请求 131 块。319 个块放得下两个请求，第三个等待：同时最多 2.44 个。",
    "A million tokens": "一百万个词元",
    "Of the long one 99.46 % is useful, 683 blocks of rows and 6 of states. The fixed price only hurts the short.":
        "长请求的 99.46 % 有用：683 个行块，6 个状态块。固定的价钱只让短请求吃亏。",
    "A state per block": "每块一份状态",
    "Three of four blocks hold a state that only a later request might want. However long the request, little "
    "more than a quarter of its memory is useful.":
        "四个块中有三个存着也许日后才有请求用到的状态。无论请求多长，它的内存只有四分之一多一点是有用的。",
    "Longer than the pool": "比池还长",
    "D can never fit. It is refused at once, and E, behind it, is not held up.": "D 永远放不下，因此立刻被拒绝，排在后面的 E 不受影响。",
    "The wrong table": "用错页表",
    "The KDA block is read as rows: nearly every value is wrong, some are NaN, and nothing raises an error.":
        "把 KDA 块当作行来读：几乎每个值都是错的，有些还是 NaN，却没有任何报错。",
    "A request of 12 tokens takes blocks for its rows and for its states. How much of the memory it takes "
    "holds something it needs?":
        "一个 12 词元的请求要为它的行和状态占用若干块。所占的内存里，有多少存的是它需要的东西？",
    "about {share}": "约 {share}",
    "MLA rows": "MLA 行",
    "running states": "运行中的状态",
    "states kept for reuse or drafts": "为复用或草稿保留的状态",
    "reserved rows, not written yet": "已预留、尚未写入的行",
    "padding": "填充",
    "{count} blocks of {bytes}: a block is one page in each of {pages} tensors, and every page is {page}. "
    "Block 0 is the null block, which is never handed out.":
        "共 {count} 个块，每块 {bytes}：一个块就是 {pages} 个张量中各一页，每页 {page}。0 号块是空块，从不分配。",
    "{name} comes": "{name} 到来",
    "Now {name} fits": "现在放得下 {name} 了",
    "{what}, with {tokens} of its {total} tokens. It takes {count} blocks from the front of the free list, "
    "{rows} for rows and {states} for states.":
        "{what}，带着 {total} 个词元中的 {tokens} 个。它从空闲链表头部取走 {count} 个块：行用 {rows} 个，状态用 {states} 个。",
    "The requests reach their full length within the blocks that they have.": "请求在已有的块之内增长到了完整长度。",
    "The requests grow. Blocks taken for rows: {rows}; for states: none, because a state does not grow.":
        "请求继续增长。行新取 {rows} 个块；状态一个也不取，因为状态不会增长。",
    "The requests grow. Blocks taken for rows: {rows}; for states: {states}, because one is kept at every block.":
        "请求继续增长。行新取 {rows} 个块；状态新取 {states} 个，因为每个块都要保留一份状态。",
    "{name} will need {need} blocks, and {room} are not yet promised to others. It takes none and waits: all "
    "or nothing.":
        "{name} 最终需要 {need} 个块，而没有许给别人的只有 {room} 个。它一个也不拿，继续等待：要么全给，要么不给。",
    "{name} will need {need} blocks, more than the pool has. It can never run, so it is refused now.":
        "{name} 最终需要 {need} 个块，比整个池还多。它永远无法运行，所以现在就拒绝。",
    "{name} goes on from {source} another way. It shares all {count} blocks: each counts two references now, "
    "and not a byte was copied.":
        "{name} 从 {source} 处另走一路。它共享全部 {count} 个块：每个块的引用计数都变成 2，一个字节也没有复制。",
    "{name} writes a token. What {source} must not see needs blocks of its own, {copied}: its running states, "
    "and the rows of the block that is part full. {shared} blocks stay shared.":
        "{name} 写入一个词元。不能让 {source} 看到的内容需要自己的块，共 {copied} 个：运行中的状态，以及未写满的那块行。其余 {shared} 个块仍然共享。",
    "{name} would fork, but its copy needs {need} blocks of its own and {room} are not promised: no fork.":
        "{name} 想要分叉，但副本自己需要 {need} 个块，未许出的只有 {room} 个：不能分叉。",
    "{name}, the last, leaves. All blocks are free again.": "最后一个请求 {name} 离开。所有块重新空闲。",
    "{name} leaves. Of its {held} blocks {freed} fall free; the others stay, because another table still holds them.":
        "{name} 离开。它的 {held} 个块中有 {freed} 个变为空闲；其余留下，因为另一张页表还在使用。",
    "{name} leaves. Its {freed} blocks fall free, wherever they lie; nothing is moved.":
        "{name} 离开。它的 {freed} 个块就地变为空闲，什么都不用搬动。",
    "null block": "空块",
    "+ {name}, {tokens} tokens": "+ {name}，{tokens} 个词元",
    "fork": "分叉",
    "drag to set the tokens of {name}": "拖动以设置 {name} 的词元数",
    "{tokens} of {total} tokens, {count} blocks": "{tokens} / {total} 个词元，{count} 块",
    "{total} tokens, {count} blocks": "{total} 个词元，{count} 块",
    "{total} tokens, waits": "{total} 个词元，等待",
    "{total} tokens": "{total} 个词元",
    "page table of {name}": "{name} 的页表",
    "blocks of MLA rows: {n}": "MLA 行的块：{n}",
    "rows not written yet: {bytes}": "尚未写入的行：{bytes}",
    "running states: {n}": "运行中的状态：{n}",
    "states kept for reuse or drafts: {n}": "为复用或草稿保留的状态：{n}",
    "padding: {bytes}": "填充：{bytes}",
    "in two tables, counted twice, stored once: {n}": "在两张页表中，计数为 2，只存一份：{n}",
    "free: {n} of {total}": "空闲：{n} / {total}",
    "drag: the length of a request": "拖动：请求的长度",
    "running state only": "只有运行中的状态",
    "and the aligned one": "再加对齐的一份",
    "a state per block": "每块一份状态",
    "tokens of the request": "请求的词元数",
    "How much of what a request takes is useful": "请求所占内存中有用的比例",
    "The states are a fixed price: {share} of 12 tokens' memory is useful in mode align, and nearly all of a "
    "long request's. The vertical lines are your requests.":
        "状态是固定的价钱：在 align 模式下，12 个词元所占内存只有 {share} 有用，长请求则几乎全部有用。竖线是你的请求。",
    "block {block}: rows of tokens": "块 {block}：词元的行",
    "block {block}: a KDA state": "块 {block}：一份 KDA 状态",
    "what attention reads": "注意力读到的内容",
    "Attention looks up block {block} in the MLA group's table and finds the rows that were written, all "
    "{count} values. Click the state's page to let it look into the other table.":
        "注意力在 MLA 组的页表里查到块 {block}，读到的正是写入的行，{count} 个值全部正确。点击状态页，让它去查另一张页表。",
    "Attention looks up block {block} in the KDA group's table. The bytes are there and nothing raises an "
    "error, but {wrong} of {count} values are wrong, {bad} of them no finite numbers.":
        "注意力在 KDA 组的页表里查到块 {block}。字节确实在那里，也没有任何报错，但 {count} 个值中有 {wrong} 个是错的，其中 {bad} 个不是有限数。",
    "rows: the darker, the larger the value": "行：颜色越深，值越大",
    "the state, read as a state": "状态，按状态读取",
    "no number, or far larger than any row: {n} of {total} shown": "不是数，或远大于任何一行：所示 {total} 个中有 {n} 个",
}
