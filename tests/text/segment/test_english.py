"""European text: tokens and sentences."""

import pytest

from polyseme.text.segment import split_sentences, tokenize


def join_tokens(text: str) -> str:
    return " | ".join(token.text for token in tokenize(text, "en"))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("No. 5 No. Never", "No. | 5 | No | . | Never"),
        ("J. Smith J.\n\nSmith J.\fSmith", "J. | Smith | J | . | Smith | J | . | Smith"),
        ("So am I. John am I.John", "So | am | I | . | John | am | I | . | John"),
        ("I. John (I. John", "I. | John | ( | I. | John"),
        ("l'A. Smith", "l' | A | . | Smith"),
        ("p. 5 (p. 6) p.", "p. | 5 | ( | p. | 6 | ) | p | ."),
    ],
)
def test_the_words_around_a_dot_decide_whether_it_belongs_to_its_word(text, tokens):
    assert join_tokens(text) == tokens


def lines(text: str) -> list[str]:
    return [" ".join(token.text for token in sentence) for sentence in split_sentences(text, "en")]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I don't", "I | do | n't"),
        ("It’s we’ve", "It | ’s | we | ’ve"),
        ("I'll they're cannot", "I | 'll | they | 're | can | not"),
        ("CAN'T Cannot won't", "CA | N'T | Can | not | wo | n't"),
        ("shouldn't've", "should | n't | 've"),
        ("O'Brien's o'clock", "O'Brien | 's | o'clock"),
        ("the boys' dogs", "the | boys | ' | dogs"),
        ("l'homme qu’il aujourd'hui", "l' | homme | qu’ | il | aujourd'hui"),
        ("mother-in-law's", "mother-in-law | 's"),
        ("of 'em in the '90s", "of | 'em | in | the | '90s"),
    ],
)
def test_contractions_are_split_and_names_are_not(text, tokens):
    assert join_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("1,234.56 and 3.5%", "1,234.56 | and | 3.5%"),
        ("12/05/2020 at 10:30", "12/05/2020 | at | 10:30"),
        ("the 3rd, 10:30pm", "the | 3rd | , | 10:30pm"),
        ("$5 or €7.50", "$ | 5 | or | € | 7.50"),
        ("-5 to +3 or .5", "-5 | to | +3 | or | .5"),
        ("in 1990.", "in | 1990 | ."),
        ("1990-1995, 6:00-9:30", "1990-1995 | , | 6:00-9:30"),
    ],
)
def test_numbers_dates_and_times_are_whole_and_currency_signs_are_tokens(text, tokens):
    assert join_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("see http://a.com/x?y=1.", "see | http://a.com/x?y=1 | ."),
        ("(www.a.org)", "( | www.a.org | )"),
        ("mail me.too@foo.co.uk, now", "mail | me.too@foo.co.uk | , | now"),
        ("@bob likes #tag!", "@bob | likes | #tag | !"),
        ("#1 a@b", "# | 1 | a | @b"),
        ("example.com v2.0 snake_case", "example.com | v2.0 | snake_case"),
        ("AT&T is U.S.-based", "AT&T | is | U.S.-based"),
    ],
)
def test_addresses_mentions_and_joined_words_are_whole(text, tokens):
    assert join_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("one--two—three", "one | -- | two | — | three"),
        ("Well... yes… no", "Well | ... | yes | … | no"),
        ('He said: "No!" (twice)', 'He | said | : | " | No | ! | " | ( | twice | )'),
        ("and/or; _very_", "and | / | or | ; | _ | very | _"),
        ("Mr. Fox of the U.S. is, e.g., here.", "Mr. | Fox | of | the | U.S. | is | , | e.g. | , | here | ."),
        ("J. R. R. Tolkien", "J. | R. | R. | Tolkien"),
    ],
)
def test_punctuation_marks_are_tokens_and_abbreviations_keep_their_dot(text, tokens):
    assert join_tokens(text) == tokens


