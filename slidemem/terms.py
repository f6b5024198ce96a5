"""Decides what a text is found by: words without endings, pairs of CJK characters, identifiers whole and in parts.

Nothing here is a query language: a question is cut like any other text. What a term is worth is `recall.py`'s.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from slidemem.remembered import remembered

_MOST: Final = 1_000  # distinct terms of a message
_ASKED: Final = 256  # distinct terms of a question
_QUESTIONS: Final = 64  # that are remembered: names of speakers, and what is asked right now
_LONGEST: Final = 64  # characters of a term
_READ: Final = 200_000  # characters of a text; what stands behind them is not found by its words
_STEM: Final = 6  # letters that words of one family share; measured against 5, 7 and the whole word
_FOLDS: Final = 20_000  # characters whose plain form is remembered
_SHORT: Final = 3  # letters of a word that has no ending,
_PLURAL, _ADVERB = 4, 5  # that does not end in -ies, and in -ly
_VOWELS: Final = frozenset("aeiouy")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# What says nothing of what a text is about, with the short forms that it takes.
_FUNCTION_WORDS: Final = _set(
    """
    a an the this that these those i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves one ones
    who whom whose which what when where why how
    am is are was were be been being do does did doing done have has had having
    can could will would shall should may might must ought
    and or but nor so if then than because as until while though although
    of at by for with about against between into through during before after above below to from
    up down in out on off over under again further once here there
    all any both each few more most other some such no not only own same too very just also
    im ive id ill youre youve youd youll hes shes weve wed theyre theyve theyd theyll thats theres whats wheres
    whos hows lets isnt arent wasnt werent dont doesnt didnt havent hasnt hadnt cant couldnt wont wouldnt
    shouldnt mustnt aint
    """
)
# What people say to each other whatever they talk about: found like any word, but no reason to look back.
_TALK: Final = _set(
    """
    thank thanks thx cheers welcome please pls sorry pardon excuse apologies hi hello hey greetings bye goodbye
    morning afternoon evening night tonight goodnight
    yes yeah yep no nope nah ok okay alright right sure fine agree agreed exactly indeed absolutely definitely
    certainly totally course true wrong
    good great nice cool awesome amazing wonderful lovely perfect excellent fantastic brilliant super bad better best
    worse worst well interesting funny fun glad happy sad tired bored hungry busy ready crazy old
    haha hahaha hehe lol lmao wow whoa ooh oh ah aha hm hmm hmmm um uh ugh oops yay huh
    really actually maybe perhaps probably anyway btw still already yet even ever never always often sometimes else
    quite rather pretty later soon now today tomorrow yesterday weather joke jokes
    know think thought guess mean means believe suppose wonder understand see look hear heard listen catch
    say says said saying tell told talk talking speak ask answer repeat continue explain
    want need like love hope wish try feel seem sound sounds prefer
    go goes going gone went come came get gets getting got let lets make makes made take took give gave put keep stop
    start wait hold move bring happen happened leave
    thing things something anything nothing everything stuff someone anyone everyone somebody anybody nobody way lot
    bit kind sort moment minute second hour time times day days week weekend month year while
    much many little big small new young first last next another back away around ahead long short quick far
    mind matter problem worry point sense word words question name help care break sleep
    monday tuesday wednesday thursday friday saturday sunday
    bitte danke hallo merci bonjour salut gracias hola favor obrigado obrigada ola ciao grazie namaste
    """
)

_SIGNS: Final = "\u0900-\u0dff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"  # scripts whose vowels are no letters
_UNSPACED: Final = (
    "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
# What joins and what is joined share no character, so no text makes these go back.
_TOKEN: Final = re.compile(rf"[\w{_SIGNS}]+(?:[-.@/\\:+#&']+[\w{_SIGNS}]+|(?<=\d),\d+)*(?:\+\+|\#(?!\w))?")
_BETWEEN: Final = re.compile(r"[-.@/\\:+#&'_]+")
_DENSE: Final = re.compile(f"[{_UNSPACED}]")
_RUNS: Final = re.compile(f"([{_UNSPACED}]+)")


@dataclass(frozen=True, slots=True)
class Terms:
    """What a message is found by.

    Attributes:
        counts: how often it says each term; at most 1,000 terms of at most 64 characters.
        length: of the message in words, function words counted in; of a script without spaces in pairs.
    """

    counts: Mapping[str, int]
    length: int


def terms(text: str) -> Terms:
    """The terms of a message's text; its first 200,000 characters are read."""
    words = _words(text)
    counts: dict[str, int] = {}
    for word in words:
        for term in _known(word) if len(word) <= _LONGEST else _cut(word):
            counts[term] = counts.get(term, 0) + 1
    length = max(len(words), sum(counts.values()))
    if len(counts) > _MOST:
        counts = dict(islice(counts.items(), _MOST))
    return Terms(counts, length)


