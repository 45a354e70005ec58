"""Chinese entries of the tab `minimal-disruption`."""

ZH = {
    "Minimal disruption": "最小扰动",
    "Minimal disruption: who loses a prefix when clusters change": "最小扰动：集群增减时，谁会失去前缀",
    "A cluster joins, or dies. Every session that then lands elsewhere has lost its prefix, and some cluster must prefill it again. "
    "How many sessions move, how many had to, and on whom does the work fall?":
        "一个集群加入，或者宕机。此后落到别处的会话都失去了前缀，总要有某个集群重新预填充。有多少会话迁移？其中多少是不得不迁移的？这些工作落在谁身上？",
    "ring": "环",
    "rendezvous (HRW)": "rendezvous（HRW）",
    "Maglev": "Maglev",
    "jump": "jump",
    "modulo": "取模",
    "ring and rendezvous: no session moves between clusters that stay": "环与 rendezvous：没有会话在留存的集群之间迁移",
    "rendezvous: only the share of clusters that came or went moves, up to chance":
        "rendezvous：只有增减的集群所占的那部分会话迁移（允许随机波动）",
    "rendezvous: no cluster takes over more than three fair shares of what dead ones leave":
        "rendezvous：没有集群接手超过三份公平份额的遗留工作",
    "at most {bound}": "不超过 {bound}",
    "Sessions and their clusters: remove one, add one": "会话与所在的集群：移除一个，添加一个",
    "Modulo moves {modulo} of them; fair shares need {ideal}.": "取模会迁移其中的 {modulo}；公平分配只需 {ideal}。",
    "id": "编号",
    "scheme": "方案",
    "sessions moved": "迁移的会话",
    "needed for fair shares": "公平分配所需",
    "between clusters that stay": "在留存的集群之间",
    "tokens to prefill again": "需重新预填充的词元",
    "on the busiest": "最忙集群占比",
    "busiest": "最忙的集群",
    "Five schemes, the same change": "五种方案，同一次变更",
    "cluster": "集群",
    "sessions before": "之前的会话",
    "left": "离开",
    "arrived": "到来",
    "sessions after": "之后的会话",
    "Cluster by cluster": "逐个集群",
    "clusters before one joins": "加入一个之前的集群数",
    "points per cluster": "每个集群的点数",
    "kind": "类别",
    "share of the busiest": "最忙集群的占比",
    "sessions that move": "迁移的会话",
    "moved between clusters that stay": "在留存的集群之间迁移",
    "of the repeated prefill, on the busiest cluster": "重复的预填充中，最忙集群所占",
    "prefill on the busiest cluster, one K3 on 8 × B300": "最忙集群的预填充时间（8 × B300 上的一个 K3）",
    "at list prices, more than hits would have cost": "按标价计，比命中多付的费用",
    "Clusters after the change": "变更之后的集群",
    "One letter each, a to l. In the drawing: × and +.": "每个节点一个字母，a 到 l。也可在图中点 × 和 +。",
    "Scheme": "方案",
    "When a cluster dies": "集群宕机时",
    "hash over those that are left": "在余下的集群上重新哈希",
    "each session's own secondary": "各会话自己的次选集群",
    "Points per cluster on the ring": "环上每个集群的点数",
    "Prefix of a session, tokens": "会话的前缀，词元数",
    "On average; sessions lie between half and one and a half times this.": "平均值；各会话在其 0.5 到 1.5 倍之间。",
    "Clusters before": "变更之前的集群",
    "Sessions": "会话数",
    "Maglev table": "Maglev 表的大小",
    "Mistake": "错误做法",
    "none": "无",
    "the next in the list takes over a dead one": "由列表中的下一个接手宕机的集群",
    "clusters are hashed by place, not by name": "按列表位置而不是名字对集群取哈希",
    "Modulo": "取模",
    "Ten clusters become eleven under hash mod n: ten of eleven sessions move, nearly all between clusters that were there before "
    "and after.":
        "采用 hash mod n，十个集群变为十一个：十一分之十的会话要迁移，几乎都发生在变更前后都在的集群之间。",
    "A cluster dies": "一个集群宕机",
    "Cluster d dies and its sessions go to their own secondaries: a tenth of all sessions, spread over nine clusters, none of which "
    "takes more than about a fifth.":
        "集群 d 宕机，其会话各自前往自己的次选集群：占全部会话的十分之一，分散到九个集群，每个接手的都不超过约五分之一。",
    "One victim": "一个受害者",
    "Cluster d dies and the next in the list takes everything: one cluster has to prefill it all, and is likely to be the next to "
    "fall.":
        "集群 d 宕机，列表中的下一个接手一切：一个集群要预填充全部前缀，很可能成为下一个倒下的。",
    "One point each": "每个节点一个点",
    "A ring with one point per cluster: as few sessions move as with many, and all of them to the one next clockwise.":
        "每个集群在环上只有一个点：迁移的会话和点多时一样少，但全部落到顺时针的下一个集群。",
    "Jump loses a middle one": "jump 失去中间的集群",
    "Jump knows numbers only. When d goes, e to j move up a place, and with them most sessions: jump is minimal only at the end of "
    "the list.":
        "jump 只认编号。d 离开后，e 到 j 依次前移，大部分会话也随之迁移：只有在列表末尾增减时，jump 才是最小扰动。",
    "Maglev's price": "Maglev 的代价",
    "A table of 251 entries moves half as many sessions again as fair shares need, one of 65,537 hardly more. The table buys an even "
    "spread and a look-up in one step.":
        "251 项的表比公平分配所需多迁移一半的会话，65,537 项的表几乎不多。表换来的是均匀的分布和一步完成的查找。",
    "Names that shift": "名字会移位",
    "Cluster d dies and clusters are hashed by place, so e to j inherit each other's names. The ring is innocent and moves most "
    "sessions all the same.":
        "集群 d 宕机，而集群按位置取哈希，于是 e 到 j 依次继承了前一个的名字。环并没有错，却照样迁移了大部分会话。",
    "The simplest router takes the hash modulo the number of clusters. How many sessions land on another cluster after the change "
    "shown here?":
        "最简单的路由器用哈希值对集群数取模。经过这里的变更，有多少会话会落到别的集群？",
    "about {share}": "约 {share}",
    "Dead: {gone}. New: {added}.": "宕机：{gone}。新增：{added}。",
    "Dead: {gone}.": "宕机：{gone}。",
    "New: {added}.": "新增：{added}。",
    "No cluster comes or goes.": "集群没有变化。",
    "{sessions} sessions on {clusters} clusters. Each has left a prefix of {tokens} tokens on average where it was served.":
        "{clusters} 个集群上有 {sessions} 个会话。每个会话都在为它服务的集群上留下了前缀，平均 {tokens} 个词元。",
    "{event} {moved} sessions, {share}, no longer hash to where their prefix is; {needless} of them leave a cluster that stays for "
    "another that was there all along.":
        "{event}{moved} 个会话（{share}）的哈希不再指向其前缀所在的集群；其中 {needless} 个是从留存的集群迁往另一个原本就在的集群。",
    "No session has moved; nothing is prefilled again.": "没有会话迁移，也就不必重新预填充。",
    "{count} of {moved} sessions have come back and found no prefix: {tokens} million tokens prefilled again, {share} of them by "
    "{cluster}.":
        "{moved} 个会话中已有 {count} 个回来，却找不到前缀：已重新预填充 {tokens} 百万词元，其中 {share} 由 {cluster} 承担。",
    "tokens prefilled again": "重新预填充的词元",
    "who prefills": "由谁预填充",
    "sessions with their prefix: {count}": "前缀仍在的会话：{count}",
    "stay: {count}": "不动：{count}",
    "move because a cluster came or went: {count}": "因集群增减而迁移：{count}",
    "move between clusters that stay: {count}": "在留存的集群之间迁移：{count}",
    "needed for fair shares: {share}": "公平分配所需：{share}",
    "click: × kills, + adds, a row chooses the scheme": "点击：× 移除，+ 添加，点一行选择方案",
    "— ring": "— 环",
    "– – needed": "– – 所需",
    "– – spread evenly": "– – 完全均摊",
    "One more cluster: sessions that move": "多一个集群：迁移的会话",
    "Modulo moves n of n + 1 sessions, so it hurts a large fleet most. A ring moves one of n + 1.":
        "取模时 n + 1 个会话中有 n 个要迁移，集群越多伤害越大；环只迁移 n + 1 个中的一个。",
    "A cluster dies: share of its sessions on the busiest heir": "一个集群宕机：最忙的接手者所占的会话比例",
    "With one point the next cluster clockwise inherits all. With a hundred, nearly all others share.":
        "只有一个点时，顺时针的下一个集群继承一切；有一百个点时，几乎所有其他集群共同分担。",
}
