"""Entries that no single tab owns."""

ZH = {
    "{name} is {value}; it takes {allowed}": "{name} 的值是 {value}；应为{allowed}",
    "a whole number from {low} to {high} in steps of {step}": "{low} 到 {high} 之间的整数，步长 {step}",
    "a whole number from {low} to {high}": "{low} 到 {high} 之间的整数",
    "a number from {low} to {high}": "{low} 到 {high} 之间的数",
    "true or false": " true 或 false",
    "one of {values}": "以下之一：{values}",
    "up to {count} numbers from {low} to {high}, separated by commas":
        "最多 {count} 个 {low} 到 {high} 之间的数，以逗号分隔",
    "text of at most {count} characters": "不超过 {count} 个字符的文本",
    "there is no parameter {name}; there are {names}": "没有参数 {name}；可用的有 {names}",
    "the parameters are {value}; they must be an object with one value per name":
        "参数为 {value}；应为一个对象，每个参数名对应一个值",
    "there is no preset {name}; there are {names}": "没有情境 {name}；可用的有 {names}",
    "seed": "随机种子",
    "frame": "帧",
    "this site does not ship {name}": "本站不含 {name}",
    "measured {measured}, required {bound}": "实测 {measured}，要求 {bound}",
}
