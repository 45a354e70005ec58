"""Chinese entries of the tab `allocation-jitter`."""

ZH = {
    "Allocation jitter": "分配抖动",
    "Allocation jitter: what a memory does when it is full": "分配抖动：内存将满时会做些什么",
    "One pool for rows and states is said to give steadier access than memory that fragments. Is it steadier, than "
    "what, and what does it cost?":
        "据说让行和状态共用一个池，访问会比碎片化的内存更平稳。果真更平稳吗？比谁更平稳？代价又是什么？",
    "no piece of memory is held twice, in any step, under any allocator": "任何一步、任何一种分配方式下，没有一块内存被占用两次",
    "when everybody has left, all memory is free again": "所有请求离开后，全部内存重新空闲",
    "where a full length was promised, nobody is cut off while growing": "凡是承诺了完整长度的，没有请求在增长途中被中断",
    "whoever is let in runs: nobody holds memory and waits for more": "接纳了就能运行：没有请求占着内存等待更多内存",
    "{n} steps of waiting": "等待 {n} 步",
    "none": "无",
    "The same requests in four memories: holes, padding, and what is moved": "同样的请求，四种内存：空洞、填充与搬动",
    "state_share is {share}; of {memory} that gives {states} to states and {rows} to rows, but one state takes {state} "
    "and one block of rows {block}":
        "state_share 的值是 {share}；{memory} 中分给状态 {states}，分给行 {rows}，但一份状态需要 {state}，一块行需要 {block}",
    "Yes, steadier than all three.": "是，比其他三种都平稳。",
    "Steadier than what moves memory, no more.": "只比需要搬动内存的方式平稳，仅此而已。",
    "No.": "否。",
    "99 of 100 operations touch at most {unified}; in two static pools {two_pools}, in contiguous memory {first_fit}, "
    "in the two-ended region {two_ends}.":
        "统一池中 100 次操作有 99 次最多触及 {unified}；两个静态池为 {two_pools}，连续内存为 {first_fit}，双端区域为 {two_ends}。",
    "Memory that helps nobody: {unified}; there {two_pools}, {first_fit} and {two_ends}.":
        "谁也用不上的内存：统一池 {unified}，后三者依次为 {two_pools}、{first_fit}、{two_ends}。",
    "{say} {work} {price}": "{say}{work}{price}",
    "memory": "内存",
    "work, p50": "工作量 p50",
    "p99": "p99",
    "max": "最大",
    "moved in all": "总搬动量",
    "refused": "被拒",
    "can never fit": "永远放不下",
    "cut off": "被中断",
    "most at once": "同时最多",
    "memory in use, mean": "平均在用",
    "unusable, mean": "平均不可用",
    "the unified pool is": "统一池相比之下",
    "Four memories, the same requests": "四种内存，同样的请求",
    "itself": "自身",
    "steadier, about {times} times": "更平稳，约 {times} 倍",
    "less steady, about {times} times": "更不平稳，约 {times} 倍",
    "as steady": "同样平稳",
    "to let in": "接纳",
    "to grow": "增长",
    "to leave": "离开",
    "Work by kind of operation, p99: who waits for it": "各类操作的工作量 p99：由谁来等待",
    "percent of operations": "操作的百分比",
    "work": "工作量",
    "time step": "时间步",
    "unusable": "不可用",
    "work that 99 of 100 operations stay below, {memory}": "100 次操作中 99 次不超过的工作量，{memory}",
    "refused or cut off, {memory}": "被拒绝或中断，{memory}",
    "{n} of {total}": "{n} / {total}",
    "neither in use nor usable, {memory}": "既未使用也不可用，{memory}",
    "Offered load, of the memory": "请求负载，占内存的比例",
    "Short requests, first half": "短请求占比，前半段",
    "16 to 2,048 tokens of prompt; the others 8,192 to 65,536.": "短请求的提示为 16 到 2,048 个词元，其余为 8,192 到 65,536 个。",
    "Short requests, second half": "短请求占比，后半段",
    "Two static pools: for states": "两个静态池：分给状态",
    "In the drawing: drag the border.": "也可以在图中拖动分界线。",
    "Contiguous memory": "连续内存",
    "grows and moves": "增长时搬动",
    "reserves full length": "预留完整长度",
    "States per request": "每个请求的状态数",
    "The running one, one kept for reuse, one per draft token.": "运行中的一份，为复用保留的一份，每个草稿词元一份。",
    "Memory for the cache": "缓存可用的内存",
    "Kimi K3, TP8, fp8": "Kimi K3，TP8，fp8",
    "Kimi-Linear-48B, TP2, bf16": "Kimi-Linear-48B，TP2，bf16",
    "22 groups, blocks of 7,808 tokens": "22 个组，每块 7,808 个词元",
    "Let in by rows alone": "只按行接纳",
    "Admission forgets that a request needs states as well.": "接纳时忘记请求还需要状态。",
    "A split for long requests": "为长请求划分",
    "The static split suits the long requests of the first half. When short ones come, states run out: 47 of 83 "
    "requests are refused and 35.7 % of the memory is out of reach, against 23 and 7.1 % in one pool (sglang #33004).":
        "静态划分适合前半段的长请求。短请求一来，状态就用完了：83 个请求中有 47 个被拒绝，35.7 % 的内存够不着；"
        "统一池则是 23 个和 7.1 %（sglang #33004）。",
    "A steady mix": "稳定的混合",
    "The mix stays what the split was made for: two static pools refuse 15 of 64 requests, one pool 17, and both work "
    "equally evenly. One pool pays when the mix does not hold still.":
        "请求的混合始终符合当初的划分：两个静态池在 64 个请求中拒绝 15 个，统一池拒绝 17 个，两者同样平稳。只有混合比例会变时，统一池才划算。",
    "Reserve full length": "预留完整长度",
    "Nothing moves any more, and contiguous memory is as steady as the pool, 960 B at p99. The price is memory held "
    "for tokens that have not come and holes between: 12.1 % against 7.1 %.":
        "不再有任何搬动，连续内存与统一池同样平稳，p99 为 960 B。代价是为尚未到来的词元占着内存，以及中间的空洞：12.1 % 对 7.1 %。",
    "High concurrency": "高并发",
    "85 requests at once in 16 GiB. The pool's p99 is 3 KiB, as in a small memory; contiguous memory moves 47 GiB in "
    "all, the two-ended region 75 GiB.":
        "16 GiB 中同时运行 85 个请求。统一池的 p99 是 3 KiB，与小内存时相同；连续内存总共搬动 47 GiB，双端区域搬动 75 GiB。",
    "23 of 70 blocks": "70 块中的 23 块",
    "A state needs a block in each of 22 groups, so even 12 tokens take 23 of 70 blocks (vllm #54458). Whatever their "
    "length, three requests run at once. Another allocator does not help: the states are that large.":
        "一份状态在 22 个组里各需一块，所以哪怕只有 12 个词元也要占 70 块中的 23 块（vllm #54458）。无论多长，"
        "同时只能运行三个请求。换一种分配方式也没用：状态就是这么大。",
    "Too few states": "状态太少",
    "All requests are short. The static pool for states has 14 slots, enough for 7 requests: 96 of 137 are refused "
    "while 70.5 % of the memory is out of reach (vllm #49064). One pool runs 19 at once.":
        "全部是短请求。静态的状态池有 14 个槽，只够 7 个请求：137 个请求中有 96 个被拒绝，而 70.5 % 的内存够不着（vllm #49064）。"
        "统一池同时运行 19 个。",
    "10 slots, 2 streams": "10 个槽，2 路",
    "10 slots at 5 states per request make 2 streams, however many are configured (sglang #36889). One pool runs 7.":
        "10 个槽、每个请求 5 份状态，只有 2 路，不管配置了多少（sglang #36889）。统一池运行 7 路。",
    "Scratch for drafts": "草稿的临时空间",
    "Every request reserves 6 states, 5 of them for drafts (sglang #23643): 7 run at once in one pool. Set the states "
    "to 1, as replay allows, and 14 do.":
        "每个请求预留 6 份状态，其中 5 份给草稿（sglang #23643）：统一池同时运行 7 个请求。把状态数设为 1（重放就能做到），则可运行 14 个。",
    "Can never fit": "永远放不下",
    "The longest prompts need more blocks than there are. They are refused when they come instead of waiting forever "
    "(vllm-ascend #17074); the table counts them.":
        "最长的提示需要的块比池里的还多。它们一来就被拒绝，而不是永远等待（vllm-ascend #17074）；表中有它们的数目。",
    "Let in, cannot run": "接纳了却不能运行",
    "Admission counts rows only (vllm #52520). Requests hold their rows and wait 428 steps in all for states that "
    "others hold, so the check fails.":
        "接纳时只数行（vllm #52520）。请求占着行，总共等待了 428 步，等的是别人占着的状态，因此检查失败。",
    "Is work on the unified pool steadier than on two static pools, on contiguous memory, and on a region that is "
    "compacted?":
        "统一池上的工作，比两个静态池、连续内存和会压缩整理的区域更平稳吗？",
    "steadier than on all three": "比三者都平稳",
    "only steadier than where memory is moved": "只比会搬动内存的平稳",
    "no steadier than on any": "不比任何一种平稳",
    "unified pool": "统一池",
    "two static pools": "两个静态池",
    "contiguous memory": "连续内存",
    "two-ended region": "双端区域",
    "{came} {refused} {moved}": "{came}{refused}{moved}",
    "Step {step}: requests that came: {came}, that left the unified pool: {left}.":
        "第 {step} 步：到来 {came} 个请求，离开统一池 {left} 个。",
    "Nobody was refused.": "没有请求被拒绝。",
    "Refused: {unified} by the unified pool, {two_pools} by two static pools, {first_fit} by contiguous memory, "
    "{two_ends} by the two-ended region.":
        "被拒绝：统一池 {unified} 个，两个静态池 {two_pools} 个，连续内存 {first_fit} 个，双端区域 {two_ends} 个。",
    "Nothing was moved.": "没有任何搬动。",
    "Contiguous memory moved {bytes}, so that rows could grow.": "连续内存为了让行增长，搬动了 {bytes}。",
    "The two-ended region moved {bytes} into the holes that others left.": "双端区域把 {bytes} 搬进了别人留下的空洞。",
    "Contiguous memory moved {fit}, so that rows could grow; the two-ended region moved {ends} into the holes that "
    "others left.":
        "连续内存为了让行增长，搬动了 {fit}；双端区域把 {ends} 搬进了别人留下的空洞。",
    "refused so far: {lost}; running: {running}": "累计拒绝：{lost}；运行中：{running}",
    "drag to share the memory out differently": "拖动以重新划分内存",
    "rows; unified pool: {bytes}": "行；统一池：{bytes}",
    "states; unified pool: {bytes}": "状态；统一池：{bytes}",
    "held but empty; unified pool: {bytes}": "已占但空着；统一池：{bytes}",
    "free; unified pool: {bytes}": "空闲；统一池：{bytes}",
    "largest operation of a step, in powers of two": "每步最大的一次操作，按 2 的幂",
    "one that moved bytes; steps so far: {fit} in contiguous memory, {ends} in the two-ended region":
        "有搬动的操作；迄今步数：连续内存 {fit}，双端区域 {ends}",
    "drag: the border of the static pools": "拖动：静态池的分界线",
    "percent of operations at or below": "不超过该值的操作百分比",
    "Work per operation": "每次操作的工作量",
    "Bytes touched by one operation, smallest to largest: 64 per table entry, and twice what was moved. The vertical "
    "line is p99.":
        "一次操作触及的字节数，从小到大：每个表项 64，再加搬动量的两倍。竖线是 p99。",
    "Memory that holds nothing and helps nobody": "什么都没存、谁也用不上的内存",
    "Padding, rows not yet written, holes that are too small, and what one static pool has left over while the other "
    "is full. The vertical line is where the mix changes.":
        "填充、尚未写入的行、太小的空洞，以及一个静态池已满时另一个池剩下的部分。竖线处请求的混合发生变化。",
}
