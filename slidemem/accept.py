"""Decides whether a summariser's answer is a summary: why it is refused, where it is.

It must be shorter than its source and within its target, hold some of the span's facts, be in the span's language,
and be neither its instructions, nor an earlier segment, nor a refusal or an error in the place of an answer.
"""

# ruff: noqa: RUF001  # the letters of several scripts are what it looks for
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from slidemem.extract import Span
from slidemem.language import differ
from slidemem.request import TOLD, SummaryRequest
from slidemem.retention import held, stems

_NO_ANSWER: Final = re.compile(  # how a model begins that does not answer, and a client that passes on an error
    r"""
    [\W_]*(?:
      (?:i\s?'?\s?a?m\s|we\s?'?\s?a?re\s)?(?:very\s|really\s|so\s)?
      (?:sorry\b|afraid\b|unable\sto\b|not\s(?:able|allowed)\sto\b)
    | (?:i|we)\s(?:can't|cannot|can\snot|won't|will\snot|don't|do\snot)\s
      (?:help|assist|summari[sz]e|do|comply|provide|fulfil|continue|process|discuss|have\saccess)
    | as\san?\s(?:ai|artificial|large|language)\b
    | (?:internal\s|server\s|api\s|http\s)*error\b | \w*(?:error|exception):\s | traceback\s\(
    | (?:http/?\S*\s)?[45]\d\d\s(?:bad|unauthor|forbid|not\sfound|too\smany|internal|service|gateway)
    | (?:rate\s?limit|quota)\s(?:exceeded|reached) | request\s(?:timed\sout|failed)
    | <!doctype | <html | [{]\s?"(?:error|detail)"
    | lo\ssiento | no\spuedo | je\ssuis\sdésolé | désolé | je\sne\speux\spas
    | es\stut\smir\sleid | tut\smir\sleid | entschuldigung | ich\skann\s(?:dabei|das|ihnen|dir)\b
    | desculpe | sinto\smuito | não\sposso | mi\sdispiace
    | 抱歉 | 对不起 | 對不起 | 很遗憾 | 我无法 | 我不能 | 申し訳 | できません
    | माफ़\sकीजिए | क्षमा\sकरें | извините | к\sсожалению | عذر
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SHARED: Final = 0.25  # of a summary's words that its source must hold
_QUOTES: Final = 0.5  # of them, where it is made of what was said, though it holds nothing that has a fact's form


def refusal(text: str, request: SummaryRequest, span: Span) -> str:
    """Why a text is not accepted as a summary of its span; "" when it is."""
    if not text:
        return "empty, though the span holds facts" if span.facts else ""
    return next((reason for reason in _reasons(text, request, span) if reason), "")


def _reasons(text: str, request: SummaryRequest, span: Span) -> Iterator[str]:
    """What speaks against a text, looked for one by one."""
    tokens = request.count(text)
    lines = text.splitlines()
    if len(text) >= span.length:
        yield f"as long as what it summarises ({len(text)} of {span.length} characters)"
    if tokens > request.target_tokens:
        yield f"over its target ({tokens} of {request.target_tokens} tokens)"
    if any(told in text for told in TOLD):
        yield "repeats its instructions"
    if _NO_ANSWER.match(text.replace("\u2019", "'")) and lines[0] not in span.text:
        yield f"no summary, but a refusal or an error: {text:.60}"
    quotes = _shares(text, span.text, _QUOTES)
    if span.facts and not quotes and not held(span.facts, text):
        yield f"holds none of the span's {len(span.facts)} facts"
    if not span.facts and not _shares(text, span.text, _SHARED):
        yield "says nothing that the span says"
    if text in request.earlier or frozenset(request.earlier.splitlines()).issuperset(lines):
        yield "repeats an earlier segment"
    if not quotes and differ(span.text, text):
        yield "in another language than the conversation"


def _shares(text: str, source: str, share: float) -> bool:
    """Whether at least this share of a text's words are its source's."""
    said, words = stems(source), stems(text)
    return bool(words) and len(words & said) >= share * len(words)