@pytest.mark.parametrize(
    "emoji",
    [
        "😀",
        "👨‍👩‍👧",
        "👍🏽",
        "🇬🇧",
        "1️⃣",
        "❤️",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    ],
)
def test_an_emoji_with_its_modifiers_is_one_token(emoji):
    assert [token.text for token in tokenize(f"so{emoji}{emoji}", "en")][-2:] == [
        emoji,
        emoji,
    ] or emoji == "1️⃣"
    assert [token.text for token in tokenize(f"a {emoji} b", "en")] == ["a", emoji, "b"]


@pytest.mark.parametrize(
    "word", ["cafe\u0301", "हिन्दी", "العَرَبِيَّة", "ภาษาไทย", "Ελληνικά", "Москва", "می\u200cخواهم", "한국어"]
)
def test_words_of_any_script_keep_their_combining_marks(word):
    assert [token.text for token in tokenize(f"{word}, {word}.", "en")] == [word, ",", word, "."]


def test_each_han_character_in_european_text_is_a_token():
    assert join_tokens("Beijing (北京) is") == "Beijing | ( | 北 | 京 | ) | is"


def test_a_sentence_ends_at_its_dot_and_not_at_an_abbreviation():
    assert lines("Mr. Fox met Dr. No. He saw the U.S. Army, e.g. tanks. It cost 3.50 then. Fine!") == [
        "Mr. Fox met Dr. No .",
        "He saw the U.S. Army , e.g. tanks .",
        "It cost 3.50 then .",
        "Fine !",
    ]


def test_an_abbreviation_can_end_a_sentence():
    assert lines(
        "He lives in the U.S. It is big. At 5 p.m. Bob left. Cats, dogs, etc. Then Acme Inc. He won."
    ) == [
        "He lives in the U.S.",
        "It is big .",
        "At 5 p.m.",
        "Bob left .",
        "Cats , dogs , etc.",
        "Then Acme Inc.",
        "He won .",
    ]


def test_a_number_decides_whether_no_is_an_abbreviation():
    assert lines("No. 5 lives. No. Never.") == ["No. 5 lives .", "No .", "Never ."]


def test_initials_do_not_end_a_sentence_but_other_single_letters_do():
    assert lines("J. R. R. Tolkien wrote. So am I. John has vitamin C. The end.") == [
        "J. R. R. Tolkien wrote .",
        "So am I .",
        "John has vitamin C .",
        "The end .",
    ]


def test_a_closing_quote_stays_with_its_sentence():
    assert lines('"I go." She left. (He too.) “Really?” Yes.') == [
        '" I go . "',
        "She left .",
        "( He too . )",
        "“ Really ? ”",
        "Yes .",
    ]


def test_a_sentence_continues_in_lower_case_after_a_quoted_question():
    assert lines('"What?" he said. "Go!" cried Ann.') == ['" What ? " he said .', '" Go ! " cried Ann .']


def test_several_end_marks_end_one_sentence():
    assert lines("Who?! Me... You") == ["Who ? !", "Me ...", "You"]


def test_a_sentence_continues_with_i_after_an_ellipsis():
    assert lines("Well... I think so. Yes.") == ["Well ... I think so .", "Yes ."]


def test_a_blank_line_ends_a_sentence_and_a_line_break_does_not():
    assert lines("CHAPTER I\n\nIt was a\nhard-wrapped book.\r\n \r\nThe end") == [
        "CHAPTER I",
        "It was a hard-wrapped book .",
        "The end",
    ]


def test_the_number_of_a_list_item_starts_its_sentence():
    assert lines("3. Results are good. More.") == ["3 . Results are good .", "More ."]


def test_text_without_capitals_is_split_into_sentences():
    assert lines("hello there. how are you? fine") == ["hello there .", "how are you ?", "fine"]


def test_other_scripts_have_their_own_end_marks():
    assert lines("यह है। वह है।") == ["यह है ।", "वह है ।"]
    assert lines("ما هذا؟ هذا كتاب.") == ["ما هذا ؟", "هذا كتاب ."]
    assert lines("« Bonjour ! » Elle part. — Oui. — Non.") == [
        "« Bonjour ! »",
        "Elle part .",
        "— Oui .",
        "— Non .",
    ]
