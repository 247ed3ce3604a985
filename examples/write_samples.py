"""Write a small labelled sample for eight tasks: 240 examples to learn from, 80 to choose by, 80 for a test.

python examples/write_samples.py [FOLDER]      # by default: samples

The sentences are made of our own patterns and words, the same in every run. No name and no noun of the test
part occurs in the other two, so that a model must know words that it was not trained on: ELMo brings that.
Translations are the exception, since a word that was never translated cannot be: there, no person of the test
part stood with a word of two meanings before, and the person tells which meaning it has.

    polyseme train tagging en --train samples/names.train.conll --dev samples/names.dev.conll \
        --test samples/names.test.conll --out models/names --compare
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

SIZES = {"train": 240, "dev": 80, "test": 80}
Words = dict[str, list[str]]

# Words by kind; three quarters of each are in train and dev, the last quarter in test.
NAMES = """
person: Mary John Peter Alice Thomas Anna Robert Emma James Helen George Laura William Julia Charles
    Sophie Henry Clara Martin Ruth David Sarah Daniel Karen Michael Lucy Frank Susan
surname: Smith Brown Miller Davis Wilson Taylor Moore Clark Walker Young Green Baker Carter Turner
    Cook Morgan Johnson Anderson Thompson Robinson
place: London Paris Chicago Berlin Texas Canada Boston Madrid Oregon Japan Vienna Denver Italy
    Dublin Seattle Norway Rome Florida Moscow Toronto Poland Detroit California Spain
company: Google Microsoft Boeing Toyota Nokia Siemens Intel Sony Ford Pfizer Samsung Shell Oracle
    Volvo Disney IBM Apple Amazon Facebook Honda
