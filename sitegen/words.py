"""Words of the pages' frame, of the home page and of the page scripts: English template -> Chinese."""

import re

ZH = {
    # frame
    "Skip to the content": "跳到正文",
    "Tabs": "目录",
    "State": "状态",
    "Pages": "页面",
    "Prefix": "前缀",
    "Fleet": "集群",
    "Workbench": "工作台",
    "Home": "首页",
    "Copy link": "复制链接",
    "Language": "语言",
    "Stop": "停止",
    "Python is loading": "正在加载 Python",
    "How hybrid linear-attention models are served, computed in your browser.":
        "混合线性注意力模型如何提供服务：在你的浏览器里实时计算。",
    "Built from version {version}; every number comes from the Python package k3core, which you can install: {wheel}.":
        "构建版本 {version}；页面上的每个数都由 Python 包 k3core 算出，可直接安装：{wheel}。",
    "No tracker, no request to another site. Works from a folder and offline.": "不追踪，不请求其他网站；从文件夹打开或离线均可使用。",
    "The browser runs Pyodide (MPL-2.0), CPython (PSF-2.0) and NumPy (BSD-3-Clause), unchanged but trimmed.":
        "浏览器中运行的是 Pyodide（MPL-2.0）、CPython（PSF-2.0）和 NumPy（BSD-3-Clause），未作修改，仅经裁剪。",
    # tab
    "Your guess": "先猜一猜",
    "Skip": "跳过",
    "Situations": "情境",
    "Settings": "参数",
    "breaks it on purpose": "故意破坏机制",
    "Without the file": "不使用该文件",
    "Result": "结果",
    "derivation": "推导",
    "Copy": "复制",
    "or paste its text": "或粘贴其内容",
    "computed": "现场计算",
    "derived": "由公布数据推导",
    "published": "公布数据",
    "illustrative": "示意",
    "computed here, in this page": "在本页现场计算得出",
    "derived from published figures": "由公布的数据推导得出",
    "published; the source is in the text": "公布的数据，出处见正文",
    "illustrative, not a measurement": "仅作示意，并非测量值",
    "holds": "成立",
    "fails": "不成立",
    "Step back": "上一步",
    "Step forward": "下一步",
    "Frame": "帧",
    "All steps in words": "逐步文字说明",
    "Checks": "检查",
    "Digest of the exact values": "精确值的摘要",
    "The code that ran": "刚刚运行的代码",
    "These functions of k3core computed the figures above.": "上面的图由 k3core 的这些函数算出。",
    "in the repository": "在代码仓库中查看",
    "Without JavaScript the controls do nothing; the page shows the default settings, computed when it was built.":
        "没有 JavaScript 时控件不起作用；页面显示的是构建时按默认参数算出的结果。",
    "Drawing: use the arrow keys to step, Space to play": "图示：方向键逐步，空格键播放",
    # home
    "What must be kept so that rejected drafts leave no trace?": "必须保存什么，才能让被拒绝的草稿不留痕迹？",
    "What does the way back cost per draft, in bytes?": "每个草稿的退路要花多少字节？",
    "Which interrupted runs end in the very same state?": "哪些中断过的运行会到达完全相同的状态？",
    "How seldom need the state itself be written?": "状态本身可以隔多久才写一次？",
    "How much of a block that rows and states share is useful?": "行与状态共用的块里，有多少是有用的？",
    "What does a full memory do to the next request?": "内存满了，下一个请求会怎样？",
    "From which length on do rows outweigh the state?": "从多长开始，行比状态更占地方？",
    "Where can a conversation that comes back resume?": "回来的对话能从哪里恢复？",
    "Why does a prompt that looks the same find nothing?": "看起来一样的提示词，为什么什么也没命中？",
    "Can any order of events hand out another's prefix?": "有没有哪种事件顺序会给出别人的前缀？",
    "Do evenly spread keys make an even load?": "键分布均匀，负载就均匀吗？",
    "Who loses a prefix when a cluster joins or dies?": "集群加入或停机时，谁会失去前缀？",
    "Whose burst is it, and who waits for it?": "是谁的突发，又是谁在等？",
    "What is left of it all under a burst and a failure?": "在突发和故障之下，这一切还剩多少？",
    "Your own model": "你自己的模型",
    "bytes, blocks, sessions": "字节、块、会话",
    "Your own trace": "你自己的请求轨迹",
    "hits under any policy": "任意策略下的命中",
    "Read in order": "按顺序阅读",
    "14 tabs, four families": "14 个主题，四个系列",
    "Claims, measured": "论断核验",
    "what holds, and when": "哪些成立，何时成立",
    "With your own data": "用你自己的数据",
    "Drop a config.json or choose a preset: block size, padding, sessions, and the log line your engine will print.":
        "放入 config.json 或选择预设：块大小、填充、会话数，以及引擎会打印的日志行。",
    "Drop a JSONL or CSV of requests: hits, bytes and price under every checkpoint policy. Nothing leaves the browser.":
        "放入 JSONL 或 CSV 格式的请求：每种检查点策略下的命中、字节与价格。数据不会离开浏览器。",
    "Look things up": "查找",
    "Over tabs, controls, situations, field reports, terms and claims; the key / opens it anywhere.":
        "覆盖主题、控件、情境、现场报告、术语和论断；在任何页面按 / 键即可打开。",
    "What a public demonstration said of these mechanisms, what the code measures, and a link to each state.":
        "一个公开演示对这些机制的说法、代码的实测结果，以及通往每个状态的链接。",
    "For whom": "写给谁",
    # reading in order, search
    "Reading in order": "按顺序阅读的前后页",
    "Before": "上一篇",
    "Next": "下一篇",
    "Search": "搜索",
    "Tab": "主题",
    "Control": "控件",
    "Situation": "情境",
    "Term": "术语",
    "Claim": "论断",
    "Field report": "现场报告",
    # claims
    "Claims": "论断核验",
    "Claims about serving Kimi K3, each measured, with the settings that show it and a verdict.":
        "关于 Kimi K3 推理服务的论断：逐条测量，给出参数与结论。",
    "What was claimed, and what holds": "说过什么，哪些成立",
    "A public demonstration of serving Kimi K3 made these claims. This site set out to reproduce them: each is put in one sentence, measured, and judged. The numbers were computed when this page was built; each link opens the state of the tab that shows them.":
        "一个公开的 Kimi K3 推理演示提出了这些论断。本站着手复现它们：每条用一句话说明，经过测量，给出结论。数字在构建本页时算出；每个链接打开显示这些数字的页面状态。",
    "holds under conditions": "有条件成立",
    "does not hold": "不成立",
    "cannot be checked here": "此处无法核验",
    "What it is good for": "适用范围",
    "computed by": "计算函数：",
    "default settings": "默认参数",
    "The figures no longer lead to the verdict that was explained here, so the explanation is left out.":
        "这些数字不再得出此处原先解释的结论，因此不再显示那段解释。",
    # glossary
    "Glossary": "术语表",
    "The terms of this site, each in two sentences, and where each can be seen.": "本站用到的术语，每条一两句话，并指出在哪里可以看到。",
    "All terms": "全部术语",
    "Two kinds of memory": "两种记忆",
    "Drafts, and taking them back": "草稿与收回",
    "Pages and blocks": "页与块",
    "Prefixes used again": "前缀复用",
    "Time and load": "时间与负载",
    "Many machines": "多台机器",
    # search, scripts
    "Search tabs, controls, situations, field reports, terms, claims": "搜索主题、控件、情境、现场报告、术语、论断",
    "Results": "结果",
    "{count} found": "找到 {count} 条",
    "1 found": "找到 1 条",
    "{count} found; the first {shown} are listed": "找到 {count} 条；列出前 {shown} 条",
    "All tabs and workbenches": "全部主题与工作台",
    "Nothing has all these words: {query}": "没有同时包含这些词的内容：{query}",
    "Look through the glossary": "浏览术语表",
    "The index of this search could not be loaded: {why}": "无法加载搜索索引：{why}",
    # where an address leads nowhere
    "No such page": "没有这个页面",
    "All pages are listed on the home page.": "所有页面都列在首页上。",
    # scripts
    "{file} could not be fetched: the network is gone": "无法获取 {file}：网络已断开",
    "{file} could not be fetched: the server answered {status}": "无法获取 {file}：服务器返回 {status}",
    "{file} is damaged: {got} of {want} bytes, or another content than this site was built with":
        "{file} 已损坏：{got} / {want} 字节，或内容与构建时不符",
    "{file} is missing": "缺少 {file}",
    "Python is not loaded": "尚未加载 Python",
    "Computing here needs Python, {megabytes} MB; moving a control loads it.": "在此计算需要加载 Python（{megabytes} MB）；调整任一控件即会加载。",
    "This device saves data, so Python ({megabytes} MB) is not loaded yet. Everything can be read without it; moving a control loads it.":
        "此设备处于省流量模式或内存较小，因此尚未加载 Python（{megabytes} MB）。不加载也能阅读全部内容；调整任一控件即会加载。",
    "This link asks for other settings than the ones shown.": "此链接的参数与当前显示的不同。",
    "Load Python": "加载 Python",
    "Not now": "暂不",
    "Python is loading; the settings are computed as soon as it is up.": "正在加载 Python；就绪后会立即按当前参数计算。",
    "The page could not be fetched: the network is gone. This one goes on working.": "无法获取该页面：网络已断开。当前页面仍可继续使用。",
    "the Python worker ended in the middle of this run, twice": "Python 工作线程在运行途中两次终止",
    "{file} is damaged": "{file} 已损坏",
    "the Python worker could not start": "Python 工作线程无法启动",
    "The charts could not be drawn and do not show these settings: {why}":
        "图表无法绘制，未显示当前参数的结果：{why}",
    "the Python worker stopped answering": "Python 工作线程停止响应",
    "a drawing could not be read": "无法读取图形",
    "pause": "暂停",
    "play": "播放",
    "the interpreter": "解释器",
    "the standard library": "标准库",
    "loading Python, {done} of {total} MB": "正在加载 Python，{done} / {total} MB",
    "starting {what}": "正在启动{what}",
    "Python {version} in this page": "本页内的 Python {version}",
    "computing, {done} of {total}": "计算中，{done} / {total}",
    "computing": "计算中",
    "restarting Python": "正在重启 Python",
    "Python is not available": "Python 不可用",
    "The figures here are not yet those of this link but those of the default settings; the ones it asks for are computed as soon as Python is up.":
        "此处显示的还不是这个链接的结果，而是默认参数的结果；Python 就绪后会立即按链接的参数计算。",
    "Stopped. The figures show the last finished run.": "已停止。图中显示的是上一次完成的运行。",
    "{file} has {size} bytes; at most {limit} are read": "{file} 有 {size} 字节；最多读取 {limit} 字节",
    "{file} is not a text file": "{file} 不是文本文件",
    "{file} cannot be read": "无法读取 {file}",
    "{file}: {problem}": "{file}：{problem}",
    "This link was made with a file (SHA-256 {key}…). Drop the same file to see its result.":
        "此链接使用了一个文件（SHA-256 {key}…）。放入同一文件即可查看其结果。",
    "pasted text": "粘贴的文本",
    "Measure the speed in this browser": "在本浏览器中测速",
    "measuring": "测量中",
    "Not measured. Run it once more, then measure.": "未能测量。请再运行一次，然后测量。",
    "{plain} tokens per second plain, {drafted} with looked-up drafts: {gain} times as fast.":
        "普通解码每秒 {plain} 个词元，用查找所得的草稿每秒 {drafted} 个：速度为 {gain} 倍。",
    "A verify round gave {given} tokens and took as long as {cost}.":
        "一轮验证得到 {given} 个词元，所用时间相当于 {cost} 个。",
    "Too many drafts were wrong: reading them cost more than the right ones saved.":
        "错误的草稿太多：读取它们的开销超过了正确草稿省下的时间。",
    "The two texts differ: a near tie, see the smallest lead.": "两份文本不同：出现近似平局，见最小领先值。",
    "Keep for comparison": "保留以便对比",
    "Let go of the comparison": "取消对比",
    "kept: {value}": "保留的：{value}",
    "{name}: kept {before}, now {now}": "{name}：保留的 {before}，现在 {now}",
    "The result to compare with used a file that is not here.": "用于对比的结果使用了一个此处没有的文件。",
    "{name}: another file": "{name}：另一个文件",
    "; ": "；",
    "{name}: {value}": "{name}：{value}",
    "Taken from the file: {settings}.": "取自该文件：{settings}。",
    "The result of this link is not here yet; once it is, so are the ways to take it away.":
        "此链接的结果尚未算出；算出之后，便可在此保存与引用。",
    "kept and present settings are the same": "保留的参数与当前参数相同",
    "Copied": "已复制",
    "Not copied: select the text": "未能复制：请选中文字",
    "Use the default": "使用默认值",
    "Remove it": "删除它",
    "Back to the defaults": "恢复默认参数",
    "Python could not start: {why}. Everything here can be read; the figures show the default settings.":
        "Python 无法启动：{why}。页面内容仍可阅读；图中显示的是默认参数的结果。",
    "Try again": "重试",
    "You guessed: {option}. Right.": "你猜的是：{option}。猜对了。",
    "You guessed: {option}.": "你猜的是：{option}。",
    "Link copied": "已复制链接",
    "Copy it from the address bar": "请从地址栏复制",
    # take it away, embed
    "Link copied, without the edits": "已复制链接（不含代码修改）",
    "Open in K3 Serve Lab": "在 K3 Serve Lab 中打开",
    "Take it away": "保存与引用",
    "the whole result, as Python wrote it": "完整结果，与 Python 写出的一致",
    "the numbers": "各项数值",
    "The same in Python": "用 Python 重现",
    "Program": "程序",
    "Notebook": "笔记本",
    "On a command line": "命令行",
    "Not with edited code or a file: take the program.": "使用了修改过的代码或文件时不适用：请下载程序。",
    "In another page": "嵌入其他网页",
    "This site was opened from a folder; serve it, and the address here is one that others can embed.":
        "本站从文件夹打开；部署到服务器后，这里的地址才能供他人嵌入。",
    "Link": "链接",
    "The address holds every setting. It holds no edited code and no dropped file.": "地址包含全部参数，但不包含修改过的代码和放入的文件。",
    "save the drawing: {title}": "保存矢量图：{title}",
    "save the picture: {title}": "保存图片：{title}",
    "save the values: {title}": "保存数据：{title}",
    "edited code": "修改过的代码",
    "The JSON is written by Python, which is not up yet.": "JSON 由 Python 写出，而 Python 尚未就绪。",
    "The state that this page shows:": "本页显示的状态：",
    "The site was opened from a folder, so the wheel is a file in that folder.": "本站从文件夹打开，因此 wheel 是该文件夹中的一个文件。",
    "The modules as they were edited on the page.": "在页面上修改过的模块。",
    "Put the file that was dropped on the page beside this program.": "请把放入页面的文件放在本程序旁边。",
    "The last two lines that this prints are the digest computed here and the one on the page; they are the same.":
        "最后打印的两行分别是此处算出的摘要和页面上的摘要，两者相同。",
    # editor
    "Edit and run": "修改并运行",
    "Edit the code": "修改代码",
    "Part of the code": "代码的部分",
    "{module}, from its top": "{module}，从头开始",
    "Printed by the code": "代码打印的内容",
    "Run": "运行",
    "Back to the shipped code": "恢复原始代码",
    "Close": "关闭",
    "Show the line": "显示该行",
    "Ctrl+Enter runs. Tab indents; Escape, then Tab leaves. Edits stay in this page's memory: no link holds them, and they are gone when you leave the page.":
        "Ctrl+Enter 运行。Tab 缩进；先按 Escape 再按 Tab 离开。修改只保存在本页内存中：链接不包含它们，离开本页后即消失。",
    "Source text of {module}": "{module} 的源代码",
    "These figures come from edited code: {parts}.": "这些图由修改过的代码算出：{parts}。",
    "{module}, line {line}: {message}": "{module} 第 {line} 行：{message}",
    "kept with the shipped code, now with edited code": "保留时为原始代码，现在为修改过的代码",
    "kept with edited code, now with the shipped code": "保留时为修改过的代码，现在为原始代码",
    "line {from}": "第 {from} 行",
    "lines {from} to {to}": "第 {from} 至 {to} 行",
    "the edited code ran on without an end, or ended the interpreter; it was stopped":
        "修改后的代码一直没有结束，或使解释器退出；已将其停止",
}

_SAID = re.compile(r'say\("((?:[^"\\]|\\.)*)"')
# Phases of the start, which the scripts look up in their table PHASES before they say them.
_SAID_INDIRECTLY = ("the interpreter", "the standard library")


def translate(template: str, lang: str) -> str:
    """The template in `lang`. Raises KeyError where there is no entry."""
    return template if lang == "en" else ZH[template]


def script_words(scripts: str, lang: str) -> dict:
    """The translations that the page scripts ask for with `say("...")`; empty in English."""
    if lang == "en":
        return {}
    return {words: ZH.get(words, words) for words in (*_SAID.findall(scripts), *_SAID_INDIRECTLY)}
