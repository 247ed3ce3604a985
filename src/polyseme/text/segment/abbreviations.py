"""Lists of abbreviations, whose dot is part of the word, and of words that begin sentences.

    text.segment.abbreviations  ->  text.segment.english

Abbreviations of single letters (U.S., e.g., т.е.) are recognised without a list.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A name or a number follows, so the sentence continues whatever the case of the next word.
NEVER_LAST = _words(
    """
    Mr Mrs Ms Mx Dr Drs Prof Gen Col Lt Capt Cpt Sgt Cpl Maj Cmdr Adm Rev Hon Gov Sen Rep Pres Supt Insp
    Messrs Mme Mlle Mmes Msgr Mgr Mt Ft Hr Frl Sra Srta Dra vs Vs viz cf Cf resp
    e.g i.e z.B им ул св проф акад гл
    """
)

# The sentence continues unless a common first word follows: "Acme Inc. He left" against "Acme Inc. Shares".
MAYBE_LAST = _words(
    """
    St Ste Jr Sr Inc Ltd Co Corp Bros Esq Ave Blvd Rd Dept Univ Assn Assoc dept approx ca al incl
    excl Bd eds bzw vgl evtl ggf inkl Nr Tel Str Ph.D D.Phil M.Sc B.Sc Ed.D Jan Feb Apr Aug Sept Oct Nov
    Dec Mass Calif Conn Penn Ariz Colo Tenn Tex Fla Okla Wis Minn Mich Ala Wash
    """
)

# A capital after these begins a new sentence.
OFTEN_LAST = _words(
    """
    etc Etc usw др руб гг вв a.m p.m A.M P.M т.д т.п т.к
    """
)

# The dot belongs to the word only if a number follows: "No. 5" against "No. Never."
BEFORE_NUMBER = _words(
    """
    No Nos no nos Fig Figs fig figs p pp P Pp vol vols Vol Vols ch Ch chap Chap sec Sec Art art Op op Ex ex
    Eq eq Ser Mar Jun Jul Sep Mon Tue Wed Thu Fri Sat Sun v Bk bk l ll n nn par стр рис табл
    """
)

# Words that begin sentences far more often than they continue a name.
OPENERS = _words(
    """
    The This That These Those He She It They We You I A An In On At By For From With Without To Of As If
    When While Where What Who Whom Whose Which Why How There Here Then Thus Hence So But And Or Nor Yet Not
    No Yes His Her Its Their Our My Your Some Many Most All Each Every Both Several One Two After Before
    Since Until During Although Though Because However Moreover Meanwhile Instead Later Now Today Once Only
    Even Also Another Other Such Is Are Was Were Do Does Did Have Has Had Can Could Will Would Should May
    Might Must Let Perhaps Maybe Well Oh Der Die Das Er Sie Es Wir Ich Le La Les Il Elle Un Une El Los Las В
    На Он Она Они Это И Но А По С
    """
)
