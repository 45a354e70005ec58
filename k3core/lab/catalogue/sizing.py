"""Chinese of the workbench `sizing`."""

ZH = {
    # the page
    "Sizing": "容量计算",
    "Sizing: bytes, blocks and sessions of your model": "容量计算：你的模型需要多少字节、多大的块、能放多少会话",
    "How many bytes does a token cost, and a sequence? Which block size will the engine choose, what does it pad, and how "
    "many sessions of which length fit?":
        "一个词元占多少字节，一个序列又占多少？引擎会选多大的块，填充了多少，能同时放下多少个多长的会话？",
    "K3 on 8 ranks with fp8 rows: one page must hold either MLA rows or one KDA state. How many tokens will a block stand for?":
        "K3，8 个 rank，行用 fp8：一页要么放 MLA 行，要么放一个 KDA 状态。一个块会代表多少个词元？",
    "{count} tokens": "{count} 个词元",
    "There are no rows to count: a block is one state.": "这里没有行可数：一个块就是一个状态。",
    "Without a recurrent state nothing forces a larger block: {block} tokens.": "没有循环状态，就没有什么迫使块变大：{block} 个词元。",
    "It is {block}: a state takes as much as {rows} rows, rounded up to a multiple of {step}.":
        "是 {block}：一个状态相当于 {rows} 行，再向上取整到 {step} 的倍数。",
    # parameters
    "Model": "模型",
    "A config.json takes its place.": "放入 config.json 后以文件为准。",
    "Tensor parallel ranks": "张量并行 rank 数",
    "KV dtype": "KV 的数据类型",
    "Draft tokens": "草稿词元数",
    "Tokens of a request": "请求长度（词元）",
    "What engines call max_model_len.": "引擎中的 max_model_len。",
    "Memory for the cache, per rank": "每个 rank 的缓存内存",
    "What weights and activations leave of the GPU; vLLM logs it at start as Available KV cache memory.":
        "GPU 显存扣除权重与激活后剩下的部分；vLLM 启动时的日志里写作 Available KV cache memory。",
    "Model: what its file names, else what vLLM takes for its kind of layer.":
        "随模型：以模型文件中写明的为准，没有写明则按 vLLM 对该类层的默认值。",
    "state dtype: {why}": "状态的数据类型：{why}",
    "the model's own, as vLLM takes for GDN": "与模型相同，vLLM 对 GDN 即如此",
    "vLLM's for KDA, whatever the model's": "vLLM 对 KDA 固定如此，与模型的类型无关",
    "vLLM's default for Nemotron-H": "vLLM 对 Nemotron-H 的默认值",
    "named in the model's file": "模型文件中写明",
    "as it is set": "按此处设定",
    "no recurrent state": "没有循环状态",
    "Blocks, instead of memory": "块数（代替内存）",
    "0: as many as the memory holds.": "0：由内存决定。",
    "Alignment of a block": "块的对齐",
    "model": "随模型",
    "What the attention kernel's block must be a multiple of; model: 64 for MLA, else 16.":
        "块须为注意力内核块的整数倍；“随模型”：MLA 为 64，其他为 16。",
    "Keep states for prefix reuse": "为前缀复用保留状态",
    "Never, at the end of an aligned step, or at every block.": "从不、在对齐的步末，或在每个块。",
    "State dtype": "状态的数据类型",
    "Convolution dtype": "卷积的数据类型",
    "Layers per group": "每组层数",
    "Print the old cache size": "按旧公式报告缓存大小",
    "As engines once did: groups as if each got an equal share of the blocks.": "引擎曾经的做法：当作各组平分所有块。",
    "Your model: drop its config.json here": "你的模型：把 config.json 拖到这里",
    # presets
    "K3, 7 drafts": "K3，7 个草稿",
    "Seven more columns of the convolution window fill the padding: 1,536 tokens with 0.7 % to spare, at any alignment up to "
    "128. But every group now holds 9 states per request, or 2 with replay (vllm recipes #861).":
        "卷积窗口多出的七列正好填进填充：1,536 个词元，只余 0.7 %，对齐到 128 以内都一样。但每组现在要为每个请求保留 9 个状态，使用重放则为 2 个（vllm recipes #861）。",
    "Kimi-Linear on two 3090s": "两张 3090 上的 Kimi-Linear",
    "Block 960, 319 blocks, 2.49 requests of 120,000 tokens, 299,062 tokens printed (vllm #28228).":
        "块 960，共 319 块，可放 2.49 个 120,000 词元的请求，日志报告 299,062 个词元（vllm #28228）。",
    "Why 528?": "为什么是 528？",
    "Qwen3.5-4B: 528 tokens, 0.76 % padding, so prompts below 528 tokens never hit the prefix cache (vllm #40696).":
        "Qwen3.5-4B：528 个词元，填充 0.76 %，所以不足 528 个词元的提示永远不会命中前缀缓存（vllm #40696）。",
    "33.04×": "33.04×",
    "Qwen3.5-27B with 1,487 blocks: 45 blocks per request of 32,768 tokens, 33 requests, 1,082,800 tokens (vllm #40691).":
        "Qwen3.5-27B，1,487 块：32,768 词元的请求需 45 块，可放 33 个，即 1,082,800 个词元（vllm #40691）。",
    "The old cache size": "旧的缓存大小",
    "The same pool, printed as 290,864 tokens: that would be 8 requests where 33 fit (vllm #40691).":
        "同一个池被报告为 290,864 个词元：相当于 8 个请求，实际能放 33 个（vllm #40691）。",
    "π0.5, no state": "π0.5，无状态",
    "A policy's prefix of 968 tokens: 18,432 B per token, nothing recurrent, so blocks of 16 tokens and no padding.":
        "策略模型的前缀有 968 个词元：每词元 18,432 B，没有循环部分，因此块为 16 个词元，没有填充。",
    # what can be wrong
    "line {line}, column {column}: {reason}; this is not JSON": "第 {line} 行第 {column} 列：{reason}；这不是 JSON",
    "a value is missing": "缺少一个值",
    "a name in double quotes is missing": "缺少双引号中的名称",
    "a colon is missing": "缺少冒号",
    "a comma or a closing bracket is missing": "缺少逗号或右括号",
    "nothing follows this comma": "这个逗号后面没有内容",
    "the JSON has ended before this": "JSON 在此之前已经结束",
    "the text that begins here does not end": "从这里开始的文本没有结束",
    "a text holds a line end or another control character": "文本中有换行或其他控制字符",
    "what follows the backslash is no escape": "反斜杠后面不是转义",
    "there is nothing to read": "没有可读的内容",
    "this cannot be read": "这里无法读取",
    "the JSON is nested too deeply": "JSON 嵌套过深",
    "it holds a number of thousands of digits": "其中有一个长达数千位的数",
    "there is neither the field {field} nor {others}": "既没有字段 {field}，也没有 {others}",
    "the field {field} is missing": "缺少字段 {field}",
    "field {field} {problem}": "字段 {field} {problem}",
    "is {value}; it must be an integer from {low} to {high}": "的值是 {value}；应为 {low} 到 {high} 之间的整数",
    "is {value}; it must be a text": "的值是 {value}；应为文本",
    "must be a list of integers": "应为整数的列表",
    "must be a list of texts": "应为文本的列表",
    "must be an object": "应为对象",
    "must be a list of objects with 'kind' and 'count'": "应为对象的列表，每个对象有 'kind' 和 'count'",
    "must be an object with 'kind' and 'count'": "应为有 'kind' 和 'count' 的对象",
    "is {value}; known are {known}": "的值是 {value}；已知的有 {known}",
    "holds {value}; known are {known}": "含有 {value}；已知的有 {known}",
    "holds {value}; known are 4 and 128, and 0 for a layer without compression":
        "含有 {value}；已知的有 4 和 128，不压缩的层为 0",
    "is not a field of kind {kind}, which has {known}": "不是 {kind} 类层的字段；这类层的字段有 {known}",
    "is not a field of kind {kind}, which has none": "不是 {kind} 类层的字段；这类层没有字段",
    "and full_attn_layers both name layer {layer}": "与 full_attn_layers 都列出了第 {layer} 层",
    "and full_attn_layers give layer {layer}, which is beyond num_hidden_layers = {layers}":
        "与 full_attn_layers 列出了第 {layer} 层，超出 num_hidden_layers = {layers}",
    "and full_attn_layers give no kind for layer {layer} of num_hidden_layers = {layers}":
        "与 full_attn_layers 都没有列出第 {layer} 层，而 num_hidden_layers = {layers}",
    "has {count} entries for num_hidden_layers = {layers}": "有 {count} 项，而 num_hidden_layers = {layers}",
    "= {value} is not a multiple of {other} = {divisor}": "= {value}，不是 {other} = {divisor} 的倍数",
    "= {value} is not a multiple of {other} = {divisor}; give head_dim":
        "= {value}，不是 {other} = {divisor} 的倍数；请给出 head_dim",
    "belongs to a hybrid this reader does not know; describe its layers as {layers}":
        "属于未知的混合模型；请把各层写成 {layers}",
    "is set, but neither layer_types nor sliding_window_pattern says which layers it applies to":
        "已设置，但 layer_types 和 sliding_window_pattern 都没有说明它用于哪些层",
    "a model config is a JSON object, and this is none": "模型的配置应为 JSON 对象，而这里不是",
    "there are no layers to size a cache from: neither num_hidden_layers nor a list named layers":
        "没有可用于计算缓存的层：既没有 num_hidden_layers，也没有名为 layers 的列表",
    "no layer keeps a cache": "没有任何一层保留缓存",
    "this cannot be read as a model: {problem}": "无法读作模型：{problem}",
    "TP is {tp}, which does not divide the {heads} heads of {model}; choose a divisor":
        "TP 为 {tp}，不能整除 {model} 的 {heads} 个头；请选它的约数",
    "KV dtype is {dtype}, which {model} has no rows for; choose bf16 or fp8":
        "KV 数据类型为 {dtype}，{model} 没有这种行格式；请选 bf16 或 fp8",
    "{model} cannot be sized with these settings: {problem}": "无法用这些设置计算 {model}：{problem}",
    # results
    "tokens per block": "每块词元数",
    "requests of {tokens} tokens at once": "可同时容纳的 {tokens} 词元请求",
    "take most of it": "占用最多",
    "requests at once, however short": "再短也只能同时容纳的请求数",
    "per token, all layers": "每词元（所有层）",
    "state and convolution of a sequence": "一个序列的状态与卷积窗口",
    "tokens that weigh as much as one state": "与一个状态等重的词元数",
    "page of one layer": "单层的页",
    "padding, of the state": "填充，相对于状态",
    "empty slots per block number": "每个块号的空槽",
    "blocks of one request": "一个请求占用的块",
    "bytes of these blocks": "这些块的字节数",
    "blocks in the pool": "池中的块数",
    "tokens an engine prints as cache size": "引擎报告的缓存词元数",
    "{count} B": "{count} B",
    "a page holds a state, and one step of alignment less would not": "一页放得下一个状态，而少一个对齐单位就放不下",
    "{spare} B to spare": "余 {spare} B",
    "less than {step} tokens of {row} B": "少于 {step} 个 {row} B 的词元",
    "every layer with a cache has its place in a group": "每个有缓存的层都在某个组里",
    "the blocks of a request hold all its rows and states": "请求的块放得下它全部的行与状态",
    "at least {bytes}": "至少 {bytes}",
    "the printed cache size stands for the requests that fit": "报告的缓存大小与实际能放的请求数一致",
    "The same answer on the command line": "命令行上的同一答案",
    "What an engine would log": "引擎会打印的日志",
    "attention rows": "注意力的行",
    "recurrent states": "循环状态",
    "sliding windows": "滑动窗口",
    "nothing fits": "放不下",
    "How many prefix tokens π0.7 uses is not published, nor whether it keeps Gemma 3's sliding windows; every layer counts as "
    "full attention here.":
        "π0.7 使用多少前缀词元、是否保留 Gemma 3 的滑动窗口均未公布；此处把每一层都算作全注意力。",
    # tables
    "id": "编号",
    "step": "步骤",
    "formula": "公式",
    "with its numbers": "代入数值",
    "result": "结果",
    "The whole derivation, per tensor-parallel rank": "完整推导（每个张量并行 rank）",
    "group": "组",
    "layers": "层数",
    "which, from 0": "层号（从 0 起）",
    "of the block used": "块的使用率",
    "blocks of a request": "一个请求的块数",
    "Groups: layers that share a block table": "组：共用一张块表的层",
    "tokens of a request": "请求的词元数",
    "blocks of rows": "行占的块",
    "blocks of states": "状态占的块",
    "requests at once": "同时容纳的请求",
    "with replay of drafts": "草稿使用重放时",
    "most of it is": "占用最多的是",
    "How many requests fit, by length": "不同长度能放下多少请求",
    "design": "设计",
    # drawing
    "{model}: page, block and pool to scale": "{model}：页、块与池（按比例）",
    "MLA": "MLA", "KDA": "KDA", "GDN": "GDN", "Mamba-2": "Mamba-2",
    "attention": "注意力",
    "sliding window": "滑动窗口",
    "compressed": "压缩行",
    "compressor 4:1": "压缩器 4:1",
    "compressor 128:1": "压缩器 128:1",
    "One token's row in one {kind} layer takes {row} B. One {state} state with its convolution window takes {bytes} B, however "
    "long the sequence is.":
        "一个词元在一层（{kind}）里的行占 {row} B。一个 {state} 状态连同卷积窗口占 {bytes} B，与序列长短无关。",
    "Measured in rows, the state is {rows} of them: a page of rows must be at least that long to hold a state as well.":
        "以行来量，状态相当于 {rows} 行：一页要同样放得下状态，至少要有这么多行。",
    "Rounded up to a multiple of {step}, a block stands for {block} tokens.": "向上取整到 {step} 的倍数，一个块代表 {block} 个词元。",
    "Without a state to fit in, a block stands for {block} tokens, rows of {row} B.":
        "没有状态需要容纳，一个块代表 {block} 个词元，每行 {row} B。",
    "The page is {page} B. A state leaves {padding} B of it empty, {percent} of the state.":
        "一页为 {page} B。状态放进去后空出 {padding} B，是状态的 {percent}。",
    "{count} groups share the pool: one block number is a page in each of {size} tensors, {bytes} in all. {empty} slots have no "
    "layer.":
        "{count} 个组共用这个池：一个块号在 {size} 个张量中各占一页，合计 {bytes}。有 {empty} 个槽没有对应的层。",
    "A request of {tokens} tokens holds {need} blocks: {rows} of rows and {states} of states.":
        "一个 {tokens} 词元的请求占 {need} 块：{rows} 块是行，{states} 块是状态。",
    "Of {blocks} blocks, {requests} such requests take {used}. Drag the end of the first one to change its length.":
        "{blocks} 块中，{requests} 个这样的请求占 {used} 块。拖动第一个请求的末端可改变它的长度。",
    "Of {blocks} blocks, {requests} such requests take {used}.": "{blocks} 块中，{requests} 个这样的请求占 {used} 块。",
    "{caption} {note}": "{caption}{note}",
    "one {kind} state with its window: {bytes} B": "一个 {kind} 状态及其窗口：{bytes} B",
    "drag to set the draft tokens": "拖动以设置草稿词元数",
    "one block of {kind} rows: {block} × {row} B": "一个块的行（{kind}）：{block} × {row} B",
    "Groups: {count}. One block number is {bytes}, the pages of all layers of a group.":
        "共 {count} 组。一个块号为 {bytes}，即一组所有层的页。",
    "one block number: {bytes}": "一个块号：{bytes}",
    "one block number, a page in each of {size}: {bytes}": "一个块号，在 {size} 个张量中各占一页：{bytes}",
    "one block number, {size} pages: {bytes}": "一个块号，{size} 页：{bytes}",
    "{layers} × {kind}": "{layers} × {kind}",
    "{count} groups of {group}": "{count} 组 {group}",
    "{share} used": "使用 {share}",
    "and {count} more groups": "另有 {count} 个组",
    "the pool: {blocks} blocks": "池：{blocks} 块",
    "a request needs {need} blocks": "一个请求需要 {need} 块",
    "drag to set the length of a request": "拖动以设置请求长度",
    "recurrent state of one layer: {bytes}": "单层的循环状态：{bytes}",
    "convolution window, 3 columns and {drafts} for drafts: {bytes}": "卷积窗口，3 列加草稿的 {drafts} 列：{bytes}",
    "rows of {row} B, one per token": "每词元一行，{row} B",
    "partial sums of the compressors": "压缩器的部分和",
    "what a group leaves of a block": "组在块中未用的部分",
    "padding: {bytes}": "填充：{bytes}",
    "slots without a layer: {count}": "没有层的槽：{count}",
    "blocks left over: {count}": "剩余的块：{count}",
    # chart
    "Requests at once, by length": "同时容纳的请求数与长度",
    "Below one block, a shorter request costs the same: it holds a block of every group whatever its length.":
        "不足一块时，请求再短代价也不变：无论多长，它都要占用每个组的一个块。",
    "if bytes were all": "只按字节计算",
    "with drafts replayed": "草稿使用重放",
    "in whole blocks": "按整块计算",
}
