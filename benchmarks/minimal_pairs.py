"""Measure how often a model prefers the right one of two sentences that differ in one thing.

    templates in this file  ->  polyseme.score  ->  a table: accuracy by the sum and per token

Like BLiMP, but our own: a few hundred pairs made from templates, English or Chinese, each a right sentence
and a wrong one. A pair counts if the right sentence has the higher log probability, by the mean of both
directions: `sum` over the sentence, `per token` divided by its predictions. The two differ only where one
sentence of the pair is longer. `unknown` is the share of pairs with a word outside the vocabulary in either
sentence: such pairs count like the others. Chance is 0.5.

    python benchmarks/minimal_pairs.py en en-classic zh zh-classic
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product

import polyseme

Pair = tuple[str, str]  # the right sentence, the wrong one; words separated by spaces

SINGULAR = ("teacher", "doctor", "king", "farmer", "student", "child")
PLURAL = ("teachers", "doctors", "kings", "farmers", "students", "children")
MEN, WOMEN = ("man", "boy", "father", "brother"), ("woman", "girl", "mother", "sister")
CLASSIFIERS = (  # a noun, its classifier, one that does not fit
    ("书", "本", "匹"), ("马", "匹", "本"), ("船", "条", "本"), ("信", "封", "匹"), ("树", "棵", "封"),
    ("纸", "张", "棵"), ("花", "朵", "匹"), ("刀", "把", "封"), ("车", "辆", "朵"), ("山", "座", "封"),
)  # fmt: skip
BE_AND_HAVE = (("is", "are", "here"), ("was", "were", "tired"), ("has", "have", "left"))
OPENINGS = {"en": ("", "at last ", "in those days "), "zh": ("", "后来 ", "听说 ")}  # of every pair
PERSONS_ZH = ("他", "她", "父亲", "母亲", "老师", "学生")


def english() -> dict[str, list[Pair]]:
    """The pairs by phenomenon."""
    return {
        "subject and verb": list(_agree()),
        "subject and verb, a noun between": list(_agree_across()),
        "reflexive pronoun": [
            (f"the {singular} hurt {own} .", f"the {singular} hurt {other} .")
            for group, own, other in ((MEN, "himself", "herself"), (WOMEN, "herself", "himself"))
            for singular in group
        ],
        "this and these": [
            pair
            for singular, plural in zip(SINGULAR, PLURAL, strict=True)
            for pair in (
                (f"i saw this {singular} yesterday .", f"i saw these {singular} yesterday ."),
                (f"i saw those {plural} yesterday .", f"i saw that {plural} yesterday ."),
            )
        ],
        "a and an": [
            pair
            for word, after in product(("apple", "old house", "hour"), ("on the hill", "near the town"))
            for pair in (
                (f"there is an {word} {after} .", f"there is a {word} {after} ."),
                (f"there is a big {word} {after} .", f"there is an big {word} {after} ."),
            )
        ],
        "form of the verb": [
            pair
            for singular in SINGULAR
            for pair in (
                (f"the {singular} has gone home .", f"the {singular} has went home ."),
                (f"the {singular} did not see it .", f"the {singular} did not saw it ."),
                (f"the {singular} can speak well .", f"the {singular} can speaks well ."),
            )
        ],
        "any after not": [
            (f"the {singular} did not have any money .", f"the {singular} did have any money .")
            for singular in SINGULAR
        ],
        "words left out": [
            pair
            for singular in SINGULAR
            for pair in (
                (f"the {singular} went to the house .", f"the {singular} went the house ."),
                (f"the {singular} is in the room .", f"the {singular} in the room ."),
            )
        ],
        "order": [
            pair
            for singular in SINGULAR
            for pair in (
                (f"the old {singular} came back .", f"old the {singular} came back ."),
                (f"where did the {singular} go ?", f"where the {singular} did go ?"),
            )
        ],
    }


def _agree() -> Iterator[Pair]:
    """Singular and plural subjects with forms of be and have."""
    for singular, plural in zip(SINGULAR, PLURAL, strict=True):
        for single, several, rest in BE_AND_HAVE:
            yield f"the {singular} {single} {rest} .", f"the {singular} {several} {rest} ."
            yield f"the {plural} {several} {rest} .", f"the {plural} {single} {rest} ."


def _agree_across() -> Iterator[Pair]:
    """The same with a noun of the other number before the verb."""
    for singular, plural in zip(SINGULAR, PLURAL, strict=True):
        yield f"the {singular} near the houses is old .", f"the {singular} near the houses are old ."
        yield f"the {plural} near the house are old .", f"the {plural} near the house is old ."


def chinese() -> dict[str, list[Pair]]:
    """The pairs by phenomenon."""
    return {
        "classifier": [
            pair
            for noun, right, wrong in CLASSIFIERS
            for pair in (
                (f"他 有 一 {right} {noun} 。", f"他 有 一 {wrong} {noun} 。"),
                (f"这里 有 三 {right} {noun} 。", f"这里 有 三 {wrong} {noun} 。"),
            )
        ],
        "classifier left out": [
            (f"他 有 一 {right} {noun} 。", f"他 有 一 {noun} 。") for noun, right, _ in CLASSIFIERS
        ],
        "aspect": [
            pair
            for person in PERSONS_ZH
            for pair in (
                (f"{person} 昨天 来 了 。", f"{person} 昨天 了 来 。"),
                (f"{person} 正在 看 书 。", f"{person} 看 正在 书 。"),
                (f"{person} 去 过 北京 。", f"{person} 过 去 北京 。"),
            )
        ],
        "negation": [
            pair
            for person in PERSONS_ZH
            for pair in (
                (f"{person} 没有 去 过 。", f"{person} 不 去 过 。"),
                (f"{person} 不 知道 。", f"{person} 知道 不 。"),
            )
        ],
        "把 and 被": [
            pair
            for person in PERSONS_ZH
            for pair in (
                (f"{person} 把 书 放 在 桌子 上 。", f"{person} 书 把 放 在 桌子 上 。"),
                (f"书 被 {person} 拿走 了 。", f"书 {person} 被 拿走 了 。"),
            )
        ],
        "order": [
            pair
            for person in PERSONS_ZH
            for pair in (
                (f"{person} 在 北京 工作 。", f"{person} 工作 北京 在 。"),
                (f"{person} 很 喜欢 这 本 书 。", f"{person} 喜欢 很 这 本 书 。"),
                (f"因为 下雨 ， 所以 {person} 没有 来 。", f"所以 下雨 ， 因为 {person} 没有 来 。"),
            )
        ],
        "words left out": [
            pair
            for person in PERSONS_ZH
            for pair in (
                (f"{person} 比 我 高 。", f"{person} 我 高 。"),
                (f"这 是 {person} 的 书 。", f"这 {person} 的 书 。"),
            )
        ],
    }


def main() -> None:
    """Parse the command line, score all pairs, print a table per model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    for name in parser.parse_args().models:
        print(measure(name) + "\n", flush=True)


