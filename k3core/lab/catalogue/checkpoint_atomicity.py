"""Chinese entries of the tab `checkpoint-atomicity`."""

ZH = {
    "Atomic checkpoints": "原子检查点",
    "Atomic checkpoints: all groups, or none": "原子检查点：要么所有组都有，要么都没有",
    "A hit needs attention rows and a state of every KDA group, while other requests are scheduled, aborted and evicted in "
    "between. Is there any order of actions in which a request reads a prefix that is not its own?":
        "命中既需要注意力行，也需要每个 KDA 组的状态，而其间其他请求会被调度、中止、逐出。是否存在某种动作顺序，让一个请求读到不属于自己的前缀？",
    "An empty pool of {blocks} blocks. Every action that follows is one step of the real cache; blocks hold the name of the "
    "prefix that was written into them.":
        "一个有 {blocks} 个块的空池。接下来的每个动作都是真实缓存的一步；块里存放的是写入它的前缀的名字。",
    "{said} To make room, what an idle block held was evicted; no longer found: {lost}.":
        "{said}为腾出空间，逐出了空闲块中的内容；不再能找到：{lost}。",
    "{said} {problem}": "{said}{problem}",
    "{said} A rule is off, yet no order of actions in this scope goes wrong: the failure needs more room.":
        "{said}有规则关闭，但在这个范围内没有任何动作顺序会出错：这种故障需要更多的块。",
    "{who} should read {right} in block {block} and reads {held}. No error is raised; every later token of {who} is computed "
    "from it.": "{who} 在块 {block} 中应当读到 {right}，实际读到 {held}。没有任何报错，{who} 之后的每个词元都由它算出。",
    "The prefix {name} can now be found in a block that does not hold it.": "现在，前缀 {name} 会在一个并不存放它的块里被找到。",
    "{who} is given token {last} to compute.": "{who} 得到词元 {last} 去计算。",
    "{who} is given tokens {first} to {last} to compute.": "{who} 得到词元 {first} 至 {last} 去计算。",
    "{said} Blocks {blocks} are set aside for a checkpoint after token {end}.":
        "{said}为词元 {end} 之后的检查点预留块 {blocks}。",
    "{who}'s copies have landed: its state is private, and the sources may go.":
        "{who} 的复制已完成：状态成为私有，来源块可以让出。",
    "{who} computes up to token {end}: rows and states are written.": "{who} 计算到词元 {end}：写入行和状态。",
    "{who} commits: what was computed up to token {end} may be found by others.":
        "{who} 提交：算到词元 {end} 的内容可以被其他请求找到。",
    "{who} is aborted; its blocks return to the pool.": "{who} 被中止，它的块归还块池。",
    "{who} is finished; its blocks return to the pool, what was published stays findable.":
        "{who} 完成，它的块归还块池，已发布的内容仍可找到。",
    "Block {block} is evicted; no longer found: {lost}.": "块 {block} 被逐出；不再能找到：{lost}。",
    "Block {block} is evicted, one part of a checkpoint; its sibling can still be found.":
        "块 {block} 被逐出，它是检查点的一部分；同一检查点的另一部分仍能被找到。",
    "{who} starts with a hit: rows and a state of every group up to token {hit}. Copies under way: {copies}.":
        "{who} 启动并命中：到词元 {hit} 为止的行和每个组的状态。正在复制：{copies}。",
    "{who} starts: the lookup finds no position with rows and a state of every group, so blocks {blocks} are cleared for its "
    "states.": "{who} 启动：查找没有发现行与每个组的状态都齐备的位置，因此清零块 {blocks} 作为它的状态。",
    "{said} Block {block} is overwritten by one copy before the next reads it.": "{said}块 {block} 在被下一个复制读取之前，已被前一个复制覆盖。",
    "rows of {name}": "{name} 的行",
    "checkpoint of {name}": "{name} 的检查点",
    "{first}; {rest}": "{first}；{rest}",
    "S": "调", "C": "复", "F": "算", "K": "提", "R": "放", "E": "逐",
    "schedule": "调度", "copy": "复制", "forward": "前向", "commit": "提交", "release or abort": "释放或中止", "evict": "逐出",
    "page": "页", "state": "状态", "pinned": "固定", "saving": "待存",
    "prefix": "前缀", "rows": "行", "KDA 1": "KDA 1", "KDA 2": "KDA 2",
    "pool": "块池",
    "found by chained hash: block": "链式哈希找到的块",
    "not running": "未运行",
    "waiting for its copies": "等待复制完成",
    "{who} goes on after {count} tokens": "{who} 从 {count} 个词元之后继续",
    "expects": "应读",
    "reads": "读到",
    "row {n}": "行 {n}",
    "KDA {n}": "KDA {n}",
    "the pool: what each block really holds": "块池：每个块里真正存放的内容",
    "+ block {n}": "+ 块 {n}",
    "findable": "可找到",
    "free": "空闲",
    "{letter} {action}: {count}": "{letter} {action}：{count}",
    "attention rows; t is shared, a and b are private": "注意力行；t 为共享，a、b 为私有",
    "KDA state of a prefix; K1, K2: its group": "某个前缀的 KDA 状态；K1、K2 为所属组",
    "wrong content found or read: {count}": "被找到或读到的错误内容：{count}",
    "blocks is {value} with 1 shared token: too many states to visit here; take at most 6 blocks, or 2 shared tokens":
        "共享 1 个词元而 blocks 为 {value}：状态太多，无法在此遍历；请最多取 6 个块，或共享 2 个词元",
    "nothing is found or read but the prefix it stands for": "找到和读到的都只是它所代表的前缀",
    "the search ended: every state visited, or a counterexample found": "搜索已结束：遍历了所有状态，或找到了反例",
    "at most {count}": "不超过 {count}",
    "played back, the actions end as the search said": "回放这些动作，结局与搜索所说一致",
    "The shortest way to a wrong answer": "通向错误结果的最短路径",
    "A safe interleaving": "一种安全的交错",
    "The shortest takes {count} actions, found after {states} states.": "最短的反例有 {count} 个动作，在 {states} 个状态之后找到。",
    "None exists: all {states} states were visited.": "不存在：全部 {states} 个状态都已遍历。",
    "{count} states so far": "目前 {count} 个状态",
    "states explored": "遍历的状态",
    "{count} actions tried from them; the longest shortest path has {depth}":
        "从这些状态出发尝试了 {count} 个动作；最长的最短路径有 {depth} 个动作",
    "states that differ only in the numbers of blocks or requests count once": "只在块号或请求编号上不同的状态算作一个",
    "counterexamples found; the search stops at one": "找到的反例；找到一个即停止",
    "actions in the shortest counterexample": "最短反例的动作数",
    "id": "编号",
    "action": "动作",
    "who": "谁",
    "does": "做什么",
    "wrong": "错误",
    "The interleaving, action by action": "逐个动作的交错过程",
    "Requests": "请求数",
    "Each may be aborted at any point and come again.": "每个请求都可能在任意时刻中止，然后重来。",
    "Blocks in the pool": "池中的块数",
    "Shared tokens, of a page of 2": "共享的词元数（每页 2 个）",
    "With 1 the hit ends inside a page, which is copied.": "取 1 时命中落在页内，该页要复制。",
    "With a rule off, stop at": "规则关闭时停在",
    "the first wrong read": "第一次错误读取",
    "the first wrong entry": "第一个错误条目",
    "An entry is wrong as soon as it can be found and does not hold its prefix.": "条目一旦能被找到而又不存放它的前缀，就是错误的。",
    "Rule 1: pin all hits before taking blocks": "规则 1：先固定所有命中，再取块",
    "Its failure needs 7 blocks: a running request's states, a hit of three, and two idle ones.":
        "它的故障需要 7 个块：一个运行中请求的状态、一次命中，以及两个空闲块。",
    "Rule 2: publish on commit": "规则 2：提交时才发布",
    "Rule 3: evict all groups together": "规则 3：所有组一起逐出",
    "Hit on a state never written": "命中从未写入的状态",
    "Rule 2 is off. A is aborted between schedule and forward; its retry hits blocks that nobody wrote, after 8 actions.":
        "规则 2 关闭。A 在调度与前向之间被中止；它的重试命中了没有人写过的块，共 8 个动作。",
    "Half a checkpoint": "半个检查点",
    "Rule 3 is off. One group's part is evicted, the sibling still leads to it, and a request goes on from another group's "
    "state, after 10 actions.":
        "规则 3 关闭。一个组的部分被逐出，名字仍指向它，于是一个请求从另一个组的状态继续，共 10 个动作。",
    "One group evicts another's hit": "一个组逐出另一个组的命中",
    "Rule 1 is off, 7 blocks. Taking a block for group 1 evicts the state that group 2 was about to copy, after 21 actions.":
        "规则 1 关闭，7 个块。为第 1 组取块时，逐出了第 2 组正要复制的状态，共 21 个动作。",
    "Hit inside a page": "命中落在页内",
    "All rules on, 1 shared token: the page is copied too. 1,979 states, none wrong.":
        "规则全开，共享 1 个词元：页也要复制。1,979 个状态，没有一个出错。",
    "7 blocks, all rules": "7 个块，规则全开",
    "2,930 states, some 17,000 actions tried, none wrong. This takes a while.":
        "2,930 个状态，尝试约 17,000 个动作，没有一个出错。需要等一会儿。",
    "After how many actions, at best, can a request go wrong with these rules?": "在这些规则下，请求最快在多少个动作之后会出错？",
    "it cannot": "不会出错", "5 or fewer": "5 个以内", "6 to 10": "6 到 10 个", "more than 10": "10 个以上",
    # real text
    "names only": "只用名字",
    "The beginning that both share": "两个请求共有的开头",
    "How A and B go on, a line for each": "A 和 B 各自的后续，每个一行",
    "A real text from half a checkpoint": "半个检查点写出的真实文本",
    "The same for the trained model: what the reader would have got from the state that was found, beside what is right.":
        "换成训练好的模型：读者从查到的状态会得到什么，旁边是正确的文本。",
    "text has {count} characters; it takes one or more for each shared token":
        "text 有 {count} 个字符；每个共享词元至少要一个",
    "ends takes 2 lines with text, how A and B go on; given: {count}": "ends 需要 2 行文字，即 A 和 B 各自的后续；现有 {count} 行",
    "nothing is found or read but the prefix it stands for, and the text is right": "查到和读到的都正是它所代表的前缀，文本也正确",
    "The same for the trained model: each name stands for a piece of the text. {who} goes on after {count} tokens, from "
    "{differing} wrong numbers out of {numbers}. What nobody wrote is zero here; an engine would find what was there before.":
        "换成训练好的模型：每个名字代表一段文本。{who} 在 {count} 个词元之后继续，所依据的 {numbers} 个数中有 {differing} 个是错的。没人写过的内容"
        "在这里是零；真实引擎会读到块里原来的东西。",
    "The same for the trained model: each name stands for a piece of the text. {who} goes on after {count} tokens, and all "
    "{numbers} numbers that it goes on from are right.":
        "换成训练好的模型：每个名字代表一段文本。{who} 在 {count} 个词元之后继续，所依据的 {numbers} 个数全部正确。",
    "The reader gets {text} where {right} is right: {count} characters differ, and no error is raised.":
        "读者得到 {text}，正确的是 {right}：有 {count} 个字符不同，没有任何报错。",
    "The reader gets {text}, by luck the right text: the states it comes from stay wrong.":
        "读者得到 {text}，碰巧是正确的文本：它所依据的状态仍然是错的。",
    "The reader gets {text}, which is right to the bit.": "读者得到 {text}，逐位正确。",
    "{who}'s text, and the names of its pieces": "{who} 的文本，以及各段的名字",
    "not computed again: {count} tokens": "不再计算：{count} 个词元",
    "right": "正确",
    "what the reader gets": "读者得到的",
    "characters that are right: {count}": "正确的字符：{count}",
    "characters that differ: {count}": "不同的字符：{count}",
}
