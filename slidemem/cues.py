"""Decides which words are cues that a sentence matters, and by how much.

A cue multiplies what a sentence is worth. The lists are of a dozen languages, English the fullest; the weights were
fitted to conversations in three of them, and rounded. What a user forbids, requires or decides is what is most often
needed later; what an assistant forbids is mostly advice, what it promises is not. `cues=` adds a user's own.
"""

# ruff: noqa: RUF001  # the words of several scripts are what it looks for
from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

WARNS, STATES, FIXES, TELLS, DENIES, BINDS, DECIDES, LABELS, PROMISES, CORRECTS, ORDERS, FORBIDS, LIKES, STRESSES = (
    1 << bit for bit in range(14)
)

# What a cue multiplies a sentence's worth by: in the user's words, and in those of others.
WEIGHTS: Final[dict[int, tuple[float, float]]] = {
    WARNS: (60.0, 4.0),  # not fitted: they are rare, and nothing matters more
    DENIES: (3.5, 1.0),
    DECIDES: (11.0, 1.2),
    BINDS: (2.2, 1.0),
    STATES: (0.75, 1.2),
    LABELS: (2.4, 2.6),
    PROMISES: (1.0, 4.9),
    FIXES: (2.6, 1.0),
    TELLS: (1.1, 1.0),
    CORRECTS: (3.5, 1.0),
    ORDERS: (1.5, 1.0),
    FORBIDS: (3.0, 1.0),
    LIKES: (1.5, 1.2),
    STRESSES: (6.0, 1.0),
}
ALONE: Final = (
    WARNS | DENIES | DECIDES | STATES | FIXES | ORDERS | FORBIDS | LIKES
)  # what a user's sentence matters by without a fact
STRONG: Final = WARNS | DENIES | DECIDES | STATES | BINDS | FORBIDS | LIKES  # what fades slowly

