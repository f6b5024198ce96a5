"""Decides how one message is shown: mended where a provider would refuse it, cut where it is too large.

The transcript keeps every message as it came; what is shown of it is fixed when it is appended. Which messages
belong together is `units.py`'s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from slidemem.messages import Mark, Message, Part, ToolCall, marked, origins

Count = Callable[[Message], int]

EMPTY: Final = "[empty]"  # Anthropic and Bedrock refuse a message without visible content
LEFT_OUT: Final = "[…]"
_A_MARK: Final = Message("user", (Part("text", "[… 1,000 characters left out …]"),))
_MARK: Final = re.compile(r"\n\[… ([0-9]{1,3}(?:,[0-9]{3}){0,3}) characters left out …\]\n")
_TERSE: Final = 64  # below this many characters the mark does not say how much is left out
_WORDS: Final = 16  # characters of a word or two, which can take fewer tokens than a mark


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as a context shows it.

    Attributes:
        message: what is shown; its mark says what we did to it.
        tokens: of it.
        seqs: the transcript's messages that it stands for; none for what we made.
    """

    message: Message
    tokens: int
    seqs: tuple[int, ...]


def mend(message: Message) -> Message:
    """What every provider takes: no lone surrogates, no blank content, arguments that are a JSON object.

    Returns the message itself when nothing has to be mended.
    """
    mended = replace(
        message,
        parts=_visible(tuple(_mend_part(part) for part in message.parts), message),
        tool_calls=tuple(_mend_call(call) for call in message.tool_calls),
        tool_call_id=message.tool_call_id and _whole(message.tool_call_id),
        name=message.name and _whole(message.name),
        id=message.id and _whole(message.id),
        raw=message.raw and _whole_json(message.raw),
    )
    return message if mended == message else marked(mended, "mended", message)


def without_reasoning(message: Message) -> Message:
    """The message without its reasoning blocks; itself when it has none."""
    if not message.reasons:
        return message
    parts = tuple(part for part in message.parts if part.kind != "reasoning")
    return marked(replace(message, parts=_visible(parts, message)), "mended", message)


def without_secrets(message: Message, redact: Callable[[str], str]) -> Message:
    """The message with each of its texts redacted, reasoning and arguments of calls among them."""
    return replace(
        message,
        parts=tuple(
            Part(part.kind, redact(part.text)) if part.kind in {"text", "reasoning"} else part
            for part in message.parts
        ),
        tool_calls=tuple(replace(call, arguments=redact(call.arguments)) for call in message.tool_calls),
        raw=None,
    )


def headed(message: Message, text: str, kind: str, under: str = "") -> Message:
    """The message with a text in front of its content, or below `under` where the content begins with that."""
    first, rest = message.parts[:1], message.parts[1:]
    if first and first[0].kind == "text" and not first[0].source:
        above = under if under and first[0].text.startswith(under) else ""
        below = first[0].text[len(above) :].removeprefix("\n\n") if above else first[0].text
        parts = (Part("text", "\n\n".join(one for one in (above, text, below) if one)), *rest)
    else:
        parts = (Part("text", text), *message.parts)
    return marked(replace(message, parts=parts), kind, message)


def joined(first: Message, second: Message) -> Message:
    """Two messages of one role as one, the texts where they meet separated by an empty line.

    What a message has only once (name, id, the host's own JSON) is the first's, or the second's when the first
    is a note of ours.
    """
    middle = (*first.parts[-1:], *second.parts[:1])
    if len(middle) > 1 and all(part.kind == "text" and not part.source for part in middle):
        middle = (Part("text", f"{middle[0].text}\n\n{middle[1].text}"),)
    merged = replace(
        second if is_note(first) else first,
        parts=(*first.parts[:-1], *middle, *second.parts[1:]),
        tool_calls=(*first.tool_calls, *second.tool_calls),
    )
    kinds = [kind for one in (first, second) if one.mark for kind in one.mark.kinds]
    if not (is_note(first) and is_note(second)):
        kinds = [kind for kind in kinds if kind != "note"]
    of = (*origins(first), *origins(second))
    return replace(merged, mark=Mark(tuple(dict.fromkeys((*kinds, "joined"))), of))


def is_note(message: Message) -> bool:
    """Whether a message is nothing but a note of ours."""
    return message.mark is not None and "note" in message.mark.kinds


def barest(message: Message) -> Message:
    """The least that can be shown of a message: its marks."""
    return _cut(_in_one(message), 0, media=False)


def oversize(tokens: int, limit: int, count: Count) -> bool:
    """Whether what takes `tokens` is cut to `limit`: not for less than the mark of a cut takes itself."""
    return tokens > limit and tokens > limit + count(_A_MARK)


def clamp(messages: Sequence[Message], limit: int, count: Count) -> tuple[Message, ...] | None:
    """The messages cut to at most `limit` tokens together, the largest pieces of text first.

    Every text and every call's arguments longer than one common length is shown head and tail around a mark;
    the length is the greatest that fits, to within a 64th. Media give way to a mark only where the bare marks
    would not fit beside them, and the texts of a message become one only where their marks would not. Reasoning is
    never cut: its signature would not hold.

    Returns:
        As many messages as were given, those that fit untouched being the same objects; None when not even
        the marks fit.
    """
    for media in (True, False):
        length = _greatest_length(messages, limit, count, media=media)
        if length is not None:
            return tuple(_cut(message, length, media=media) for message in messages)
    ones = tuple(map(_in_one, messages))
    length = _greatest_length(ones, limit, count, media=False)
    return None if length is None else tuple(_cut(one, length, media=False) for one in ones)


