"""Chinese of the tab `unified-pool`."""

ZH = {
    # the page
    "Unified pool": "统一池",
    "One pool: rows grow, the state does not": "一个池：行在增长，状态不变",
    "An MLA layer adds a row for every token; a KDA layer rewrites one state. From which length on do the rows weigh more, and "
    "what do a million tokens cost?":
        "MLA 层每来一个词元就多一行；KDA 层只是改写同一个状态。从多长开始，行比状态更重？一百万个词元又要多少？",
    "K3, bf16 rows, one rank: after how many tokens do the MLA rows weigh as much as the whole KDA state?":
        "K3，行用 bf16，单个 rank：多少个词元之后，MLA 的行与全部 KDA 状态一样重？",
    "about {count}": "约 {count}",
    "{tokens} tokens: a state of {state} against {row} per token.": "{tokens} 个词元：状态为 {state}，每个词元 {row}。",
    # parameters
    "Context, in tokens": "上下文（词元）",
    "Move the state to": "把状态移到几个 rank",
    "As when prefill and decode run on different numbers of ranks.": "例如预填充与解码使用不同数量的 rank 时。",
    "Forget": "忘记",
    "nothing": "什么都不忘",
    "the shared key slice": "共享的键分量",
    "the heads": "按头存放",
    "The last 64 of a row's 576 values in the scores; or that a page is laid out head by head.":
        "打分时忘记每行 576 个值中的最后 64 个；或忘记页是按头逐个存放的。",
    # presets
    "At the crossover": "交叉点",
    "16,253 tokens of rows and one state: 428.6 MiB each.": "16,253 个词元的行与一个状态：各 428.6 MiB。",
    "TP8, fp8": "TP8，fp8",
    "The state is split by eight, rows are not: the crossover falls to 4,063 tokens, and 8 ranks together keep every row eight "
    "times.":
        "状态分成八份，行却不分：交叉点降到 4,063 个词元，而 8 个 rank 合起来把每一行存了八遍。",
    "Kimi-Linear": "Kimi-Linear",
    "7 MLA layers of 27: crossover 5,384 tokens, 7.875 GiB at a million.": "27 层中有 7 个 MLA 层：交叉点 5,384 个词元，一百万个词元为 7.875 GiB。",
    "Forget the key slice": "忘记键分量",
    "Scores without the 64 shared values are other scores: the outputs differ in the first digit.":
        "缺了共享的 64 个值，分数就不是原来的分数：输出在第一位数字上就不同。",
    "Cut without heads": "不按头切分",
    "Eight pages joined and cut in four: the windows of the first rank land in the state of its neighbour.":
        "把八页首尾相接再切成四份：第一个 rank 的卷积窗口落进了邻居的状态里。",
    # results
    "tokens whose rows weigh as much as the state": "行与状态等重时的词元数",
    "MLA rows of {tokens} tokens": "{tokens} 个词元的 MLA 行",
    "state, at any context": "状态（与上下文无关）",
    "of all this is state": "其中状态所占",
    "added by every token": "每个词元增加",
    "absorbed from pages against keys and values built": "从页中做吸收式解码与展开键值的差",
    "byte ranges moved, one layer": "单层移动的字节区间",
    "of them to another rank": "其中移到其他 rank 的",
    "absorbed decode from pages equals keys and values built for every head": "从页中做吸收式解码，与为每个头展开键和值的结果相等",
    "rows and state come back from their pages unchanged": "行和状态从页中读回时没有变化",
    "after the move every rank holds its heads, byte for byte": "移动之后每个 rank 持有自己的头，逐字节一致",
    "{wrong} of {bytes} B wrong": "{bytes} B 中有 {wrong} B 错误",
    "the moves cover every byte once": "这些移动恰好覆盖每个字节一次",
    "at the crossover rows and state differ by at most half a row": "在交叉点，行与状态之差不超过半行",
    # tables
    "tokens of the context": "上下文的词元数",
    "bytes of a request": "一个请求的字节数",
    "ranks": "rank 数",
    "state, per rank": "状态，每个 rank",
    "bytes per token, per rank": "每词元字节数，每个 rank",
    "crossover, tokens": "交叉点（词元）",
    "this context, per rank": "此上下文，每个 rank",
    "all ranks together": "所有 rank 合计",
    "The same request on more ranks": "同一请求，更多 rank",
    "part of the page": "页的部分",
    "from rank": "来源 rank",
    "to rank": "目标 rank",
    "at byte": "起始字节",
    "bytes": "字节数",
    "The move as byte ranges, one layer": "以字节区间表示的移动（单层）",
    "at the shortest length": "最短长度时",
    "at this context": "此上下文时",
    "against Kimi K3": "与 Kimi K3 之比",
    "Per rank, one request of {tokens} tokens": "每个 rank，一个 {tokens} 词元的请求",
    # drawings
    "One pool, one request, as its context grows": "一个池，一个请求，上下文逐渐增长",
    "One token. The state takes its {count} blocks at once, {state}, and will never take another; the rows of this token are "
    "{row} B.":
        "一个词元。状态一开始就占满它的 {count} 个块，{state}，以后再也不会多占；这个词元的行为 {row} B。",
    "{tokens} tokens: {rows} of rows, {share} of the state's {state}.": "{tokens} 个词元：行为 {rows}，是状态 {state} 的 {share}。",
    "{tokens} tokens: the rows now weigh as much as the state, {state}. From here on it is the rows that fill the pool.":
        "{tokens} 个词元：行与状态一样重了，都是 {state}。从这里开始，填满池的是行。",
    "{tokens} tokens: {rows} of rows, {times} times the state, which is still {state}.":
        "{tokens} 个词元：行为 {rows}，是状态的 {times} 倍，而状态仍是 {state}。",
    "the state, {bytes}": "状态，{bytes}",
    "the rows of {tokens} tokens, {bytes}": "{tokens} 个词元的行，{bytes}",
    "drag to set the context": "拖动以设置上下文",
    "the pool: {count} blocks of {bytes}": "池：{count} 块，每块 {bytes}",
    "{pool}, {tokens} tokens": "{pool}，{tokens} 词元",
    "KDA state and window: {bytes} in {count} blocks": "KDA 状态与窗口：{bytes}，占 {count} 块",
    "MLA rows: {bytes} in {count} blocks": "MLA 行：{bytes}，占 {count} 块",
    "padding of the state's blocks: {bytes}": "状态所在块的填充：{bytes}",
    "free blocks: {count}": "空闲块：{count}",
    "The state of one layer, moved from TP{a} to TP{b}": "一层的状态，从 TP{a} 移到 TP{b}",
    "Written at TP{a}: {heads} heads of one layer, {bytes} in all. To be read at TP{b}: {count} byte ranges move, and no element "
    "is touched.":
        "以 TP{a} 写成：一层的 {heads} 个头，共 {bytes}。将以 TP{b} 读取：移动 {count} 个字节区间，不触碰任何元素。",
    "{region}, heads {first} to {last}: {bytes} B from rank {a}, byte {from_offset}, to rank {b}, byte {to_offset}.":
        "{region}，头 {first} 到 {last}：{bytes} B，从 rank {a} 的第 {from_offset} 字节到 rank {b} 的第 {to_offset} 字节。",
    "State": "状态",
    "Convolution window": "卷积窗口",
    "state, head by head": "状态，逐头存放",
    "convolution window, head by head": "卷积窗口，逐头存放",
    "ranges still to come: {count}": "尚未移动的区间：{count}",
    # chart
    "Memory of a request against its context": "请求的内存与上下文长度",
    "A hybrid starts high and stays flat until its rows outweigh its state; attention alone starts at nothing and grows from the "
    "first token.":
        "混合模型起点高，在行超过状态之前保持平坦；纯注意力从零开始，从第一个词元起就在增长。",
}
