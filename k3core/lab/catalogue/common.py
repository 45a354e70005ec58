"""Entries that no single tab owns."""

ZH = {
    "Tabs": "主题",
    "Workbenches": "工作台",
    "Home page": "首页",
    "{name} is {value}; it takes {allowed}": "{name} 的值是 {value}；应为{allowed}",
    "a whole number from {low} to {high} in steps of {step}": "{low} 到 {high} 之间的整数，步长 {step}",
    "a whole number from {low} to {high}": "{low} 到 {high} 之间的整数",
    "a number from {low} to {high}": "{low} 到 {high} 之间的数",
    "true or false": " true 或 false",
    "one of {values}": "以下之一：{values}",
    "up to {count} numbers from {low} to {high}, separated by commas":
        "最多 {count} 个 {low} 到 {high} 之间的数，以逗号分隔",
    "{name} has {length} characters; it takes at most {most}": "{name} 有 {length} 个字符；最多 {most} 个",
    "text of at most {count} characters": "不超过 {count} 个字符的文本",
    "there is no parameter {name}; there are {names}": "没有参数 {name}；可用的有 {names}",
    "the parameters are {value}; they must be an object with one value per name":
        "参数为 {value}；应为一个对象，每个参数名对应一个值",
    "there is no preset {name}; there are {names}": "没有情境 {name}；可用的有 {names}",
    "seed": "随机种子",
    "frame": "帧",
    "this site does not ship {name}": "本站不含 {name}",
    "Python's memory in this page is full; smaller settings need less": "本页内 Python 的内存已满；把设置调小即可少用内存",
    "measured {measured}, required {bound}": "实测：{measured}；要求：{bound}",
    "Tokens come from": "词元来自",
    "the trained model and my text": "训练好的模型与我的文本",
    "My text": "我的文本",
    "One token per character, ASCII only. The model has read Python source.":
        "每个字符一个词元，仅限 ASCII。模型读过的是 Python 源码。",
    "Each next token is": "每个后续词元",
    "the likeliest": "取最可能的",
    "drawn, temperature 0.8": "按温度 0.8 抽样",
    "Drawn with noise that hangs on seed and position alone, so that every way to decode draws the same.":
        "抽样噪声只取决于随机种子和位置，因此无论怎样解码，抽到的都相同。",
    "layer {l}, head {h}": "第 {l} 层，头 {h}",
    "{margin}, a near tie: another machine may choose another token": "{margin}，几乎并列：换一台机器可能选出另一个词元",
    "smallest lead of a chosen token, in logits: {margin}": "被选词元的最小领先量（logit）：{margin}",
    "{name} holds {character}; the trained model reads ASCII only, one token per character":
        "{name} 里有 {character}；训练好的模型只读 ASCII，每个字符一个词元",
}