# Patterns in lower case, split at spaces; _ is a space, and a word ends where no * says that it goes on.
_WORDS: Final = {
    "warns": (
        "allerg* alérg* alergi* anaphyla* asthma* celíac* celiac* coeliac* diabet* emergenc* epilep* halal intoleran*"
        " kosher medication* medicine* pregnan* embaraz* schwanger* enceinte vegan* vegetarian* analler*"
    ),
    "corrects": (
        "correction got_(?:it|that)_wrong i_meant? misread misremember* my_mistake scratch_that let_me_correct"
        " changed?_my_mind i_was_wrong sorry,_(?:it's|i|that's|the) no,_(?:it's|i|that's|the|sorry) wait,_(?:it's|no)"
        " make_it(?:_the)? moved_to changed_to is_changed ignore_the"
        " corrijo corrección me_equivoqué quise_decir mejor_dicho no,_es se_cambió lo_cambiaron"
        " korrektur sondern ich_meinte vertan verschoben je_me_suis_trompé* je_voulais_dire plutôt"
        " me_enganei errei quis_dizer corrigindo intendevo mi_sono_sbagliat*"
    ),
    "forbids": (
        "must_not mustn't never not_allowed nothing no_more_than nobody_may no_one_may forbidden"
        " under_no_circumstances"
        " not_to isn't_allowed aren't_allowed may_not can't_have don't_want doesn't_want won't_have"
        " i_won't by_no_means"
        " do_not_(?:ever|use|send|ring|call|touch|delete|put|change|tell)"
        " don't_(?:ever|use|send|ring|call|touch|delete|put"
        "|change|tell|bring|make|let|give|add|ask|mention|move)"
        " nunca jamás prohibid* ni_se_te ni_se_le no_queremos no_quiero no_puede* no_se_puede* de_ninguna_manera"
        " niemals nie auf_keinen_fall darf_nicht dürfen_nicht darf_kein* will_nicht nichts verboten kommt_nicht_in"
        " jamais interdit* ne_doit_pas en_aucun_cas surtout_pas proibid* não_pode* de_jeito_nenhum vietat* mai nooit"
    ),
    "denies": (
        "no not nobody none neither nor without"
        " cannot can't cant don't dont won't wont"
        " do_not isn't aren't doesn't didn't shouldn't wouldn't except"
        " nada ni sin nadie ningun* ningún tampoco salvo kein* nicht ohne niemand"
        " pas rien aucun* sans não nem sem nenhum* ninguém non niente senza nessun* niet geen"
    ),
    "likes": (
        "hate* loathe* dislike* favou?rite* prefer* can't_stand cannot_stand don't_like doesn't_like love i'd_rather"
        " rather_than prefier* prefir* odi* odio le_gusta me_gusta mag möchte* lieber hasse* préfèr* déteste* détest*"
        " gosto adoro detest*"
    ),
    "decides": (
        "decid* decis* go_with going_with going_for settled agreed we'll_take i'll_take let's_do it_is_final chosen"
        " booked confirmed signed ordered vamos_con nos_quedamos quedamos_en décid* entschied* entscheid* wir_nehmen"
        " on_prend fechado ficamos_com decis* abbiamo_scelto"
    ),
    "binds": (
        "must only have_to has_to had_to needs_to need_to required mandatory at_least at_most maximum minimum max min"
        " limit no_more_than no_later_than up_to deadline* due budget* before by_the until unless expire* exactly"
        " solo sólo únicamente tiene*_que tengo_que hay_que debe* obligat* máximo mínimo tope presupuesto antes_de"
        " hasta muss müssen nur mindestens höchstens spätestens vor il_faut doit doivent seulement au_moins au_plus"
        " avant tem_que precisa* deve* apenas só no_máximo orçamento solo_se deve devono almeno entro"
    ),
    "labels": (
        "code number ref reference serial ticket order_(?:number|no) booking account plate policy invoice"
        " password* pin login código número matrícula patente referencia contraseña cédula kundennummer nummer"
        " aktenzeichen kennzeichen passwort numéro référence senha"
    ),
    "promises": (
        "i'll i_will we'll we_will promise* guarante* prometo prometemos promet* garanti* ich_werde wir_werden"
        " versprech* je_vais nous_allons vou vamos"
    ),
    "states": (
        "always birthday* born_on born_in call_me calls_me my_name name's name_is named answers_to"
        " goes_by from_now_on"
        " instead no_longer remember* remind_me don't_forget me_llamo se_llama soy_el soy_la ich_heiße"
        " heißt je_m'appelle"
        " s'appelle me_chamo se_chama mi_chiamo siempre sempre immer toujours gern*"
    ),
    "orders": (
        "please want wants use keep need needs would_like i'd_like make_sure it's_called rule rules"
        " quiero quiere queremos necesito necesita por_favor porfa usa debería bitte brauche brauchen"
        " will wollen soll"
        " sollen veux voudrais s'il_vous_plaît faut quero queremos preciso voglio vorrei graag"
    ),
    "tells": (
        "i my me mine our we us eu meu meus minha minhas nosso nossa nossos nossas tenho sou yo mi mis tengo soy"
        " nuestro nuestra je mon mes nous notre ich mein meine meinen wir unser unsere"
    ),
    "owns": "his her their",
}
_BITS: Final = {
    "warns": WARNS,
    "corrects": CORRECTS,
    "denies": DENIES,
    "decides": DECIDES,
    "binds": BINDS,
    "labels": LABELS,
    "promises": PROMISES,
    "states": STATES,
    "tells": TELLS,
    "orders": ORDERS,
    "forbids": FORBIDS,
    "likes": LIKES,
    "owns": 0,
}
_STRESSED: Final = DENIES | FORBIDS | BINDS  # words that are meant when they are shouted
_BEING: Final = re.compile(r"\s(?:[\w-]{1,20}\s){1,5}?(?:is|are|was|were|runs|ends)\b")
_POSSESSIVES: Final = frozenset(("my", "our", "his", "her", "their"))
_FAR: Final = re.compile("[\u0400-\u04ff\u0600-\u06ff\u0900-\u097f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_FAR_CUES: Final = {
    WARNS: re.compile(
        "एलर्जी|शाकाहारी|मधुमेह|गर्भ|दवा|过敏|過敏|素食|糖尿病|怀孕|孕|アレルギー|аллерги|диабет|беремен|حساسية|السكري|알레르기"
    ),
    DENIES: re.compile(
        "नहीं|मत(?!लब)|कभी न|बिना|न हो|[不别勿没未禁]|千万|ない|ません"
        "|(?<![а-я])(?:не|нет|ни|без|никогда|нельзя)(?![а-я])"
        "|(?<!\\w)(?:لا|ليس|بدون|لن|ممنوع)(?!\\w)|안 |않|없|말고|금지"
    ),
    FORBIDS: re.compile(
        "मत(?!लब)|कभी न|नहीं चाहिए|नहीं करना|मना है|不能|不许|不要|不准|千万|禁|别|勿|不吃|しないで|禁止"
        "|нельзя|никогда|ممنوع|금지|말고"
    ),
    LIKES: re.compile("पसंद|नफ़रत|नफरत|喜欢|讨厌|最爱|好き|嫌い|люблю|ненавижу|предпоч|أحب|أكره|أفضل|좋아|싫어"),
    DECIDES: re.compile(
        "तय |फ़ैसला|फैसला|पक्का|决定|定了|就这么|说好|商量好|那就|決め|決定|решил|договорил|اتفقنا|قررت|결정|정했"
    ),
    BINDS: re.compile(
        "ज़रूरी|जरूरी|सिर्फ|सिर्फ़|केवल|चाहिए|कम से कम|ज़्यादा से ज़्यादा|से पहले|तक |बजट"
        "|必须|务必|一定|只|至少|最多|不超过|以内|之前|预算|上限"
        "|必ず|だけ|まで|以内|予算|только|должн|надо|нужно|до "
        "|не позже|максимум|минимум|бюджет|يجب|فقط|قبل|ميزانية|반드시|만 |까지|예산"
    ),
    STATES: re.compile("हमेशा|वादा|याद रख|जन्मदिन|नाम है|总是|生日|希望|叫|всегда|зовут|دائما|항상"),
    ORDERS: re.compile(
        "चाहिए|चाहता|चाहती|रखना|करना|कृपया|请|想要|我要|得|用|नियम|пожалуйста|хочу|أريد|주세요|ください"
    ),
    LABELS: re.compile(
        "नंबर|कोड|पासवर्ड|编号|号码|单号|订单|代码|密码|账号|番号|номер|код|пароль|رقم|رمز|كود|번호|코드"
    ),
    PROMISES: re.compile(
        "वादा|दूँगा|दूंगा|दूँगी|दूंगी|भेज|保证|答应|承诺|我来|给您|为您|お約束|обеща|гарантир|сделаю|أعدك|سوف|سأ|약속|드리겠"
    ),
    CORRECTS: re.compile(
        "गलती|ग़लत|गलत|मतलब|बल्कि|की जगह|不对|说错|记错|听岔|看错|更正|改成|改到|改为|搞错|而不是|不是"
        "|間違|訂正|じゃなくて|ошиб|точнее|вернее"
        "|а не|عفوا|أقصد|غلطت|아니라|정정"
    ),
    TELLS: re.compile(
        "मैं|मेर|मुझे|हमार|मला|माझ|我|私|僕|(?<![а-я])(?:я|мне|мой|моя|мои|у нас|наш)(?![а-я])|أنا|عندي|나는|제가|저는"
    ),
}