@remembered(_QUESTIONS)
def asked(text: str) -> tuple[str, ...]:
    """The distinct terms of a question, in their order; at most 256. Remembered, as each step of a recall asks."""
    return tuple(islice(terms(text).counts, _ASKED))


@remembered(_QUESTIONS)
def telling(text: str) -> frozenset[str]:
    """Those of a question's terms that say what it is about, without the words of any talk."""
    said = (token for word in _words(text) for token in _TOKEN.findall(word))
    return frozenset(term for token in said if _TALK.isdisjoint(_plainer(token)) for term in _of(token))


def _plainer(token: str) -> tuple[str, str]:
    """A word as it is said, and without the ending of a plural or a third person."""
    word = token.removesuffix("'s")
    return word, _singular(word)


def among(text: str, sought: Collection[str]) -> list[str]:
    """Which of the terms that are sought a short text says, each once, in its order."""
    said = (term for word in _words(text) for term in (_known(word) if len(word) <= _LONGEST else _cut(word)))
    return list(dict.fromkeys(term for term in said if term in sought))


def may_say(text: str, sought: Collection[str]) -> bool:
    """Whether a text may say one of these terms: False is certain, and costs little.

    A word begins as its term does but for the term's last letter, whatever endings it has; numbers have no commas.
    """
    plain = _folded(text).replace(",", "")
    return any((term[:-1] or term) in plain for term in sought)


def _words(text: str) -> list[str]:
    """What stands between spaces, in lower case and without diacritics."""
    return _folded(text).split()


def _folded(text: str) -> str:
    """A text in lower case and without diacritics, as far as it is read."""
    text = text[:_READ]
    return text.lower() if text.isascii() else text.translate(_PLAINER)[:_READ]


class _Plainer(dict[int, str]):
    """The plain form of each character: lower case, no diacritics, a space for signs that are not ASCII."""

    def __missing__(self, code: int) -> str:
        plain = _plain(chr(code))
        if len(self) < _FOLDS:  # a bound on memory, whatever is said
            self[code] = plain
        return plain


_PLAINER: Final = _Plainer(
    zip(map(ord, "\u2019øØłŁ\u0131"), "'oolli", strict=True)
)  # that Unicode does not take apart


def _plain(character: str) -> str:
    if character.isascii():
        return character.lower()
    kind = unicodedata.category(character)
    if kind[0] in "PSZ":
        return " "
    if kind == "Cf" or _is_diacritic(character):
        return ""
    apart = unicodedata.normalize("NFKD", character.casefold())
    return unicodedata.normalize("NFC", "".join(one for one in apart if not _is_diacritic(one))).lower()


def _is_diacritic(character: str) -> bool:
    """Whether it is an accent, or a vowel sign of Hebrew or Arabic, that writers leave out."""
    return unicodedata.category(character) == "Mn" and (character < "\u0900" or "\u1ab0" <= character < "\u2100")


def _cut(word: str) -> tuple[str, ...]:
    """The terms of what stands between two spaces."""
    if word.isalnum() and word.isascii():
        return () if word in _FUNCTION_WORDS else (_stem(word),)
    return tuple(term for token in _TOKEN.findall(word) for term in _of(token))


_known = remembered(32_768)(_cut)


def _of(token: str) -> tuple[str, ...]:
    """The terms of a word, or of words with signs between them: whole, and its parts."""
    if token.replace("'", "") in _FUNCTION_WORDS:
        return ()
    whole = token.removesuffix("'s").replace(",", "")
    parts = tuple(term for part in _BETWEEN.split(whole) for term in _word(part))
    is_one = "'" in whole or not _BETWEEN.search(whole.strip("_"))
    return parts if is_one or len(whole) > _LONGEST else (whole, *parts)


def _word(word: str) -> tuple[str, ...]:
    if not word.isascii() and _DENSE.search(word):
        return tuple(term for run in _RUNS.split(word) if run for term in _run(run))
    return () if not word or word in _FUNCTION_WORDS else (_stem(word),)


def _run(run: str) -> tuple[str, ...]:
    if _DENSE.match(run):
        return tuple(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return _word(run)


def _stem(word: str) -> str:
    """A word without its endings; numbers and identifiers whole, letters outside English only shortened."""
    if not word.isalpha():
        return word[:_LONGEST]
    if word.isascii() and len(word) > _SHORT:
        word = _bare(_singular(word))
    return word[:_STEM]


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > _PLURAL:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _bare(word: str) -> str:
    """Without -ing, -ed and -ly, a silent e and a doubled consonant; y as i."""
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= _SHORT and not _VOWELS.isdisjoint(root):
            word = root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
            break
    else:
        word = word[:-2] if word.endswith("ly") and len(word) > _ADVERB else word
    if len(word) > _SHORT and word[-1] in "ye":
        return word[:-1] + "i" if word[-1] == "y" else word[:-1]
    return word
