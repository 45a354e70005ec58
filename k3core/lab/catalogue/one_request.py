"""Chinese entries of the home page's figure, `one-request`."""

ZH = {
    "One request": "一个请求",
    "One request, from router to checkpoint": "一个请求：从路由到检查点",
    "A conversation's next turn arrives. What has to work so that most of it need not be computed again?":
        "对话的下一轮到了。要让其中大部分不必重新计算，哪些环节必须协同工作？",
    "Tokens repeated from turn 1": "与第 1 轮相同的词元数",
    "Or drag the bead under the prompt.": "也可以拖动提示词下方的圆点。",
    "Cluster that is down": "停机的集群",
    "none": "无",
    "Ordinary requests just before": "之前刚到的普通请求数",
    "This request is VIP": "本请求是 VIP",
    "Leave rejected drafts in the state": "把被拒绝的草稿留在状态里",
    "The state can no longer be that of plain decoding.": "状态将不再等于普通解码的状态。",
    "A good day": "一切正常",
    "6,144 of 8,100 tokens come from the cache, and a VIP does not see the burst.":
        "8,100 个词元中有 6,144 个来自缓存；VIP 感觉不到突发流量。",
    "Its cluster dies": "所在集群停机",
    "The second choice takes over with an empty cache: all 8,100 tokens are computed again.":
        "第二选择接手，但缓存是空的：8,100 个词元全部重新计算。",
    "Ordinary, in a crowd": "普通请求，遇上高峰",
    "Nine requests are ahead and it is not VIP: the wait costs more than the cache saves.":
        "前面有九个请求，而它不是 VIP：排队的时间超过缓存省下的时间。",
    "An early edit": "改了开头",
    "Only 2,000 tokens are the same. Rows match up to 1,536, but the first state was kept at 2,048: nothing can be "
    "reused.": "只有 2,000 个词元相同。行匹配到 1,536，但最早的状态保存在 2,048 处：什么也不能复用。",
    "No rollback": "不回退",
    "Rejected drafts stay in the state: after four rounds it is no longer that of plain decoding.":
        "被拒绝的草稿留在状态里：四轮之后，状态已不是普通解码的状态。",
    "How many times sooner does the first token come than with an empty cache?": "与空缓存相比，首词元快多少倍？",
    "hardly sooner": "几乎没有变快",
    "up to 2 times": "不到 2 倍",
    "2 to 4 times": "2 到 4 倍",
    "more than 4 times": "超过 4 倍",
    "{ttft} ms instead of {cold} ms.": "{ttft} ms，而不是 {cold} ms。",
    # checks, metrics, tables
    "it resumes at the last kept state within what is the same, token by token":
        "恢复点是相同词元范围内最后一个保存的状态（逐词元比对）",
    "after replay the state is that of plain decoding, bit for bit": "重放后的状态与普通解码逐位相同",
    "every block of the pool is accounted for when the request has gone": "请求离开后，池中每个块都有着落",
    "prompt computed, of {prompt}": "需计算的提示词（共 {prompt}）",
    "time to first token": "首词元时间",
    "with an empty cache": "缓存为空时",
    "tokens per verify round": "每个验证轮的词元数",
    "a draft is right with 70 % if the one before was": "前一个草稿正确时，下一个草稿有 70 % 的概率正确",
    "records of {window} positions, K3": "{window} 个位置的记录（K3）",
    "the same as state snapshots": "改用状态快照",
    "waits {wait} ms": "等待 {wait} ms",
    "prefill share of its class: {share} %": "所属类别的预填充份额：{share} %",
    "round": "轮次",
    "drafts": "草稿数",
    "tokens kept": "保留的词元",
    "station": "环节",
    "value": "值",
    # captions
    "A conversation's next turn arrives: {prompt} tokens. The first {shared} are those of turn 1, which was served "
    "before.": "对话的下一轮到达：{prompt} 个词元，其中前 {shared} 个与已服务过的第 1 轮相同。",
    "{first}, which served turn 1, is down. The conversation goes to {cluster}, its second choice, where nothing of it "
    "is cached.": "服务过第 1 轮的 {first} 停机了。对话转到第二选择 {cluster}，那里没有它的任何缓存。",
    "{down} is down, which this conversation does not notice: its name hashes to {cluster}, as it did for turn 1.":
        "{down} 停机，但这个对话不受影响：它的名字仍映射到 {cluster}，与第 1 轮相同。",
    "The router hashes the conversation's name: {cluster} comes first, as it did for turn 1, and still has its cache.":
        "路由器对对话的名字做哈希：{cluster} 排在第一，与第 1 轮相同，缓存还在那里。",
    "Nobody is ahead of it: it starts at once.": "前面没有别的请求：立即开始。",
    "{running} ordinary requests run, {waiting} wait. This one is VIP, with slots and compute of its own: it starts "
    "after {wait} ms.":
        "{running} 个普通请求在运行，{waiting} 个在等待。本请求是 VIP，有自己的槽位和算力：{wait} ms 后开始。",
    "{running} ordinary requests run, {waiting} wait, and this one behind them: it starts after {wait} ms.":
        "{running} 个普通请求在运行，{waiting} 个在等待，本请求排在后面：{wait} ms 后开始。",
    "Attention rows can be taken over hash block by hash block: {rows} tokens match.":
        "注意力的行可以按哈希块逐块复用：匹配 {rows} 个词元。",
    "Nothing of this conversation is in this cluster's cache.": "这个集群的缓存里没有这个对话的任何内容。",
    "A recurrent state is there only where one was kept: {kept}. The last within the rows is {hit}. The request resumes "
    "at the one boundary that both share.":
        "循环状态只存在于保存过的位置：{kept}。行所覆盖的最后一个是 {hit}。请求从两者共有的边界恢复。",
    "No state was kept within what it shares, and rows alone are no use: it starts from the first token.":
        "相同的部分里没有保存过状态，只有行没有用：从第一个词元开始算。",
    "One pool serves both kinds of cache: {hit} pages shared, {rows} of its own for rows, {states} for states. Nothing is "
    "set aside for either.":
        "一个池服务两种缓存：共享 {hit} 页，自己的行 {rows} 页，状态 {states} 页。哪一种都不预留。",
    "{computed} tokens are computed instead of {prompt}: the first token comes after {ttft} ms, from an empty cache after "
    "{cold}.": "只计算 {computed} 个词元，而不是 {prompt} 个：首词元用时 {ttft} ms；缓存为空时要 {cold} ms。",
    "Round {n}: without drafts every step gives one token.": "第 {n} 轮：没有草稿，每步一个词元。",
    "Round {n}: {kept} of {window} tokens stay, but the state keeps all of them. That is the mistake.":
        "第 {n} 轮：{window} 个词元中保留 {kept} 个，但状态里留下了全部。这就是错误所在。",
    "Round {n}: {window} tokens are verified at once and {kept} stay. The state is replayed from their records; the "
    "rejected leave no trace.":
        "第 {n} 轮：一次验证 {window} 个词元，保留 {kept} 个。状态由它们的记录重放得到；被拒绝的不留痕迹。",
    "The answer is complete, but the state is off by up to {error}: everything after it is another text.":
        "回答完成，但状态最多偏离 {error}：此后生成的都是另一段文字。",
    "The answer is complete, and its state is that of plain decoding, bit for bit. States were kept at {kept}: turn 3 will "
    "resume there.":
        "回答完成，状态与普通解码逐位相同。状态保存在 {kept}：第 3 轮将从那里恢复。",
    # drawing
    "tokens from the cache: {n}": "来自缓存的词元：{n}",
    "tokens to compute: {n}": "需要计算的词元：{n}",
    "{what}: {n}": "{what}：{n}",
    "shared pages": "共享页",
    "own rows": "自己的行",
    "running states": "运行中的状态",
    "states kept": "保存的状态",
    "rows kept": "保存的行",
    "other requests": "其他请求",
    "free": "空闲",
    "request": "请求",
    "prefix lookup": "前缀查找",
    "the same up to {shared}: drag": "前 {shared} 个相同：可拖动",
    "turn 1, and the states kept along it": "第 1 轮，以及沿途保存的状态",
    "drag to set how much is repeated": "拖动以设置重复多少",
    "resume at {hit}": "从 {hit} 恢复",
    "rows to {rows}": "行到 {rows}",
    "router": "路由",
    "{name} is down; click to bring it back": "{name} 已停机；点击恢复",
    "click to kill {name}": "点击让 {name} 停机",
    "order of choice; click one to kill it": "选择顺序；点击让其停机",
    "click one to kill it": "点击让其停机",
    "admission": "准入",
    "{shared} of them repeated": "其中 {shared} 个重复",
    "VIP": "VIP",
    "ordinary": "普通",
    "waiting": "等待",
    "starts at once": "立即开始",
    "starts after {wait} ms": "{wait} ms 后开始",
    "one pool of pages": "一个页池",
    "decode: draft, verify, replay": "解码：草稿、验证、重放",
    "{kept} of {window} stay": "保留 {kept} / {window}",
    "off by {error}": "偏离 {error}",
    "= plain decoding, bit for bit": "= 普通解码，逐位相同",
    "checkpoints": "检查点",
    "first token": "首词元",
    "{ms} ms": "{ms} ms",
    "{ms} ms, cache empty": "{ms} ms，缓存为空",
    "to take drafts back": "回退草稿所需",
    "{bytes} of records": "记录 {bytes}",
    "{bytes} of snapshots": "快照 {bytes}",
    "id": "编号",
}
