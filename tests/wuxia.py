"""A text that reads like a wuxia novel: persons no dictionary knows, who speak, see and walk."""

import random

NAMES = ["郭芙", "杨过", "程英", "霍青桐", "慕容烟", "独孤樱", "袁紫衣", "萧半和"]
FILLER = [
    "天色已晚，山路上没有行人",
    "远处传来一阵马蹄声，众人都吃了一惊",
    "月光照在水面上，风吹树叶沙沙作响",
    "这一招来得好快，剑尖已到胸前",
    "院子里灯火通明，桌上摆着酒菜",
    "他想起往事，心中一酸，泪水便流了下来",
]
TEMPLATES = [
    "{a}道：“你来得正好。”",
    "{a}笑道：“我早就知道了。”",
    "{a}听了这话，脸色大变。",
    "{a}见{b}走近，忙站起身来。",
    "{a}心想：“这人武功好高。”",
    "只听{a}叫道：“{b}，快走！”",
    "{a}和{b}一起上山。",
    "{a}问{b}道：“后来怎样？”",
    "这时{a}已经走远，{b}还在门口。",
    "{a}不答，转身便走。",
    "众人都看着{a}。",
    "{b}的剑法比{a}还高。",
]


def write_novel(names: list[str] = NAMES, sentences: int = 3000, seed: int = 1) -> str:
    draw = random.Random(seed)
    parts = []
    for _ in range(sentences):
        first, second = draw.sample(names, 2)
        parts.append(draw.choice(TEMPLATES).format(a=first, b=second))
        parts.append(draw.choice(FILLER) + "。")
    return "\n".join("".join(parts[start : start + 6]) for start in range(0, len(parts), 6))