def _greatest_length(messages: Sequence[Message], limit: int, count: Count, *, media: bool) -> int | None:
    """The greatest length of a piece, in characters, with which all fit; a search in doubling, then halving steps."""

    def fits(length: int) -> bool:
        return sum(count(_cut(message, length, media=media)) for message in messages) <= limit

    longest = max((len(text) for message in messages for text in _pieces(message)), default=0)
    fitting = next((length for length in (0, _WORDS, longest) if fits(length)), None)
    if fitting is None:
        return None
    over = max(fitting + 1, 2 * limit)
    while over < longest and fits(over):
        fitting, over = over, 2 * over
    if over >= longest and fits(longest):
        return longest
    over = min(over, longest)
    while over - fitting > max(1, fitting // 64):
        middle = (fitting + over) // 2
        fitting, over = (middle, over) if fits(middle) else (fitting, middle)
    return fitting


def _in_one(message: Message) -> Message:
    """The message with all that it says in one text, media by their marks; itself where it is one already."""
    said = tuple(_cut_part(part, len(part.text), media=False) for part in message.parts if part.kind != "reasoning")
    if len(said) < 2:  # noqa: PLR2004  # one part is in one
        return message
    thought = tuple(part for part in message.parts if part.kind == "reasoning")
    text = Part("text", "\n".join(part.text for part in said))
    return marked(replace(message, parts=(*thought, text)), "clamp", message)


def _pieces(message: Message) -> tuple[str, ...]:
    texts = tuple(part.text for part in message.parts if part.kind == "text")
    return texts + tuple(call.arguments for call in message.tool_calls)


def _cut(message: Message, length: int, *, media: bool) -> Message:
    parts = tuple(_cut_part(part, length, media=media) for part in message.parts)
    calls = tuple(_cut_call(call, length) for call in message.tool_calls)
    if (parts, calls) == (message.parts, message.tool_calls):
        return message
    return marked(replace(message, parts=parts, tool_calls=calls), "clamp", message)


def _cut_part(part: Part, length: int, *, media: bool) -> Part:
    if part.kind == "text":
        text = shorten(part.text, length)
        return part if text == part.text else Part("text", text)
    if part.kind == "reasoning" or media:
        return part
    return Part("text", f"[{part.kind} left out]")


def _cut_call(call: ToolCall, length: int) -> ToolCall:
    cut = shorten(call.arguments, length)
    if not call.custom:
        cut = json.dumps({"truncated": cut}, ensure_ascii=False)
    return replace(call, arguments=cut) if len(cut) < len(call.arguments) else call


def shorten(text: str, length: int) -> str:
    """Head and tail of a text, some `length` characters of it, around a mark that says what is left out."""
    left_out = len(text) - length
    tail = length // 3
    earlier = _MARK.search(text, length - tail, len(text) - tail)
    gone = left_out + int(earlier[1].replace(",", "")) - len(earlier[0]) if earlier else left_out
    mark = LEFT_OUT if length < _TERSE else f"\n[… {gone:,} characters left out …]\n"
    if left_out <= len(mark):
        return text
    return text[: length - tail] + mark + text[len(text) - tail :]


def _mend_part(part: Part) -> Part:
    text, source = _whole(part.text), _whole_json(part.source)
    return part if text is part.text and source is part.source else Part(part.kind, text, source)


def _mend_call(call: ToolCall) -> ToolCall:
    arguments = _whole(call.arguments)
    if not call.custom:
        arguments = _object(arguments)
    return replace(call, id=_whole(call.id), name=_whole(call.name), arguments=arguments)


def _object(text: str) -> str:
    """The text when it is a JSON object, its escaped surrogates whole; else an object that holds it."""
    try:
        loaded: object = json.loads(text)
        json.dumps(loaded, allow_nan=False)  # NaN and 1e999 are Python's JSON and no provider's
        if isinstance(loaded, dict):
            return _whole_json(text)
    except (ValueError, RecursionError):
        pass
    return json.dumps({"malformed": text}, ensure_ascii=False) if text.strip() else "{}"


def _visible(parts: tuple[Part, ...], message: Message) -> tuple[Part, ...]:
    """The parts without blank texts; a placeholder where nothing is left of a message that needs content."""
    kept = tuple(part for part in parts if part.kind != "text" or part.text.strip())
    if message.role == "assistant" and kept and kept[-1].kind == "text" and not kept[-1].source:
        kept = (*kept[:-1], replace(kept[-1], text=kept[-1].text.rstrip()))  # Anthropic refuses it at a list's end
    bare = all(part.kind == "reasoning" for part in kept)
    if bare and message.role != "system" and not message.tool_calls:
        return (*kept, Part("text", EMPTY))
    return kept


def _whole_json(source: str) -> str:
    """JSON text whose texts are whole; the same when they are."""
    if source.isascii() and "\\u" not in source:
        return source
    loaded = json.dumps(json.loads(source), ensure_ascii=False)
    whole = _whole(loaded)
    return source if whole == loaded else json.dumps(json.loads(whole))


def _whole(text: str) -> str:
    """The text with its surrogates paired, and the replacement character for each lone one."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
