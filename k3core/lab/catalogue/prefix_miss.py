"""Chinese entries of the tab `prefix-miss`; the strips' words are in `prefix_hit`."""

ZH = {
    "Miss": "未命中",
    "A miss: what it costs, and what it leaves behind": "未命中：代价几何，留下什么",
    "The second request looks like the first, and the cache still gives it nothing. What went wrong, how "
    "much is computed again, and why does the third request find what the second could not?":
        "第二个请求与第一个很像，缓存却什么也没给它。问题出在哪里？要重算多少？为什么第三个请求能找到第二个找不到的东西？",
    # parameters
    "What differs in request 2": "请求 2 有何不同",
    "only the beginning is shared": "只共享开头",
    "one token differs": "有一个词元不同",
    "another salt": "盐值不同",
    "another adapter": "适配器不同",
    "the checkpoint was evicted": "检查点已被驱逐",
    "nothing: the same again": "没有不同：原样重复",
    "Tokens of each prompt": "每个提示词的词元数",
    "Tokens shared": "共享的词元",
    "The first token that differs stands here; unused where all tokens are the same.":
        "第一个不同的词元就在这里；词元全部相同时不起作用。",
    "Block and checkpoint grid, in tokens": "块与检查点网格（词元数）",
    "Where checkpoints are kept": "在哪里保存检查点",
    "at the last boundary (align)": "最后一个边界（align）",
    "also where prompts part (Marconi)": "另加提示词分叉处（Marconi）",
    "below the last token, and where prompts part (retention 0)": "末词元之前的边界和分叉处（retention 0）",
    "at every boundary (dense)": "每个边界（dense）",
    "Hash the parent's key": "把父块的键一并哈希",
    "Off: a block's key depends on its own tokens only, so that neither an earlier token nor salt "
    "nor adapter is seen.":
        "关闭后，块的键只取决于块内的词元，更早的词元、盐值和适配器全都看不到。",
    "shared is {shared}, but the prompt has {prompt} tokens; share at most {most}":
        "shared 的值是 {shared}，而提示词只有 {prompt} 个词元；最多可共享 {most} 个",
    # presets
    "Shared 1,500 of 2,200": "2,200 个中共享 1,500 个",
    "Nothing for request 2: the only checkpoint lies at 2,112, in tokens that nobody shares. It leaves "
    "one at 1,056, and from the third request on that is hit.":
        "请求 2 一无所获：唯一的检查点在 2,112，落在没人共享的词元里。它在 1,056 处留下一份，从第三个请求起便能命中。",
    "The same, last boundary only": "同样的请求，只存最后一个边界",
    "Every request writes its checkpoint at 2,112, where the next one already differs: 0 for ever.":
        "每个请求都把检查点写在 2,112，而下一个请求在那里早已不同：永远是 0。",
    "552 tokens, block of 528": "552 个词元，块 528",
    "528 of 552 hit: 95.7 %.": "552 个中命中 528 个：95.7 %。",
    "979 tokens, block of 528": "979 个词元，块 528",
    "Still only 528: 53.9 %.": "仍然只有 528 个：53.9 %。",
    "Shorter than a block": "比一个块还短",
    "434 tokens never fill a block of 2,048: nothing is found, nothing is left, however often it comes.":
        "434 个词元填不满 2,048 的块：无论来多少次，什么也找不到，什么也不留下。",
    "A token differs early": "开头有一个词元不同",
    "The 41st token is a timestamp, say. Every key behind it is another one: all is computed again.":
        "比如第 41 个词元是时间戳。它之后的每个键都变了：全部重算。",
    "Pages stay, the state is gone": "页还在，状态没了",
    "Rows up to 2,112 are found, no state with them: 0. Request 2 writes the checkpoint again.":
        "找到了直到 2,112 的行，却没有状态：命中 0。请求 2 重新写下检查点。",
    "Another tenant": "另一个租户",
    "The same tokens under another salt share nothing, and must not.": "词元相同而盐值不同，就什么也不共享，也不该共享。",
    "Forget the parent": "忘掉父块",
    "The last block is equal, so everything before it is taken to be: 2,112 tokens of which all behind "
    "the 40th are wrong.":
        "最后一块相同，于是之前的内容也被当作相同：命中 2,112 个词元，其中第 40 个之后全是错的。",
    "Three requests, as drawn. Which of the last two resumes from a checkpoint?":
        "如图所示的三个请求，后两个中哪一个能从检查点继续？",
    "neither": "都不能",
    "only request 3": "只有请求 3",
    "only request 2": "只有请求 2",
    "both of them": "两个都能",
    "Request 2 resumes at {second}, request 3 at {third} of {tokens} tokens.":
        "{tokens} 个词元中，请求 2 从 {second} 继续，请求 3 从 {third} 继续。",
    # checks, metrics, tables
    "request 2 resumes where comparing tokens, salt and adapter says": "请求 2 的继续位置与逐一比较词元、盐值和适配器的结果一致",
    "nothing is taken that was computed for another prefix": "没有取用为别的前缀计算的内容",
    "request 3 finds the last boundary that requests 1 and 2 left for it": "请求 3 找到请求 1、2 为它留下的最后一个边界",
    "request 2 takes from the cache": "请求 2 取自缓存",
    "of its prompt": "占其提示词",
    "request 2 computes": "请求 2 计算",
    "of these had rows, but no state": "其中有行而没有状态",
    "checkpoints that request 2 writes": "请求 2 写入的检查点",
    "each is a state in all {groups} KDA groups, at {places}": "每个检查点在 {groups} 个 KDA 组中各有一份状态，位于 {places}",
    "request 3 takes from the cache": "请求 3 取自缓存",
    "checkpoints are kept": "检查点保存在",
    "request {n} resumes at": "请求 {n} 从何处继续",
    "checkpoints": "检查点",
    "Requests that share {shared} of {prompt} tokens, by policy": "{prompt} 个词元中共享 {shared} 个的请求，按策略比较",
    "tokens of the prompt": "提示词的词元数",
    "request": "请求",
    "hit, % of the prompt": "命中占提示词的百分比",
    "tokens shared": "共享的词元",
    "policy": "策略",
    "request 3 resumes at": "请求 3 从何处继续",
    # scene
    "Three requests, one cache": "三个请求，一个缓存",
    "From token {shared} on request 2 goes its own way.": "从第 {shared} 个词元起，请求 2 走自己的路。",
    "Only token {shared} differs, but every key behind it has it in its chain.":
        "只有位置 {shared} 的词元不同，但它之后的每个键都把它链在里面。",
    "The tokens are the same, but the salt is hashed into the root and so into every key.":
        "词元相同，但盐值被哈希进了根，也就进了每一个键。",
    "The tokens are the same, but another adapter computes other rows and states; its name is in every key.":
        "词元相同，但另一个适配器算出的行和状态不同；它的名字在每一个键里。",
    "The tokens are the same; what is left of request 1 decides.": "词元相同；就看请求 1 还剩下什么。",
    "Request 2 is request 1 once more.": "请求 2 就是请求 1 的重复。",
    "salt a": "盐值 a",
    "salt b": "盐值 b",
    "base model": "基座模型",
    "adapter 1": "适配器 1",
    "Request 1 computes {tokens} tokens and leaves {blocks} full blocks of rows and checkpoints at {places}.":
        "请求 1 计算 {tokens} 个词元，留下 {blocks} 个满块的行，检查点位置：{places}。",
    "Memory runs short: the checkpoint at {end} is evicted in all KDA groups, the pages of rows stay.":
        "内存不足：{end} 处的检查点在所有 KDA 组中被驱逐，存放行的页还在。",
    "{question} {why}": "{question}{why}",
    "A hit of {hit} tokens, of which {wrong} were computed for another prefix. No error is raised.":
        "命中 {hit} 个词元，其中 {wrong} 个是为别的前缀计算的。没有任何报错。",
    "A hit of {hit} tokens, {share} of the prompt.": "命中 {hit} 个词元，占提示词的 {share}。",
    "Rows are there up to {rows}, but no KDA group has a state at or before it. Rows without a state are "
    "worth nothing: the hit is 0.":
        "直到 {rows} 的行都在，但在那里和之前没有任何 KDA 组的状态。没有状态，行毫无用处：命中为 0。",
    "The prompt has {tokens} tokens, a block {grain}, and the last token is always computed: there is "
    "nothing to ask for.":
        "提示词有 {tokens} 个词元，一个块有 {grain} 个，而最后一个词元总要计算：没有可查的内容。",
    "Not one block of the prefix is known: the hit is 0.": "前缀的块一个也没有登记：命中为 0。",
    "Prefill stops at {end}, where request 2 leaves what others had computed before: such a place "
    "will be met again, so a checkpoint is written.":
        "预填充在 {end} 处停下，请求 2 从这里起离开别人算过的内容：这样的位置还会再遇到，所以写下一个检查点。",
    "Prefill stops at {end}, the policy's boundary, and a checkpoint is written in every KDA "
    "group.": "预填充在策略规定的边界 {end} 处停下，在每个 KDA 组写下检查点。",
    "{computed} tokens computed. Request 2 leaves its rows, and checkpoints at {places}.":
        "计算了 {computed} 个词元。请求 2 留下它的行，新检查点位置：{places}。",
    "Request 3 resumes at {hit} and computes {rest} of {tokens} tokens.":
        "请求 3 从 {hit} 继续，{tokens} 个词元中只计算 {rest} 个。",
    "Request 3 finds no boundary either and computes all {tokens} tokens again.":
        "请求 3 也找不到可用的边界，全部 {tokens} 个词元再算一遍。",
    "Whole page up to {end}: found.": "到 {end} 为止的整页：找到。",
    "Whole page up to {end}: not found; now inside it, from the right.": "到 {end} 为止的整页：没有；接着在页内从右往左找。",
    "Block that ends at {end}: found.": "结束于 {end} 的块：找到。",
    "Block that ends at {end}: not found.": "结束于 {end} 的块：没有。",
    "no position": "任何位置都没有",
    "{count} positions up to {end}": "到 {end} 为止的 {count} 个位置",
    "request {n}, {tokens} tokens, {note}": "请求 {n}，{tokens} 个词元，{note}",
    "request {n}, {tokens} tokens": "请求 {n}，{tokens} 个词元",
    # charts
    "The same prompt twice": "同一个提示词来两次",
    "Below one block nothing hits; then the share falls from nearly all to half and jumps up again at "
    "every block.":
        "不足一个块时什么也命中不了；之后占比从几乎全部降到一半，每满一个块又跳上去。",
    "Only the beginning is shared": "只共享开头",
    "With a checkpoint at the last boundary only, everything short of that boundary is lost. A "
    "checkpoint where prompts part follows the shared length in steps of the grid.":
        "只在最后一个边界存检查点，共享不到那里就全部白费；在分叉处存检查点，则以网格为步长跟随共享长度。",
    "Marconi": "Marconi",
    "align": "align",
    # real text
    "What all requests begin with": "所有请求的开头",
    "How each goes on, a line for each": "各请求的后续，每个一行",
    "Where all tokens are the same, only the first line is used.": "词元全部相同时只用第一行。",
    "Character that differs": "不同的那个字符",
    "Used where one token differs.": "在“有一个词元不同”时使用。",
    "ends takes 3 lines, the end of each request; given: {count}": "ends 需要 3 行，每个请求的结尾一行；现有 {count} 行",
    "place is {place}, but the text has {count} characters": "place 是 {place}，但文本只有 {count} 个字符",
    "Three prompts begin with the same 51 characters, and the trained model answers each. Request 2 resumes nowhere, request "
    "3 at 48: same text, same state as without a cache.":
        "三个提示词的前 51 个字符相同，训练好的模型逐个回答。请求 2 无处可以继续，请求 3 从 48 继续：文本和状态与不用缓存时相同。",
    "A real text, the parent forgotten": "真实文本，忘记父块",
    "One character differs, early. Request 2 gets request 1's rows and states, and nothing tells it.":
        "很早就有一个字符不同。请求 2 拿到请求 1 的行和状态，却没有任何提示。",
    "a state of the trained model, with its convolution window: {state} B in float32, in {groups} KDA layers {all} B":
        "训练好的模型的一份状态连同卷积窗口：float32 下 {state} B，{groups} 个 KDA 层共 {all} B",
    "a row of its MLA layer: {row} B, so a checkpoint is worth {rows} rows":
        "它的 MLA 层的一行：{row} B，所以一个检查点相当于 {rows} 行",
    "request 2 leaves {states} B of states and {rows} B of rows": "请求 2 留下 {states} B 的状态和 {rows} B 的行",
    "Request {n}": "请求 {n} ",
}
