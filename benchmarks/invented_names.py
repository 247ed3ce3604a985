"""Rename the persons of a text: surnames with given names that are words of the dictionary (霍云中, 叶镜湖).

    a text, the names of its persons  ->  the same text with invented names, each in place of one name

jieba cuts such a name in two, a surname and a word, and the word alone says nothing of a person: it is the
hardest kind of name to find. Surnames and given names are in two sets: `design`, on which
`text.segment.discovery` may be tuned, and `held out`, on which it is measured.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from itertools import cycle
from typing import Literal

NameSet = Literal["design", "held out"]
_SURNAMES: dict[NameSet, str] = {
    "design": "赵孙周郑冯卫沈杨秦许何张曹华魏姜邹苏潘葛范彭鲁马方俞任柳史唐薛雷贺罗安常于傅康顾孟高田丁石",
    "held out": "李王刘陈林黄吴徐朱胡郭梁宋谢韩程董萧袁邓叶霍杜江白尹戴夏钟汪姚陆金谭廖熊孔崔邱洪龙段武",
}
_GIVEN_NAMES: dict[NameSet, str] = {
    "design": """
万山 不败 东海 东阳 东风 中原 丹心 丹青 云中 五岳 人杰 仁和 从容 伟业 保国 信义 光华
光耀 光辉 兰花 兴国 兴旺 兴邦 兴隆 冰心 冰河 凌云 刚毅 创业 初阳 剑锋 北海 北辰 十方
千秋 千里 半夏 南山 向阳 和顺 善良 四方 坚定 夕阳 大地 大成 太平 奋斗 子规 守拙 安宁
安民 富贵 小雪 延安 延寿 建功 归真 德行 志向 忠厚 忠良 怀远 思源 惊雷 惊鸿 慧心 成功
成龙 扬帆 承平 抱朴 振华 文华 文思 无尘 日月 明德 星河 星辰 月华 望月 朝阳 木兰 木莲
杜鹃 松涛 正气 正直 残阳 永年 永生 江南 江山 沧海 河山 流云 浮云 海涛 海潮 海燕 清明
清泉 清流 清白 清秋 清风 温和 温柔 温良 灵犀 烈日 玉树 珊瑚 琥珀 甘霖 甘露 白云 百合
知音 石头 碧玉 礼让 秋水 空山 空明 空谷 立功 立志 竹林 紫烟 红梅 红豆 细柳 绿衣 翠竹
翡翠 致远 芙蓉 荣耀 荷花 落霞 蔷薇 西风 逍遥 金刚 金玉 金石 铁山 铁衣 长城 长安 长寿
长生 长青 长风 闪电 阳光 雕龙 青云 青山 青松 青莲 顺风 风云 飞花 飞雪 飞鸿 飞龙 骐骥
鸾凤 鹏飞 鹤鸣 麒麟
""",
    "held out": """
万里 三丰 不凡 不平 东方 中兴 中天 中庸 中正 中秋 义士 九州 仁义 从军 仙鹤 保安 光明
冬青 凤凰 刚直 剑气 北斗 半山 南风 向东 向前 和平 四海 国强 坚强 夏至 大同 大器 大山
大江 大海 天宝 天涯 奋进 如意 子午 子夜 孤山 守义 守信 守成 安国 安邦 宏伟 宏图 定安
定远 富强 寒梅 小山 小楼 小雨 山峰 山川 山河 常青 平安 幽兰 建业 建国 当归 彩云 德高
志远 忠义 怀古 慧眼 振兴 敏捷 文明 文武 文采 方正 无为 无双 无心 明亮 明月 明珠 明镜
星光 春兰 春华 春晖 春秋 春雨 晨曦 景天 智勇 智慧 月光 望海 杨柳 柳絮 桂花 梅花 正义
正道 水仙 永久 永恒 江河 沉香 海棠 海洋 清平 清源 灵芝 烈火 牡丹 玉泉 玉石 玫瑰 甘泉
白芷 白鹭 百川 知行 石竹 碧波 秋月 秋霜 立业 立德 立言 竹叶 紫薇 红叶 红线 细雨 翠微
聪慧 自强 芍药 茉莉 荣华 莲花 菊花 落花 落英 虎啸 行云 观海 赤诚 远山 远航 铁心 银河
镜湖 长春 长江 雁行 雪峰 雪松 雷霆 青天 青竹 顺天 风行 风雷 飞扬 飞虎 飞鹰 骏马 鸳鸯
鸿雁 鹏程 鹦鹉 龙马
""",
}


def rename_persons(text: str, names: Iterable[str], names_from: NameSet, seed: int) -> tuple[str, list[str]]:
    """Replace every name by an invented one, longer names first.

    Returns:
        The text and the invented names.

    """
    ordered = sorted(set(names), key=lambda name: (-len(name), name))
    draw = random.Random(seed)
    surnames, given_names = list(_SURNAMES[names_from]), _GIVEN_NAMES[names_from].split()
    draw.shuffle(surnames)
    draw.shuffle(given_names)
    # Both are taken in turn, so that no given name is that of many persons.
    pairs = zip(cycle(surnames), cycle(given_names), strict=False)
    invented = (surname + given for surname, given in pairs if surname + given not in text)
    replacements = dict(zip(ordered, invented, strict=False))
    pattern = re.compile("|".join(map(re.escape, ordered)))
    return pattern.sub(lambda match: replacements[match[0]], text), list(replacements.values())