class Cue(NamedTuple):
    """A user's own sign that a sentence matters.

    Attributes:
        pattern: what to look for in a sentence, lower case or not.
        weight: what it multiplies the sentence's worth by; a number multiplies it by 4, an identifier by 25.
    """

    pattern: re.Pattern[str]
    weight: float


def _any_of(listed: str) -> str:
    """A pattern for the words of a list, grouped by first letter, which is faster."""
    by_letter: dict[str, list[str]] = {}
    for word in listed.split():
        rest = word[1:].replace("_", " ")
        by_letter.setdefault(word[0], []).append(rest[:-1] if word.endswith("*") else rf"{rest}(?!\w)")
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in by_letter.items())


_CUES: Final = re.compile(
    r"(?<!\w)(?:{})".format("|".join(f"(?P<{name}>{_any_of(words)})" for name, words in _WORDS.items()))
)


def cues_at(line: str, starts: Sequence[int]) -> Mapping[int, int]:
    """The cues of each sentence, by its place; the sentences start there."""
    cues: defaultdict[int, int] = defaultdict(int)
    lower = line.replace("’", "'").replace("İ", "I").lower()  # of the same length
    for match in _CUES.finditer(lower):
        bits = _BITS[match.lastgroup or ""]
        if bits & _STRESSED and line[match.start() : match.end()].isupper() and match.end() - match.start() > 1:
            bits |= STRESSES
        if match[0] in _POSSESSIVES and _BEING.match(lower, match.end()):
            bits |= FIXES
        cues[place(starts, match.start())] |= bits
    if not line.isascii() and _FAR.search(line):
        for bit, pattern in _FAR_CUES.items():
            for match in pattern.finditer(line):
                cues[place(starts, match.start())] |= bit
    return cues


def place(starts: Sequence[int], position: int) -> int:
    """The sentence that holds a position."""
    return max(0, bisect_right(starts, position) - 1)


def strength(bits: int, *, user: bool) -> float:
    """What cues multiply a sentence's worth by."""
    worth = 1.0
    for bit, (own, others) in WEIGHTS.items():
        if bits & bit:
            worth *= own if user else others
    return worth
