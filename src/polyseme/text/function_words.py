"""Tell content words from function words, in English and Chinese by lists, elsewhere by frequency.

    search.contexts, search.change  ->  text.function_words

Function words (the, of, 的, 之) have grammatical uses rather than topics: they swamp rankings of words that
changed, and say nothing about what a passage is about. The lists hold closed classes: articles, pronouns,
prepositions, conjunctions, auxiliaries, particles, and adverbs of degree, time and negation. Numbers and
punctuation are no content words either.
"""

from __future__ import annotations

from collections.abc import Mapping

_ENGLISH = """
a an the this that these those such same other another each every either neither both all any some no
none few many much more most several enough own what which who whom whose whatever whichever whoever
when where why how whether while if unless until till though although because since so than then as lest
i me my myself we us our ours ourselves you your yours yourself yourselves he him his himself she her
hers herself it its itself they them their theirs themselves one ones oneself somebody someone something
anybody anyone anything nobody nothing everybody everyone everything thou thee thy thine thyself ye of
in on at by for with without about against between among amongst into through during before after above
below to from up down out off over under upon within toward towards across along around behind beside
besides beyond despite except inside near onto outside per throughout underneath unto via amid and or
but nor yet not n't nt only also too very just even still again ever never now here there thus hence
therefore however moreover indeed perhaps rather quite almost already always often sometimes once am is
are was were be been being 's 're 'm do does did done doing have has had having 've 'd 'll will would
shall should can could may might must ought cannot ca wo let hath doth didst hast wilt shalt wert
"""
ENGLISH = frozenset(_ENGLISH.split())
_CHINESE = """
的 地 得 了 着 过 吗 呢 吧 啊 呀 么 哪 罢 罢了 嘛 啦 哇 之 乎 者 也 矣 焉 哉 耳 兮 欤 夫 盖 所 其 厥 斯
兹 我 你 您 他 她 它 我们 你们 他们 她们 它们 咱 咱们 俺 吾 余 予 汝 尔 彼 此 己 自己 自 某 某人 人家
别人 大家 谁 孰 何 甚 甚么 什么 怎 怎么 怎样 怎的 哪里 那里 这里 这 那 这个 那个 这些 那些 这等 那等
如此 如何 为何 何故 何不 岂 岂不 岂敢 几 多少 各 每 诸 诸位 凡 皆 都 俱 尽 尽皆 悉 全 共 均 只 只是 仅
唯 惟 但 但是 不过 而 而且 并 并且 且 况 何况 和 与 及 以及 同 跟 或 或者 抑 还是 若 如 如果 倘 倘若
假如 虽 虽然 虽则 纵 即使 因 因为 因此 由于 故 故此 所以 于是 既 既然 则 便 就 即 乃 遂 乃是 就是 便是
却 却是 倒 反 反而 又 再 复 还 仍 仍然 亦 也是 更 更加 最 很 太 甚是 极 颇 十分 非常 正 正在 方 方才 才
刚 刚才 曾 曾经 已 已经 早 早已 将要 欲 要 会 能 能够 可 可以 可是 必 必须 必然 须 应 应该 当 该 肯 敢
愿 得以 不 没 没有 未 未曾 非 无 勿 莫 休 别 毋 弗 是 为 系 有 在 于 从 自从 由 向 往 朝 到 至 至于 对
对于 关于 把 被 给 让 教 叫 令 使 用 以 按 按照 据 根据 依 依照 比 除 除了 沿 随 随着 因而 然 然而 然后
否则 等 等等 一 一个 一些 一样 一般 似 似乎 般 个 些 点 们 上 下 中 里 内 外 前 后 间 之前 之后 之中
之上 之下 以来 以前 以后 时 时候 其他 其中 其余 另 另外 互相 相 多 少 许多 非但 不但 不仅 不是 不能 不可
不得 不敢 不肯 不要 不会 不曾 不知 莫非 难道 究竟 到底 或许 也许 大概 恐怕 恐 原来 忽 忽然 忽见 只见
只得 只有 不如 不必 无不 莫不 今 今日 如今 现在 当时 此时 这时 那时 是以 以为 而已 来 去 起来 下来 出来
过来 上来 进来 起 出 出去 进去 过去 上去 下去
"""
CHINESE = frozenset(_CHINESE.split())
MIN_SHARE = 0.1  # of all usages that listed words have if the lists know the language
FREQUENT_SHARE = 1 / 300  # of all usages: what a function word has at least, if no list knows the language
MIN_WORDS = 1000  # of a vocabulary that tells how frequent words are


def is_content_word(word: str) -> bool:
    """Whether a word is no listed function word, and has a letter.

    Example:
        >>> [word for word in ("The", "bank", "的", "将军", ",", "1984") if is_content_word(word)]
        ['bank', '将军']

    """
    lower = word.lower()
    return lower not in ENGLISH and word not in CHINESE and any(map(_is_letter, word))


def _is_letter(character: str) -> bool:
    return character.isalpha()


def find_frequent_function_words(counts: Mapping[str, int]) -> frozenset[str]:
    """Return the words of a corpus that are probably function words because nothing else is as frequent.

    For languages without a list: empty if listed words are frequent, or if the vocabulary is too small.

    Args:
        counts: The usages of every word of a corpus.

    """
    total = sum(counts.values())
    listed = sum(count for word, count in counts.items() if word.lower() in ENGLISH or word in CHINESE)
    if len(counts) < MIN_WORDS or listed >= MIN_SHARE * total:
        return frozenset()
    return frozenset(word for word, count in counts.items() if count >= FREQUENT_SHARE * total)
