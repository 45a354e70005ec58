"""Chinese entries of the tab `speculative-replay`."""

ZH = {
    "Speculative replay": "投机重放",
    "Speculative replay: taking drafts back": "投机重放：把草稿收回来",
    "A recurrent state cannot forget a rejected draft. What must be kept during a verify round so that the "
    "text comes out as if there had been no drafts?":
        "循环状态无法忘掉被拒绝的草稿。一轮验证期间要保存什么，才能让输出与没有草稿时完全一样？",
    "Draft tokens per round": "每轮草稿词元数",
    "The window holds one position more: the last chosen token, which is always right.":
        "窗口还多一个位置：上一个已选定的词元，它总是对的。",
    "A draft is right with probability": "每个草稿正确的概率",
    "Drafts come from": "草稿来源",
    "an oracle with noise": "带噪声的预言机",
    "looking up the text so far": "在已有文本中查找",
    "The decoder runs on": "解码器使用的存储",
    "The other three get the same inputs and only watch.": "另外三种收到同样的输入，只旁观。",
    "Head size dk = dv": "头的大小 dk = dv",
    "Prompt": "提示",
    "One token per character. Random weights know a to z, space, and , . ' - ?; the trained model reads ASCII and knows "
    "Python.": "每个字符一个词元。随机权重认识 a 到 z、空格以及 , . ' - ?；训练好的模型读 ASCII，学的是 Python。",
    "random weights": "随机权重",
    "KDA layer whose state is drawn": "画出哪个 KDA 层的状态",
    "A real text": "真实文本",
    "The trained model goes on with Python source; drafts are what followed the same characters before. Fewer passes, "
    "more positions: which of the two is time depends on the machine.":
        "训练好的模型续写 Python 源码；草稿取自同样的字符以前出现时后面的内容。前向次数更少，计算的位置更多：哪一个决定时间，取决于机器。",
    "A real text, drawn": "真实文本，抽样",
    "At temperature 0.8 the text repeats itself less, and look-up finds less. Noise belongs to the position, so drafts "
    "change no letter.": "温度 0.8 时文本重复较少，查找也少有收获。噪声属于位置，因此草稿不会改变任何字符。",
    "The state itself": "状态本身",
    "forward passes after the prompt": "提示之后的前向次数",
    "{passes}, plain decoding {plain}": "{passes}，普通解码为 {plain}",
    "token positions computed in them": "其中计算的词元位置数",
    "{positions}, plain decoding {plain}": "{positions}，普通解码为 {plain}",
    "half of the gates of layer {layer} forget within": "第 {layer} 层半数门控的遗忘时间",
    "{n} tokens": "{n} 个词元",
    "{read} tokens are read, the prompt. Head {h} holds the largest value, {peak}.":
        "读完提示，共 {read} 个词元。最大的值在头 {h} 中，为 {peak}。",
    "It is the state of plain decoding, to the bit.": "状态与普通解码逐位相同。",
    "It is {off} off the state of plain decoding.": "状态与普通解码相差 {off}。",
    "Round {n} reads '{said}' for good. Head {h} changes most, by {share} of its size. {where}":
        "第 {n} 轮最终读入“{said}”。头 {h} 变化最大，为自身大小的 {share}。{where}",
    "|S|, stronger where larger; rows: key channels, columns: value channels":
        "|S|，越大颜色越深；行是键通道，列是值通道",
    "|S|, stronger where larger; a square is the mean of {n} × {n} values":
        "|S|，越大颜色越深；一格是 {n} × {n} 个值的平均",
    "half-life of a key channel's gate, in tokens, on a scale of powers of ten":
        "键通道门控的半衰期（词元数），刻度为 10 的幂",
    "head {h}": "头 {h}",
    "half of its gates forget within {n} tokens": "其半数门控的半衰期不超过 {n} 个词元",
    "head": "头",
    "shown": "已画出",
    "half-life, in tokens": "半衰期（词元数）",
    "How long each gate remembers": "每个门控记得多久",
    "A tick is one key channel: after so many tokens half of what it holds is gone, by its mean log decay over the text. "
    "Strong: the layer drawn above.":
        "一条短线是一个键通道：按它在这段文本上的平均对数衰减，过这么多词元后，所存内容只剩一半。颜色深的是上面画出的层。",
    "draft": "草稿",
    "accepted drafts": "接受的草稿数",
    "drafts read": "读入的草稿数",
    "place of the draft in its round": "草稿在本轮中的位置",
    "accepted with all before it": "连同之前的草稿一起被接受",
    "Acceptance by position: here and published": "按位置的接受率：本页与公开数据",
    "Amber, solid: this run. Grey, dashed: K3.1-Pro-DSpark-preview on GSM8K, published. A draft counts only where all "
    "before it in its round were right.":
        "琥珀色实线：本次运行。灰色虚线：K3.1-Pro-DSpark-preview 在 GSM8K 上的公开数据。只有同一轮中之前的草稿全对，后面的草稿才算接受。",
    "New tokens": "新词元数",
    "Mistake": "错误做法",
    "none": "无",
    "forget the convolution window": "忘记卷积窗口",
    "advance by the drafted count": "按草稿数前进",
    "always take column 0": "总取第 0 列",
    "prompt holds {character}; the model knows only {alphabet} and the space":
        "prompt 含有 {character}；模型只认识 {alphabet} 和空格",
    "prompt has {count} characters; with random weights it takes 1 to {most}":
        "prompt 有 {count} 个字符；随机权重时应为 1 到 {most} 个",
    "An easy task": "容易的任务",
    "Acceptance as implied by the published 4.581 of 6 tokens per round (K3-DSpark-Block5, GSM8K). Most "
    "windows are kept whole.": "接受率取自公开数字：每轮 6 个词元中接受 4.581 个（K3-DSpark-Block5，GSM8K）。多数窗口整个保留。",
    "A hard task": "困难的任务",
    "The same draft model on AIME26: 2.489 of 6. More than half of what is drafted is taken back.":
        "同一草稿模型在 AIME26 上：6 个中 2.489 个。超过一半的草稿被收回。",
    "Every draft wrong": "草稿全错",
    "One token per round, as without drafts, and the same text: drafts cost time, never words.":
        "每轮只得一个词元，与没有草稿时相同，文本也相同：草稿错了只费时间，不会改变输出。",
    "Look up the text": "查找文本",
    "No draft model: what followed the same characters before. Rounds without a match draft nothing.":
        "没有草稿模型：同样的字符以前出现时后面跟着什么，就拿来当草稿。找不到匹配的轮次没有草稿。",
    "A head of K3's size": "K3 的头大小",
    "At 128 × 128 the records are 0.047 of the snapshots: beside a state, a record is a line.":
        "128 × 128 时记录只有快照的 0.047：与状态相比，一条记录只是一条线。",
    "Forget the convolution": "忘记卷积",
    "The recurrent state is right, its inputs are not. The text departs, and look-up finds more matches in "
    "it: acceptance rises while the output is wrong.":
        "循环状态回退正确，它的输入却不对。文本偏离，而查找在其中反而找到更多匹配：接受率上升，输出却是错的。",
    "Count the drafts": "按草稿计数",
    "Rejected drafts stay in state and cache. The text departs soon after the first rejection.":
        "被拒绝的草稿留在状态和缓存中。第一次拒绝之后不久，文本就偏离了。",
    "Column 0": "第 0 列",
    "Text and cache advance by what was accepted, the state by one token.":
        "文本和缓存按接受的数量前进，状态只前进一个词元。",
    "How many tokens does one verify round add to the text on average, the bonus token included?":
        "平均一轮验证给文本增加多少个词元（含奖励词元）？",
    "up to 1.5": "不超过 1.5",
    "1.5 to 2.5": "1.5 到 2.5",
    "2.5 to 3.5": "2.5 到 3.5",
    "3.5 to 5": "3.5 到 5",
    "more than 5": "超过 5",
    "It is {mean}. Looking back helps only where the text repeats itself.":
        "答案是 {mean}。只有文本重复自己的地方，查找才有用。",
    "It is {mean}. A round ends at the first wrong draft, so of {drafts} drafts {kept} are kept on average, "
    "not {naive}; the bonus token comes on top.":
        "答案是 {mean}。一轮在第一个错误草稿处结束，所以 {drafts} 个草稿平均只保留 {kept} 个，而不是 {naive} 个；奖励词元另算。",
    "Verify rounds": "验证轮次",
    "size": "大小",
    "dk = dv": "dk = dv",
    "snapshots": "快照",
    "projections": "投影",
    "corrected values": "修正值",
    "ring of records": "记录环",
    "records": "记录",
    "records / snapshots": "记录 / 快照",
    "snapshots, by formula": "快照，按公式",
    "records, by formula": "记录，按公式",
    "A window of {count} positions, one head, arrays measured": "{count} 个位置的窗口，一个头，实测数组",
    "design": "设计",
    "of the snapshots": "占快照的比例",
    "bytes per window": "每个窗口的字节数",
    "round": "轮次",
    "drafted": "草稿",
    "accepted": "接受",
    "rejected": "拒绝",
    "bonus": "奖励",
    "tokens gained": "新增词元",
    "smallest logit margin": "最小 logit 差距",
    "The rounds": "各轮",
    "id": "编号",
    "store": "存储",
    "held, one head": "保存量，一个头",
    "what a rollback does": "回退时做什么",
    "copies one snapshot over S": "把一份快照复制到 S",
    "replays the kept records onto S, in order": "把保留的记录按顺序重放到 S 上",
    "adds the kept records to S at once": "把保留的记录一次加到 S 上",
    "moves a cursor; S is written at a flush": "移动游标；刷写时才写 S",
    "rounds that write S": "写 S 的轮数",
    "off plain decoding by": "与普通解码的偏差",
    "Four stores, the same drafts, {count} rounds": "四种存储，同样的草稿，{count} 轮",
    "all {count} tokens": "全部 {count} 个词元",
    "{same} equal tokens, then token {next} differs": "{same} 个词元相同，第 {next} 个不同",
    "the text with drafts equals plain decoding": "使用草稿的文本与普通解码相同",
    "{count} equal tokens": "{count} 个词元相同",
    "after every round, snapshots and replayed projections hold the state of plain decoding to the bit "
    "(first layer)":
        "每轮之后，快照和重放投影得到的状态与普通解码逐位相同（第一层）",
    "a difference of 0": "差为 0",
    "corrected values and ring hold it within rounding": "修正值和记录环得到的状态在舍入误差之内",
    "at most {bound}": "不超过 {bound}",
    "the arrays of all four sizes are as large as the formula says": "四种大小的数组都与公式一致",
    "records stay under {share} of the snapshots at every size": "每种大小下记录都低于快照的 {share}",
    "less than {bound}": "小于 {bound}",
    "tokens equal to plain decoding": "与普通解码相同的词元",
    "{same} of {count}": "{same} / {count}",
    "tokens per verify round, bonus included": "每轮验证的词元数，含奖励词元",
    "snapshots of the window, one head": "窗口的快照，一个头",
    "projections of the window, one head": "窗口的投影，一个头",
    "projections / snapshots": "投影 / 快照",
    "tokens per round in theory": "每轮词元数的理论值",
    "tokens per round, {name}, {task}": "每轮词元数，{name}，{task}",
    "{mean} of {most}": "{mean} / {most}",
    "smallest lead of a chosen token, in logits": "被选词元的最小领先量（logit）",
    "The prompt of {count} tokens is read, and the model chooses '{first}'. All stores start from the same "
    "state S.":
        "读完 {count} 个词元的提示，模型选择“{first}”。所有存储都从同一个状态 S 开始。",
    "Round {n}: nothing drafted, one token gained, '{bonus}'.": "第 {n} 轮：没有草稿，得到一个词元“{bonus}”。",
    "Round {n}: all {drafted} drafts are right, and '{bonus}' comes on top.":
        "第 {n} 轮：{drafted} 个草稿全部正确，另得奖励词元“{bonus}”。",
    "Round {n}: {accepted} of {drafted} drafts are right; where the first is wrong the model says '{bonus}'.":
        "第 {n} 轮：{drafted} 个草稿中有 {accepted} 个正确；在第一个错误处，模型给出“{bonus}”。",
    "{verdict} {rollback}": "{verdict}{rollback}",
    "The memories are told to keep {told} tokens instead of {kept}: rejected drafts stay in the state.":
        "各存储被要求保留 {told} 个词元，而不是 {kept} 个：被拒绝的草稿留在状态里。",
    "The state goes back to column 0 and misses {count} accepted tokens.": "状态回到第 0 列，漏掉了 {count} 个已接受的词元。",
    "The state is rolled back, but the convolution goes on from the inputs of the prompt.":
        "状态已回退，但卷积仍从提示末尾的输入继续。",
    "Snapshots copy slot {slot}, projections replay {kept} records, corrected values add them up; the ring "
    "folds its {folded} older records into S.":
        "快照复制第 {slot} 格，投影重放 {kept} 条记录，修正值把它们一次加上；记录环把 {folded} 条较旧的记录并入 S。",
    "Snapshots copy slot {slot}, projections replay {kept} records, corrected values add them up; the ring "
    "only moves its cursor.": "快照复制第 {slot} 格，投影重放 {kept} 条记录，修正值把它们一次加上；记录环只移动游标。",
    "with drafts": "使用草稿",
    "plain": "普通解码",
    "model’s choice": "模型的选择",
    "drag to set the number of drafts": "拖动以设置草稿数",
    "the decoder runs on it": "解码器正在使用它",
    "click to run the decoder on it": "点击后解码器改用它",
    "written": "已写入",
    "untouched": "未动",
    "cursor": "游标",
    "convolution": "卷积输入",
    "drafts accepted: {count}": "接受的草稿：{count}",
    "drafts rejected: {count}": "拒绝的草稿：{count}",
    "bonus token: {count}": "奖励词元：{count}",
    "snapshots: {count} of {size}": "快照：{count} 份，每份 {size}",
    "records, to the same scale: {bytes}": "记录，同一比例：每条 {bytes}",
    "ring, older records: {count}": "环中较旧的记录：{count}",
    "ring, folded into S: {count}": "环中并入 S 的记录：{count}",
    "inputs the convolution goes on from: {count}": "卷积接着使用的输入：{count}",
    "committed state S": "已提交的状态 S",
    "drag the grip: number of drafts; click a store: run on it": "拖动圆钮：草稿数；点击存储：改用它",
    "It is {mean}, and it says nothing about whether the text is right.": "答案是 {mean}，但它并不说明文本是否正确。",
    "wrong tokens so far: {count}": "至此错误的词元：{count}",
    "head size dk = dv": "头的大小 dk = dv",
    "Memory of the window, normalised to snapshots": "窗口占用的内存，以快照为 1",
    "Grey: a state per position. Amber: k, v, g, β and the convolution's inputs per position, fp32. A matrix "
    "grows with d², a record with d: 0.38 at 16, 0.047 at 128. Dashed: 0.4.":
        "灰色：每个位置一份状态。琥珀色：每个位置的 k、v、g、β 和卷积输入，fp32。矩阵按 d² 增长，记录按 d 增长：16 时为 0.38，128 时为 0.047。虚线：0.4。",
    "this run": "本次运行",
    "computed": "现场计算",
    "derived": "由公布数据推导",
    "published": "公布数据",
    "{count} drafts per round": "每轮 {count} 个草稿",
    "independent drafts, in theory": "相互独立的草稿，理论值",
    "drafts of": "草稿来自",
    "tokens per round": "每轮词元数",
    "at most": "上限",
    "implied acceptance of one draft": "对应的单个草稿接受率",
    "standing": "性质",
    "source": "来源",
    "Accepted length, bonus included": "接受长度，含奖励词元",
    "Tokens per verify round: here and published": "每轮验证的词元数：本页与公开数字",
    "Amber: computed here. Grey: published for Kimi K3, not measured here. The outline is the most a round "
    "can give, drafts and bonus.": "琥珀色：本页计算。灰色：针对 Kimi K3 公开的数字，本页未测量。外框是一轮最多能得到的词元数（草稿加奖励）。",
}