"""
NOUNS = """
agent: nurse farmer lawyer doctor student sailor waiter teacher gardener tailor soldier neighbour
thing: book letter box cup map chair coat ring bottle lamp basket picture
place: kitchen garden office station market library harbour cellar street church field hotel
event: meeting lecture concert dinner interview rehearsal exam party
"""
TIMES = ("yesterday", "today", "recently")
RELATIONS = {  # pairs of nouns, in the order of the label
    "Component-Whole": "door-house wheel-car mast-ship pedal-bicycle roof-church gate-castle valve-engine "
    "hand-clock lens-camera key-piano bulb-lamp leg-chair window-train sail-boat drawer-table "
    "wing-plane",
    "Cause-Effect": "storm-damage fire-death war-hunger virus-disease accident-injury drought-famine "
    "frost-loss noise-headache smoke-cough sun-heat rain-flood bomb-fear poison-pain "
    "earthquake-panic strike-delay sugar-decay",
    "Product-Producer": "novel-writer portrait-painter bread-baker symphony-composer poem-poet "
    "bridge-engineer suit-tailor photograph-photographer cupboard-carpenter film-director honey-bee "
    "beer-brewer horseshoe-smith law-parliament cake-cook article-journalist",
    "Member-Collection": "player-team soldier-army student-class singer-choir voter-party "
    "sailor-crew wolf-pack sheep-flock ant-colony officer-regiment judge-court card-deck "
    "tree-forest bird-swarm star-galaxy grape-bunch",
}
VERBS = ("bought", "found", "sold", "lost", "repaired", "carried", "painted", "cleaned")


def select(entries: list[str], part: str) -> list[str]:
    """The words that a part may use: test has the last quarter, which the others have not."""
    known = len(entries) - len(entries) // 4
    return entries[known:] if part == "test" else entries[:known]


def read_words(text: str, part: str) -> Words:
    """The words of a part, by kind."""
    kinds = (entry.partition(": ") for entry in text.replace("\n    ", " ").strip().splitlines())
    return {kind: select(listed.split(), part) for kind, _, listed in kinds}


def write_tags(tokens: list[tuple[str, str]]) -> str:
    """A sentence in columns: a name of several words begins with B- and goes on with I-."""
    lines = []
    for text, kind in tokens:
        for number, word in enumerate(text.split()):
            lines.append(f"{word} {'O' if not kind else ('I-' if number else 'B-') + kind}")
    return "\n".join([*lines, ""])


def make_names(random: Random, part: str) -> str:
    """Names of persons, places and companies; most patterns could have any of them."""
    words = read_words(NAMES, part)
    person, place, company = (random.choice(words[kind]) for kind in ("person", "place", "company"))
    if random.random() < 0.5:
        person = f"{person} {random.choice(words['surname'])}"
    name, kind = random.choice([(person, "PER"), (place, "LOC"), (company, "ORG")])
    patterns = [
        [("We have heard a lot about", ""), (name, kind), (".", "")],
        [(name, kind), ("was in the news this morning .", "")],
        [("Nobody here likes", ""), (name, kind), (".", "")],
        [("What do you think of", ""), (name, kind), ("?", "")],
        [("The story begins with", ""), (name, kind), (".", "")],
        [("I wrote about", ""), (name, kind), ("last week .", "")],
        [(person, "PER"), ("has worked for", ""), (company, "ORG"), ("since May .", "")],
        [(person, "PER"), ("was born in", ""), (place, "LOC"), (".", "")],
        [(company, "ORG"), ("has opened an office in", ""), (place, "LOC"), (".", "")],
        [
            ("In", ""),
            (place, "LOC"),
            ("they met", ""),
            (person, "PER"),
            ("of", ""),
            (company, "ORG"),
            (".", ""),
        ],
    ]
    return write_tags(random.choice(patterns))


def make_relation(random: Random, part: str) -> str:
    """Two nouns and their relation, which the pattern does not tell: the nouns do."""
    label, pairs = random.choice(list(RELATIONS.items()))
    first, second = random.choice(select(pairs.split(), part)).split("-")
    pattern = random.choice(
        [
            "We looked at the <e1>{}</e1> and the <e2>{}</e2> .",
            "They spoke of the <e1>{}</e1> and of the <e2>{}</e2> .",
            "Here is the <e1>{}</e1> , and there is the <e2>{}</e2> .",
            "The report names the <e1>{}</e1> first , then the <e2>{}</e2> .",
            "He thought of the <e1>{}</e1> , not of the <e2>{}</e2> .",
        ]
    )
    if random.random() < 0.5:  # the other way round
        return json.dumps({"text": pattern.format(second, first), "label": f"{label}(e2,e1)"})
    return json.dumps({"text": pattern.format(first, second), "label": f"{label}(e1,e2)"})


def make_pair(random: Random, part: str) -> str:
    """Two sentences: the second follows from the first, contradicts it, or neither."""
    words = read_words(NOUNS, part)
    agent, thing, place = (random.choice(words[kind]) for kind in ("agent", "thing", "place"))
    other_place = random.choice([word for word in words["place"] if word != place])
    verb = random.choice(VERBS)
    first = f"A {agent} {verb} a {thing} in the {place} ."
    second, label = random.choice(
        [
            (f"Somebody {verb} a {thing} .", "entailment"),
            (f"A {agent} was in the {place} .", "entailment"),
            (f"Nobody {verb} anything in the {place} .", "contradiction"),
            (f"The {place} was empty .", "contradiction"),
            (f"The {thing} was a present for a friend .", "neutral"),
            (f"The {agent} had been in the {other_place} before .", "neutral"),
        ]
    )
    return json.dumps({"sentence1": first, "sentence2": second, "label": label})


def make_roles(random: Random, part: str) -> str:
    """Who did what, where and when, in different orders."""
    words = read_words(NOUNS, part)
    agent, thing, place = (random.choice(words[kind]) for kind in ("agent", "thing", "place"))
    verb, time = random.choice(VERBS), random.choice(TIMES)
    pieces = {"A": (f"the {agent}", "ARG0"), "V": (verb, "V"), "T": (f"the {thing}", "ARG1")}
    pieces |= {"P": (f"in the {place}", "ARGM-LOC"), "N": (time, "ARGM-TMP"), "W": ("was", "O")}
    pieces |= {"B": (f"by the {agent}", "ARG0")}
    order = random.choice(["AVT", "AVTP", "AVTN", "NAVT", "TWV", "TWVB", "TWVP", "PTWV", "TWVBN"])
    tokens: list[str] = []
    tags: list[str] = []
    for text, role in [*(pieces[key] for key in order), (".", "O")]:
        for number, word in enumerate(text.split()):
            tokens.append(word)
            tags.append("O" if role == "O" else ("I-" if number else "B-") + role)
    frame = {"predicate_index": tags.index("B-V"), "tags": tags}
    return json.dumps({"words": [tokens[0].capitalize(), *tokens[1:]], "frames": [frame]})


def make_answer(random: Random, part: str) -> str:
    """A short text and a question that a part of it answers."""
    names, words = read_words(NAMES, part), read_words(NOUNS, part)
    people = [f"{person} {random.choice(names['surname'])}" for person in random.sample(names["person"], 2)]
    things = random.sample(words["thing"], 2)
    places = random.sample(names["place"], 2)
    verbs = random.sample(VERBS, 2)
    years = random.sample(range(1900, 2020), 2)
    context = " ".join(
        f"{person} {verb} the {thing} in {place} in {year}."
        for person, verb, thing, place, year in zip(people, verbs, things, places, years, strict=True)
    )
    asked = random.randrange(2)
    person, verb, thing, place = people[asked], verbs[asked], things[asked], places[asked]
    question, answer = random.choice(
        [
            (f"Who {verb} the {thing}?", person),
            (f"What was {verb} by {person}?", f"the {thing}"),
            (f"In which place was {person}?", place),
            (f"In which year was the {thing} {verb}?", str(years[asked])),
        ]
    )
    start = context.index(answer)
    return json.dumps(
        {"context": context, "question": question, "answers": [{"text": answer, "answer_start": start}]}
    )


MEN, WOMEN = "John Peter Thomas Robert James George William", "Mary Alice Anna Emma Helen Laura Julia"


def make_story(random: Random, part: str) -> str:
    """A man and a woman in a few sentences: their names, pronouns and a noun for each."""
    words = read_words(NOUNS, part)
    man, woman = (random.choice(select(names.split(), part)) for names in (MEN, WOMEN))
    agent, place = random.choice(words["agent"]), random.choice(words["place"])
    names = {"m": man, "w": woman, "he": "he", "she": "she", "him": "him", "her": "her", "a": f"the {agent}"}
    people = {"m": "m", "he": "m", "him": "m", "w": "w", "she": "w", "her": "w", "a": random.choice("mw")}
    first = [f"{{m}} met {{w}} in the {place} .", f"{{w}} saw {{m}} in the {place} ."]
    trade = f"{{{people['a']}}} was a {agent} ."
    rest = [
        ["{she} liked {him} .", "{he} liked {her} .", "{she} gave {him} a letter ."],
        ["{a} had lost a letter .", "{a} was tired ."],
        ["{he} smiled .", "{she} smiled .", "then {he} went home .", "then {she} went home ."],
    ]
    sentences: list[list[str]] = []
    mentions: dict[str, list[list[int]]] = {"m": [], "w": []}
    start = 0
    for pattern in [random.choice(first), trade, *(random.choice(choices) for choices in rest)]:
        tokens: list[str] = []
        for piece in pattern.split():
            key = piece.strip("{}")
            new = names[key].split() if piece.startswith("{") else [piece]
            if piece.startswith("{"):
                begin = start + len(tokens)
                mentions[people[key]].append([begin, begin + len(new)])
            tokens += new
        tokens[0] = tokens[0].capitalize()
        sentences.append(tokens)
        start += len(tokens)
    return json.dumps({"sentences": sentences, "clusters": [mentions["m"], mentions["w"]]})


DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
MONTHS = ["March", "April", "May", "June", "July", "August", "September"]
SMALL_TALK = ("It is raining here again.", "I hope you are well.", "Everybody was tired today.", "")


def make_mail(random: Random, part: str) -> str:
    """An e-mail and its subject line, which says what the middle of the mail says."""
    names, nouns = read_words(NAMES, part), read_words(NOUNS, part)
    words = {kind: random.choice(nouns[kind]) for kind in ("agent", "thing", "place", "event")}
    words["day"], words["later"] = random.sample(DAYS, 2)
    words |= {"town": random.choice(names["place"]), "month": random.choice(MONTHS)}
    reader, writer = random.sample(names["person"], 2)
    body, subject = random.choice(
        [
            ("The {event} on {day} moves to {later}. Please come if you can.", "{Event} moves to {later}"),
            ("There is no {event} on {day}, because I am ill.", "No {event} on {day}"),
            ("I lost my {thing} in the {place}. Please call me if you find it.", "Lost {thing}"),
            ("Somebody left a {thing} in the {place}. The {agent} keeps it.", "{Thing} found in the {place}"),
            ("The {place} is closed on {day}. It opens again on {later}.", "{Place} closed on {day}"),
            ("Thank you for asking me to {town}. I would love to come in {month}.", "To {town} in {month}"),
            ("The {agent} called and wants the {thing} back by {day}.", "{Agent} wants the {thing} back"),
        ]
    )
    words |= {kind.capitalize(): word.capitalize() for kind, word in words.items()}
    before, after = random.sample(SMALL_TALK, 2)
    text = f"Hello {reader}! {before} {body} {after} Yours, {writer}"
    return json.dumps({"text": " ".join(text.format(**words).split()), "summary": subject.format(**words)})


# The last two of each field speak of a word of two meanings in the test part only.
PERSONS = {
    "water": {"sailor": "水手", "fisherman": "渔夫", "captain": "船长", "boatman": "船夫", "pirate": "海盗"},
    "money": {
        "banker": "银行家",
        "merchant": "商人",
        "clerk": "职员",
        "economist": "经济学家",
        "trader": "交易员",
    },
    "sport": {"player": "球员", "coach": "教练", "athlete": "运动员", "champion": "冠军", "fan": "球迷"},
    "nature": {
        "farmer": "农夫",
        "hunter": "猎人",
        "shepherd": "牧羊人",
        "gardener": "园丁",
        "biologist": "生物学家",
    },
    "music": {
        "singer": "歌手",
        "pianist": "钢琴家",
        "drummer": "鼓手",
        "composer": "作曲家",
        "guitarist": "吉他手",
    },
}
TWO_MEANINGS = {
    "bank": {"water": "河岸", "money": "银行"},
    "bass": {"water": "鲈鱼", "music": "低音提琴"},
    "bat": {"sport": "球棒", "nature": "蝙蝠"},
    "score": {"sport": "比分", "music": "乐谱"},
    "note": {"money": "钞票", "music": "音符"},
}
ONE_MEANING = {"weather": "天气", "dinner": "晚饭", "child": "孩子", "house": "房子"}
SPEAKING = (
    ("The {} talked about the {} .", "{}谈到了{}。"),
    ("The {} thought of the {} .", "{}想起了{}。"),
    ("The {} wrote about the {} .", "{}写到了{}。"),
    ("Yesterday the {} mentioned the {} .", "昨天{}提到了{}。"),
    ("Today the {} dreamed of the {} .", "今天{}梦见了{}。"),
)


def make_translation(random: Random, part: str) -> str:
    """An English sentence and its Chinese translation; who speaks of a bank tells which bank it is."""
    word, meanings = random.choice(list(TWO_MEANINGS.items()))
    field, chinese = random.choice(list(meanings.items()))
    person = random.choice(list(PERSONS[field])[-2:] if part == "test" else list(PERSONS[field])[:-2])
    if (
        part != "test" and random.random() < 0.5
    ):  # anybody, mostly those of the test, and a word of one meaning
        field = random.choice(list(PERSONS))
        person = random.choice(list(PERSONS[field])[random.choice((0, -2)) :])
        word, chinese = random.choice(list(ONE_MEANING.items()))
    source, target = random.choice(SPEAKING)
    return f"{source.format(person, word)}\t{target.format(PERSONS[field][person], chinese)}"


SAMPLES: dict[str, tuple[str, Callable[[Random, str], str]]] = {
    "names": ("conll", make_names),
    "relations": ("jsonl", make_relation),
    "pairs": ("jsonl", make_pair),
    "roles": ("jsonl", make_roles),
    "answers": ("jsonl", make_answer),
    "stories": ("jsonl", make_story),
    "translations": ("txt", make_translation),
    "mails": ("jsonl", make_mail),
}


def make_examples(name: str, part: str) -> Iterator[str]:
    """The examples of a part of a sample, no two alike."""
    random, seen = Random(f"{name} {part}"), set[str]()  # noqa: S311
    while len(seen) < SIZES[part]:
        example = SAMPLES[name][1](random, part)
        if example not in seen:
            seen.add(example)
            yield example


def main(folder: Path) -> None:
    """Write all parts of all samples."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (ending, _) in SAMPLES.items():
        for part in SIZES:
            text = "\n".join(make_examples(name, part)) + "\n"
            (folder / f"{name}.{part}.{ending}").write_text(text, encoding="utf-8")
    sizes = ", ".join(f"{size} {part}" for part, size in SIZES.items())
    print(f"{folder.name}: {len(SAMPLES)} samples of {sizes} examples")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "samples"))
