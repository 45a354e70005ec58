"""Chinese entries of the tab `prefix-hit`, and of the strips it shares with `prefix-miss`."""

ZH = {
    "Hit": "命中",
    "A hit: one boundary for two kinds of cache": "命中：两种缓存，一个边界",
    "A conversation comes back with a prompt that begins like the last one. Attention rows can be reused "
    "up to any block, a recurrent state only where one was kept. Where does the new turn resume, and how "
    "much sooner does its first token come?":
        "一段对话带着与上次开头相同的提示词回来了。注意力行可以复用到任意一个块，循环状态却只能在保存过的位置复用。新一轮从哪里继续？首个词元能提早多少？",
    # parameters
    "Tokens shared": "共享的词元",
    "What turn 2 repeats of turn 1.": "第 2 轮重复第 1 轮的部分。",
    "New tokens per turn": "每轮的新词元",
    "Tokens of turn 1 that are not repeated": "第 1 轮中不再重复的词元",
    "An edited question, or reasoning that the client leaves out of the history.":
        "例如改写过的问题，或客户端没有放进历史的推理过程。",
    "Checkpoint grid, in hash blocks": "检查点网格（哈希块数）",
    "Hash block, in tokens": "哈希块（词元数）",
    "Page, in hash blocks": "页（哈希块数）",
    "Where checkpoints are kept": "在哪里保存检查点",
    "at the last boundary (align)": "最后一个边界（align）",
    "also where prompts part (Marconi)": "另加提示词分叉处（Marconi）",
    "at every boundary (dense)": "每个边界（dense）",
    "Evict the checkpoint of": "驱逐哪一组的检查点",
    "no group": "不驱逐",
    "KDA group {group}": "KDA 组 {group}",
    "Between turns 1 and 2; or click a checkpoint of turn 1.": "发生在第 1、2 轮之间；也可以直接点击第 1 轮的检查点。",
    "A hit needs every KDA group": "命中要求每个 KDA 组都有状态",
    "Off: when one group's checkpoint is evicted, those of the other groups are still found, and "
    "the hit is taken with one state missing.":
        "关闭后，一个组的检查点被驱逐，其他组的仍能查到，于是在缺一份状态的情况下照样命中。",
    # presets
    "The report's figure": "技术报告中的例子",
    "2,800 tokens match, hash block 512, page 6,144: the turn resumes at 2,560, inside a page.":
        "2,800 个词元相同，哈希块 512，页 6,144：从 2,560 继续，位于一页的内部。",
    "Hash block = page": "哈希块等于页",
    "Nothing finer than a page of 6,144 tokens can be found: the same 2,800 shared tokens hit nothing.":
        "查找的最小单位是 6,144 个词元的整页：同样共享 2,800 个词元，却一个也命中不了。",
    "4,480 shared, block of 4,096": "共享 4,480，状态块 4,096",
    "A match unit of 128 tokens resumes at 4,480; the state block of 4,096 alone would resume at "
    "4,096.": "匹配单位为 128 个词元时从 4,480 继续；只按 4,096 的状态块则只能从 4,096 继续。",
    "2,048 shared, block of 128": "共享 2,048，块 128",
    "Exactly 2,048 tokens are taken. 2,048 of 3,000 save 68 % of the prefill.":
        "恰好取用 2,048 个词元。3,000 个中命中 2,048 个，预填充省去 68 %。",
    "A long agent session": "很长的智能体会话",
    "32,000 of 33,000 tokens come back: with a checkpoint near the end almost all of the wait goes.":
        "33,000 个词元中有 32,000 个是旧的：末尾附近有检查点，等待时间几乎全部省去。",
    "One group's state is evicted": "一个组的状态被驱逐",
    "The rows of 2,560 tokens are still there, but no boundary has a state in every group: 0 hit.":
        "2,560 个词元的行还在，但没有一个边界在每组都有状态：命中为 0。",
    "Take the hit all the same": "缺状态也照样命中",
    "Turn 2 resumes at 2,560 although group 2 has nothing there: 2,560 wrong tokens, and turn 3 inherits "
    "them with 3,072.":
        "组 2 在 2,560 处没有状态，第 2 轮仍从那里继续：2,560 个词元出错，第 3 轮又继承到 3,072 个。",
    "Turn 2 repeats the first tokens of turn 1 as drawn. How much of its wait for the first "
    "token does the cache take away?":
        "第 2 轮重复第 1 轮开头的词元，如图所示。缓存能省去它等待首个词元的多少时间？",
    "nothing at all": "一点也省不了",
    "less than 40 %": "不到 40 %",
    "40 to 70 %": "40 % 到 70 %",
    "70 % or more": "70 % 以上",
    "Turn 2 resumes at {hit} of {tokens} tokens: {warm} instead of {cold} ms, {saved} % less.":
        "第 2 轮从 {tokens} 个词元中的 {hit} 处继续：{warm} ms 而不是 {cold} ms，少 {saved} %。",
    # checks
    "turn 2 resumes at the last boundary that rows and all KDA groups share":
        "第 2 轮从行与所有 KDA 组共有的最后一个边界继续",
    "every block taken holds the state or rows of this very prefix": "取用的每个块都存着这一前缀本身的状态或行",
    "the last token of a prompt is always computed": "提示词的最后一个词元总会计算",
    "at least 1": "至少 1",
    "the time saved is the time to prefill what was taken": "省下的时间就是预填充所取用部分的时间",
    "{ms} ms": "{ms} ms",
    # metrics, tables
    "work of n tokens: 2 × {active} × n + {attention} × n² / 2 FLOP":
        "n 个词元的计算量：2 × {active} × n + {attention} × n² / 2 FLOP",
    "speed: {speed} FLOP/s, from 376.3 ms for 8,000 tokens": "速度：{speed} FLOP/s，由 8,000 个词元 376.3 ms 得出",
    "computed behind the hit: {tokens} tokens": "命中之后计算：{tokens} 个词元",
    "turn 2 takes from the cache": "第 2 轮取自缓存",
    "of turn 2's prompt": "占第 2 轮提示词",
    "time to first token, with the hit": "首词元时间，命中时",
    "time to first token, without": "首词元时间，未命中时",
    "saved": "节省",
    "hit that would save 40 %": "节省 40 % 所需的命中",
    "{tokens} tokens": "{tokens} 个词元",
    "turn": "轮次",
    "prompt, tokens": "提示词（词元）",
    "rows found": "找到的行",
    "resumed at": "从何处继续",
    "computed, tokens": "计算（词元）",
    "states written, all groups": "写入的状态，各组合计",
    "first token, with": "首词元，命中",
    "without": "未命中",
    "The three turns": "三轮对话",
    "hit needed, tokens": "所需命中（词元）",
    "share of the prompt": "占提示词",
    "first token without a hit": "未命中时的首词元时间",
    "When a hit saves more than 40 %": "命中何时节省 40 % 以上",
    "hit, % of the prompt": "命中占提示词的百分比",
    "time saved, %": "节省的时间，%",
    "tokens shared": "共享的词元",
    "grid": "网格",
    # scene
    "Three turns of one conversation": "同一段对话的三轮",
    "Turn 1 finds nothing and computes all {tokens} tokens. It leaves its rows under {blocks} chained "
    "hashes, and {states} states: one per KDA group at {places}.":
        "第 1 轮什么也没找到，计算全部 {tokens} 个词元。它留下的行登记在 {blocks} 个链式哈希之下，另有 {states} 份状态：每个 KDA 组在 {places} 各一份。",
    "The checkpoint at {end} is evicted in KDA group {group}. A boundary with a state missing is no "
    "boundary: the other groups give theirs up at once.":
        "{end} 处的检查点在 KDA 组 {group} 中被驱逐。缺一份状态的边界不再是边界：其他组的那份随即一并作废。",
    "The checkpoint at {end} is evicted in KDA group {group}, but the entries of the other groups "
    "stay, and the index still names all three.":
        "{end} 处的检查点在 KDA 组 {group} 中被驱逐，但其他组的条目还在，索引里仍然列着三组。",
    "From there backwards on the grid: {count} boundaries have rows but no state in all {groups} "
    "groups, the first of them {end}.":
        "从那里沿网格往回找：{count} 个边界有行，却不是 {groups} 个组都有状态，其中第一个在 {end}。",
    "At {hit} every KDA group has a state. Turn 2 copies them into its own blocks, the cached ones stay "
    "as they are, and goes on behind token {hit}.":
        "在 {hit} 处每个 KDA 组都有状态。第 2 轮把它们复制到自己的块里，缓存中的原样不动，然后从第 {hit} 个词元之后继续。",
    "At {hit} the hit is taken although one group has no state there. Turn 2 goes on from memory "
    "that holds something else, and nobody notices.":
        "尽管有一个组在 {hit} 处没有状态，仍然按命中处理。第 2 轮从装着别的内容的内存继续，谁也没有察觉。",
    "No boundary has both rows and states: nothing can be taken, turn 2 computes everything.":
        "没有哪个边界同时具备行和状态：什么也不能取用，第 2 轮全部重算。",
    "{now} ms. Behind the hit {done} of {all} tokens are computed; without the cache the prefill "
    "would stand at {share} %.":
        "{now} ms。命中之后的 {all} 个词元已算完 {done} 个；没有缓存时，预填充才进行到 {share} %。",
    "{now} ms. Nothing was taken, so both prefills stand at {share} %.":
        "{now} ms。什么也没有取用，两边的预填充都进行到 {share} %。",
    "First token after {warm} ms instead of {cold} ms: {saved} % less. Turn 2 has written its "
    "own checkpoint at {places}.":
        "首个词元在 {warm} ms 时出现，而不是 {cold} ms：少 {saved} %。第 2 轮在 {places} 写下了自己的检查点。",
    "Turn 3 repeats all of turn 2. It resumes at {hit} and computes {rest} of {tokens} tokens.":
        "第 3 轮重复整个第 2 轮。它从 {hit} 继续，{tokens} 个词元中只计算 {rest} 个。",
    "Whole page up to {end}: the hash of its last block is known. It stands for every token before, so "
    "all blocks up to there light up.":
        "到 {end} 为止的整页：末块的哈希已登记。它代表此前的每一个词元，所以到那里的块全部点亮。",
    "Whole page up to {end}: unknown. The first stage ends; now inside this page, from the right.":
        "到 {end} 为止的整页：未登记。第一阶段到此结束；接着在这一页内部从右往左找。",
    "Inside the page from {start}, end {end}: known. The hash chains back to the first token, so "
    "everything before it matches too.":
        "在从 {start} 开始的页内，端点 {end}：已登记。哈希一直链接到首个词元，所以之前的内容也全部相同。",
    "Inside the page from {start}, end {end}: unknown, so some token before it differs or was never cached.":
        "在从 {start} 开始的页内，端点 {end}：未登记，说明之前有词元不同，或从未缓存。",
    "no position": "任何位置都没有",
    "{count} positions up to {end}": "到 {end} 为止的 {count} 个位置",
    "time to first token of turn 2": "第 2 轮的首词元时间",
    "with the hit": "命中",
    "{name}: {done} of {total} ms": "{name}：{done} / {total} ms",
    # charts
    "Time saved against the share that hits": "节省的时间与命中占比",
    "Short prompts save what they hit: 40 % from 40 %. In very long ones the tokens at the end cost "
    "most, and those are computed: a million tokens need a hit of 59 %.":
        "短提示词命中多少就省多少：命中 40 % 省 40 %。在极长的提示词里，末尾的词元最贵，而它们恰恰要计算：一百万个词元需要命中 59 %。",
    "2,000 to 32,000 tokens": "2,000 到 32,000 个词元",
    "1,000,000 tokens": "1,000,000 个词元",
    "checkpoint grid": "检查点网格",
    "pages only": "只按整页",
    "Where a shared prefix resumes": "共享前缀从何处继续",
    "At the last boundary of the grid, if it holds a checkpoint; up to one grid step is computed "
    "again. Whole pages alone would lose up to a page.":
        "在网格的最后一个边界，只要那里有检查点；最多重算一个网格步长。只按整页则最多损失一整页。",
    # strips
    "turn {n}, {tokens} tokens": "第 {n} 轮，{tokens} 个词元",
    "KDA group {group}, state after {tokens} tokens": "KDA 组 {group}，第 {tokens} 个词元之后的状态",
    "shared: {tokens}": "共享：{tokens}",
    "drag to set the shared length": "拖动以设置共享长度",
    "drag to set the checkpoint grid": "拖动以设置检查点网格",
    "checkpoint grid: {tokens} tokens": "检查点网格：{tokens} 个词元",
    "from the cache: {tokens} tokens": "取自缓存：{tokens} 个词元",
    "taken, but of another prefix: {tokens} tokens": "取用了，但属于别的前缀：{tokens} 个词元",
    "rows found, but no state there: {tokens} tokens": "找到了行，但那里没有状态：{tokens} 个词元",
    "computed: {tokens} tokens": "计算：{tokens} 个词元",
    "not reached yet: {tokens} tokens": "尚未处理：{tokens} 个词元",
    "MLA rows that can be found: {tokens} tokens": "可以查到的 MLA 行：{tokens} 个词元",
    "KDA checkpoints: {count} in {groups} groups": "KDA 检查点：{groups} 个组共 {count} 份",
    "evicted or not there: {count}": "已驱逐或不存在：{count}",
    # real text
    "Prompt of turn 1": "第 1 轮的提示词",
    "What turns 2 and 3 add": "第 2、3 轮追加的内容",
    "The answer stays in the history": "回答留在历史里",
    "Off: as with reasoning that the client leaves out.": "关闭时：如同客户端不放进历史的推理过程。",
    "The trained model goes on with a prompt of 52 characters, is asked for more twice, and resumes where 16-character blocks "
    "allow: same text, same state, to the bit.":
        "训练好的模型接着一段 52 个字符的提示词往下写，又被追问两次，并在 16 字符的块允许的位置继续：文本和状态逐位相同。",
    "The same, a state in every block": "同上，每个块都存状态",
    "The answer leaves states behind as well: turn 2 goes on inside it, and only what is new is computed.":
        "回答也会留下状态：第 2 轮从回答中间继续，只计算新的部分。",
    "A real text from a wrong state": "从错误状态写出的真实文本",
    "Group 3's block now holds another request's state, and the hit is taken all the same: no error, another text.":
        "组 3 的块里现在是另一个请求的状态，却照样命中：没有报错，文本变了。",
    "turn {n}, {tokens} tokens and an answer of {more}": "第 {n} 轮，{tokens} 个词元，回答 {more} 个",
    "Another request takes the block and leaves its own state in it.": "另一个请求拿走了这个块，把自己的状态留在里面。",
    "Turn {n}": "第 {n} 轮",
}
