"""Chinese entries of the tab `consistent-hashing`."""

ZH = {
    "Consistent hashing": "一致性哈希",
    "Consistent hashing: even keys, uneven load": "一致性哈希：键是均匀的，负载却不是",
    "A session must come back to the cluster that holds its prefix, so a hash picks the cluster. How evenly do hashes spread "
    "sessions, and does that make the load even?":
        "会话必须回到保存其前缀的集群，因此由哈希来选集群。哈希能把会话分得多均匀？负载会因此均匀吗？",
    "ring": "环",
    "rendezvous (HRW)": "rendezvous（HRW）",
    "Maglev": "Maglev",
    "jump": "jump",
    "modulo": "取模",
    "the ring is no more uneven than its points let chance make it": "环的不均匀没有超出点数所允许的随机波动",
    "CV at most {bound}": "CV 不超过 {bound}",
    "rendezvous is as even as chance allows (chi-square)": "rendezvous 的均匀程度与随机一致（卡方检验）",
    "at most {bound}": "不超过 {bound}",
    "with bounded loads no node exceeds its cap": "启用有界负载后，没有节点超过上限",
    "at most {bound} requests": "不超过 {bound} 个请求",
    "Sessions on a ring: drag a node, remove one, add one": "环上的会话：拖动、移除或添加一个节点",
    "The fullest node holds {peak} times its fair share.": "最满的节点承担其公平份额的 {peak} 倍。",
    "id": "编号",
    "scheme": "方案",
    "sessions, peak / fair": "会话，最大 / 公平份额",
    "CV": "CV",
    "CV in theory": "CV 理论值",
    "chi-square": "卡方",
    "even if at most": "不超过此值即为均匀",
    "requests, peak / fair": "请求，最大 / 公平份额",
    "Five schemes, the same sessions": "五种方案，同一批会话",
    "node": "节点",
    "weight": "权重",
    "points": "点数",
    "of the circle": "占圆周",
    "sessions": "会话",
    "requests": "请求",
    "requests, bounded": "请求（有界）",
    "The ring, node by node": "环上的各个节点",
    "points per node": "每个节点的点数",
    "kind": "类别",
    "CV of the shares": "份额的 CV",
    "load factor": "负载系数",
    "requests that walk on": "继续前行的请求",
    "the fullest node, of its fair share of sessions": "最满的节点，会话数与公平份额之比",
    "CV of sessions per node": "各节点会话数的 CV",
    "the fullest node, of its fair share of requests": "最满的节点，请求数与公平份额之比",
    "cap with bounded loads, requests": "有界负载的上限，请求数",
    "requests that find their node full": "遇到节点已满的请求",
    "Points per node": "每个节点的点数",
    "Virtual nodes. A node of weight 2 has twice as many.": "即虚拟节点数。权重为 2 的节点有两倍的点。",
    "Requests of one hot session": "一个热点会话的请求",
    "Load factor of the bound": "上限的负载系数",
    "A full node is walked past. Full: this many times the fair share.": "遇到已满的节点就继续前行。已满即达到公平份额的这个倍数。",
    "Sessions": "会话数",
    "Nodes that are up": "在线的节点",
    "One letter each, a to l. In the drawing: × and +.": "每个节点一个字母，a 到 l。也可在图中点 × 和 +。",
    "Weights of a, b, c, …": "a、b、c……的权重",
    "Degrees that a, b, c, … are turned by hand": "手动把 a、b、c……转过的角度",
    "Mistake": "错误做法",
    "none": "无",
    "the key is the system prompt": "以系统提示词为键",
    "the bound counts sessions": "上限按会话计数",
    "One point each": "每个节点一个点",
    "With one point per node the arcs differ wildly: the fullest node holds 2.2 times the mean, and over many rings 2.72 times "
    "on average, the harmonic number of 8. Drag a node.":
        "每个节点只有一个点时，弧长相差悬殊：这里最满的节点是平均值的 2.2 倍；对大量的环取平均是 2.72 倍，即第 8 个调和数。试着拖动一个节点。",
    "160 points": "160 个点",
    "The usual number of points: a CV of 7.4 % in theory. The fullest node holds 1.07 times the mean here, 1.12 times on average "
    "over many rings.":
        "常用的点数：理论 CV 为 7.4 %。这里最满的节点是平均值的 1.07 倍，对大量的环取平均是 1.12 倍。",
    "One heavy node": "一个重节点",
    "Node a gets three shares. Ring, rendezvous and Maglev follow; jump and modulo know no weights, and their chi-square says so.":
        "节点 a 应得三份。环、rendezvous 和 Maglev 都能做到；jump 和取模没有权重的概念，它们的卡方值说明了这一点。",
    "A hot session": "热点会话",
    "One session sends 30 % of the requests. No scheme can split it; only the bound can, and a quarter of the requests walk on to "
    "another node.":
        "一个会话发出 30 % 的请求。没有哪种方案能把它拆开，只有上限可以；四分之一的请求继续前行到别的节点。",
    "Key by system prompt": "以系统提示词为键",
    "All sessions share five prompts, so at most five nodes work. No scheme can repair keys that are not different.":
        "全部会话共用五个提示词，因此最多只有五个节点在工作。键本身没有区别，哪种方案都无能为力。",
    "Bound the sessions": "按会话设上限",
    "The bound counts sessions instead of requests: every node holds few enough, and the one with the hot session is far over "
    "the cap.":
        "上限数的是会话而不是请求：每个节点的会话都不多，但带热点会话的节点远远超过上限。",
    "Each node has put its points on the ring, and all sessions are placed. How much does the fullest node hold?":
        "每个节点都已把点放到环上，全部会话也已落位。最满的节点承担多少？",
    "about {times} times its fair share": "约为公平份额的 {times} 倍",
    "The ring holds {points} points. A session belongs to the first point clockwise of its hash, so a node owns the arcs that "
    "end at its points: {big} {most} times its fair share of the circle, {small} {least}.":
        "环上有 {points} 个点。会话属于从其哈希值出发顺时针遇到的第一个点，因此节点拥有以其各点为终点的弧：{big} 占公平份额的 {most} 倍，"
        "{small} 占 {least} 倍。",
    "{count} of {total} sessions are placed. Node {node} is the fullest, with {ratio} times its fair share.":
        "已放置 {count} / {total} 个会话。节点 {node} 最满，是其公平份额的 {ratio} 倍。",
    "Now requests. One session sends {hot} % of them, and every scheme gives it to one node, {home} on the ring. The fullest "
    "node of the ring, {node}, has {ratio} times its fair share.":
        "现在看请求。有一个会话发出其中的 {hot} %，每种方案都只能把它交给一个节点，在环上是 {home}。环上最满的节点 {node} 承担公平份额的 "
        "{ratio} 倍。",
    "Now requests, one per session: load is spread as the sessions are. The fullest node, {node}, has {ratio} times its fair "
    "share.":
        "现在看请求，每个会话一个：负载的分布与会话相同。最满的节点 {node} 承担公平份额的 {ratio} 倍。",
    "With bounded loads a request that finds its node full walks on. The fullest node, {node}, has {ratio} times its fair share; "
    "{moved} of the requests land on a node without their prefix.":
        "启用有界负载后，遇到节点已满的请求继续前行。最满的节点 {node} 是公平份额的 {ratio} 倍；{moved} 的请求落在没有其前缀的节点上。",
    "fullest node: {node}": "最满的节点：{node}",
    "fullest": "最满",
    "arcs of {nodes} nodes, {points} points": "{nodes} 个节点的弧，共 {points} 个点",
    "fullest node, {node}: {count} of {total}": "最满的节点 {node}：{count} / {total}",
    "other nodes: {count}": "其他节点：{count}",
    "hot session: {count} requests": "热点会话：{count} 个请求",
    "walked on to another node: {count}": "前行到别的节点：{count}",
    "cap: {count}": "上限：{count}",
    "fair share": "公平份额",
    "drag: a node round the ring, its weight in the list": "可拖动：环上的节点，列表中的权重",
    "— measured": "— 实测",
    "– – theory": "– – 理论",
    "How uneven the shares of the circle are": "圆周份额有多不均匀",
    "The CV falls with the square root of the number of points: four times as many points halve it.":
        "CV 与点数的平方根成反比：点数增加到四倍，CV 减半。",
    "What the bound costs: requests away from their prefix": "上限的代价：离开前缀的请求",
    "At a load factor of 1 everyone is equally full, and many requests walk on. From about the fullest node's load upwards the "
    "bound does nothing.":
        "负载系数为 1 时所有节点一样满，许多请求要继续前行。系数超过最满节点的负载后，上限不再起作用。",
    "{name} is {value}; it takes at least one of the letters {letters}, each once":
        "{name} 的值是 {value}；应为字母 {letters} 中的至少一个，每个只出现一次",
}