def measure(name: str) -> str:
    """The table of a model."""
    elmo = polyseme.load(name)
    is_english = elmo.config.segment == "en"
    openings, pairs = OPENINGS["en" if is_english else "zh"], english() if is_english else chinese()
    lines = [f"| {name} | pairs | unknown | sum | per token |", "|---|---|---|---|---|"]
    everything = [0, 0, 0, 0]
    for phenomenon, chosen in pairs.items():
        texts = [f"{opening}{text}".split() for opening, pair in product(openings, chosen) for text in pair]
        scores = polyseme.score(elmo, texts, progress=False)
        counts = [len(texts) // 2, 0, 0, 0]
        for right, wrong in zip(scores[::2], scores[1::2], strict=True):
            counts[1] += bool(right.unknown.any() or wrong.unknown.any())
            counts[2] += right.totals[2] > wrong.totals[2]
            counts[3] += right.per_token[2] > wrong.per_token[2]
        lines.append(format_row(phenomenon, counts))
        everything = [total + count for total, count in zip(everything, counts, strict=True)]
    return "\n".join([*lines, format_row("all", everything)])


def format_row(title: str, counts: list[int]) -> str:
    """A row: the number of pairs, and the shares of the other counts."""
    shares = " | ".join(f"{count / counts[0]:.3f}" for count in counts[1:])
    return f"| {title} | {counts[0]} | {shares} |"


if __name__ == "__main__":
    main()
