"""Decides what a host's list of messages means for a transcript: what of it stays, and what comes after it.

Pure: keys and messages go in, a plan comes out; carrying it out is `rewind.py`'s. Where a list can be read as
one that only lacks messages and adds some, it is read so, and nothing leaves; only where it cannot, it says that
the conversation went on differently.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, NamedTuple

from slidemem.head import TAG
from slidemem.messages import Message, Part, digest
from slidemem.state import Key

_BLOCKS: Final = re.compile(rf"(?:<{TAG}>\n.*?\n</{TAG}>(?:\n\n|\Z))+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Aligned:
    """What a list means for a transcript.

    Attributes:
        keep: how many messages of the transcript stay.
        new: messages to add after those, with our marks and blocks taken off.
        shared: how many of the transcript's messages the list holds, leading system messages aside.
        made: how many messages of the list were made by us.
        systems: how many leading system messages are not the transcript's; they belong to a call, and to no list.
        shares_nothing: the list is of another conversation: `keep` and `new` put it in the place of this one.
        prompts: the list's leading system messages, where they are others than the transcript holds.
        bare: the list holds no messages but those.
    """

    keep: int
    new: tuple[Message, ...] = ()
    shared: int = 0
    made: int = 0
    systems: int = 0
    shares_nothing: bool = False
    prompts: tuple[Message, ...] = ()
    bare: bool = False


class _Given(NamedTuple):
    """One message of the list.

    Attributes:
        message: without our marks and blocks.
        codes: of what it stands for; one, or several where we joined messages.
        kinds: what we did to messages that the transcript knows.
    """

    message: Message
    codes: tuple[str, ...]
    kinds: tuple[str, ...] = ()


class _Element(NamedTuple):
    """One message that the list stands for: its code, and which message of the list stands for it."""

    code: str
    given: int
    ours: bool


class _Match(NamedTuple):
    """How many messages of the transcript stay, how many elements of the list are taken, how many are the same."""

    keep: int
    taken: int
    shared: int


@dataclass(frozen=True, slots=True)
class _Transcript:
    """The transcript as it is compared: a message said twice in a row with one id stands once.

    Attributes:
        keys: of its messages.
        codes: of them.
        places: where each of them stands, and the transcript's length.
        known: the code of each digest. What looks the same has one code, so that a message equals what is
            shown of it.
    """

    keys: tuple[Key, ...]
    codes: tuple[str, ...]
    places: tuple[int, ...]
    known: Mapping[str, str]

    @classmethod
    def of(cls, keys: Sequence[Key]) -> _Transcript:
        """The transcript of these keys."""
        known = _alike(keys)
        once = _once((key.id, (known[key.digest],)) for key in keys)
        kept = tuple(keys[at] for at in once)
        return cls(kept, tuple(known[key.digest] for key in kept), (*once, len(keys)), known)

    @property
    def begin(self) -> int:
        """Where the first message stands that is no leading system message."""
        return next((at for at, key in enumerate(self.keys) if key.role != "system"), len(self.keys))

    def named(self, id_: str | None) -> list[int]:
        """Where messages with a host's id stand."""
        return [at for at, key in enumerate(self.keys) if id_ and key.id == id_]

    def users(self) -> list[int]:
        """Where the user's messages stand."""
        return [at for at, key in enumerate(self.keys) if key.role == "user"]


def align(keys: Sequence[Key], given: Sequence[Message]) -> Aligned:
    """Find a list in a transcript.

    Args:
        keys: of the whole transcript.
        given: the list: the whole conversation, its end, or a context of ours, with or without new messages.
    """
    transcript = _Transcript.of(keys)
    read = [_read(message, transcript.known) for message in given]
    there = [one for one in read if one is not None]
    made = len(read) - len(there)
    there = [there[at] for at in _once((one.message.id, one.codes) for one in there)]
    leading, conversation = _parted(there) if keys else ([], there)
    prompts = _prompts(transcript)
    systems = sum(one.codes[0] not in prompts for one in leading)
    others = _others(transcript, leading, bare=not conversation)
    if not conversation:
        return Aligned(len(keys), made=made, systems=systems, prompts=others, bare=bool(leading) or not given)
    elements = _in_place(_elements(conversation), transcript)
    match = _matched(transcript, elements, conversation[0])
    if match is None:
        return Aligned(0, _new(there, ()), made=made, shares_nothing=bool(keys))
    match = _at_a_seam(match, elements)
    keep = transcript.places[match.keep]
    left = sorted({element.given for element in elements[match.taken :]})
    said = ((key.id, transcript.known[key.digest]) for key in keys[:keep])
    new = _new([conversation[at] for at in left], said)
    return Aligned(keep, new, match.shared, made, systems, prompts=others)


# ------------------------------------------------------------------ what the list holds


def _alike(keys: Sequence[Key]) -> dict[str, str]:
    """For each digest of the transcript, the one that stands for all that look the same; a union-find."""
    parents: dict[str, str] = {}

    def root(one: str) -> str:
        while parents.setdefault(one, one) != one:
            parents[one] = one = parents[parents[one]]
        return one

    for key in keys:
        parents[root(key.digest)] = root(key.shown)
    return {one: root(one) for one in parents}


def _once(said: Iterable[tuple[str | None, tuple[str, ...]]]) -> list[int]:
    """Places without those whose id and content are their predecessor's."""
    pairs = list(said)
    return [at for at, one in enumerate(pairs) if not (at and one[0] and one == pairs[at - 1])]


def _read(message: Message, known: Mapping[str, str]) -> _Given | None:
    """A message of the list; None when we made it."""
    mark = message.mark
    if mark and not mark.of:
        return None
    plain = replace(message, mark=None, raw=None) if mark else message  # `raw` says what was before our change
    bare = _without_block(plain)
    if mark and all(one in known for one in mark.of):
        return _Given(bare, tuple(known[one] for one in mark.of), mark.kinds)
    if digest(plain) in known:
        bare = plain  # a block that the user quoted is his
    elif bare is not plain and not bare.parts:
        return None
    return _Given(bare, (known.get(digest(bare), digest(bare)),))


def _without_block(message: Message) -> Message:
    """The message without head and quotes in front of its content; itself when there are none."""
    first = message.parts[0] if message.parts and message.role in {"user", "system"} else None
    found = _BLOCKS.match(first.text) if first and first.kind == "text" and not first.source else None
    if first is None or found is None:
        return message
    rest = first.text[found.end() :]
    parts = (*((Part("text", rest),) if rest else ()), *message.parts[1:])
    return replace(message, parts=parts, raw=None)


def _parted(there: Sequence[_Given]) -> tuple[list[_Given], list[_Given]]:
    """The leading system messages, and what follows."""
    first = next((at for at, one in enumerate(there) if one.message.role != "system"), len(there))
    return list(there[:first]), list(there[first:])


def _prompts(transcript: _Transcript) -> set[str]:
    """Codes of the system messages before the first user message."""
    first = next(iter(transcript.users()), len(transcript.keys))
    leading = zip(transcript.keys[:first], transcript.codes, strict=False)
    return {code for key, code in leading if key.role == "system"}


def _others(transcript: _Transcript, leading: Sequence[_Given], *, bare: bool) -> tuple[Message, ...]:
    """The leading system messages of the list, where they are not the transcript's.

    A list with messages may begin at any system message of the transcript; one without is all that there is to be.
    """
    codes = [one.codes[0] for one in leading]
    there = transcript.codes[: transcript.begin]
    said = {code for key, code in zip(transcript.keys, transcript.codes, strict=True) if key.role == "system"}
    same = tuple(codes) == there if bare else said.issuperset(codes)
    return () if same else tuple(one.message for one in leading)


def _elements(conversation: Sequence[_Given]) -> list[_Element]:
    return [_Element(code, at, bool(one.kinds)) for at, one in enumerate(conversation) for code in one.codes]


def _in_place(elements: list[_Element], transcript: _Transcript) -> list[_Element]:
    """The elements with results in the transcript's order, where a context shows those out of place last."""
    tools = {code for key, code in zip(transcript.keys, transcript.codes, strict=True) if key.role == "tool"}
    if not any(element.ours and element.code in tools for element in elements):
        return elements
    results = (list(run) for is_tools, run in groupby(transcript.codes, tools.__contains__) if is_tools)
    orders = {tuple(sorted(codes)): codes for codes in results}
    placed: list[_Element] = []
    for _, run in groupby(elements, lambda element: element.code in tools):
        block = list(run)
        shown = next((at for at in range(len(block), 0, -1) if block[at - 1].ours), 0)  # what follows is the host's
        order = orders.get(tuple(sorted(element.code for element in block[:shown])), [])
        placed.extend((*_ordered(block[:shown], order), *block[shown:]))
    return placed


def _ordered(block: list[_Element], order: Sequence[str]) -> list[_Element]:
    by_code: defaultdict[str, deque[_Element]] = defaultdict(deque)
    for element in block:
        by_code[element.code].append(element)
    return [by_code[code].popleft() for code in order] or block


# ------------------------------------------------------------------ where it stands in the transcript


def _matched(transcript: _Transcript, elements: Sequence[_Element], first: _Given) -> _Match | None:
    """Where the list stands in the transcript; None when it is of another conversation."""
    codes = [element.code for element in elements]
    end = len(transcript.codes)
    lengths = _runs(transcript, codes, first.message.id)
    found = [match for match in (_standing(lengths, transcript.begin), _behind_anchor(transcript, codes)) if match]
    best = max(found, key=lambda match: (match.keep == end, match.taken), default=_Match(0, 0, 0))
    if found and best.keep == end:
        return best
    if best.taken <= 1 and _stands_alone(transcript, elements, first):
        return _Match(end, 1, 1)
    named = transcript.named(first.message.id)
    if named and not any(lengths[at] for at in named):
        return _Match(named[-1], 0, 0)
    if found:
        return best
    return _Match(end, 0, 0) if _is_unshown(transcript, first) else None


def _runs(transcript: _Transcript, codes: Sequence[str], id_: str | None) -> list[int]:
    """For each place, how many messages from there on begin the list; none where the first one's id is elsewhere."""
    lengths = _common(codes, transcript.codes)
    named = {at for at in transcript.named(id_) if lengths[at]}
    return [length if not named or at in named else 0 for at, length in enumerate(lengths)]


def _common(pattern: Sequence[str], text: Sequence[str]) -> list[int]:
    """For each place of a text, how much of a pattern stands there; the Z-function, linear in both."""
    joined = (*pattern, "", *text)
    lengths = [0] * len(joined)
    left = right = 0
    for at in range(1, len(joined)):
        length = min(right - at, lengths[at - left]) if at < right else 0
        while at + length < len(joined) and joined[length] == joined[at + length]:
            length += 1
        if at + length > right:
            left, right = at, at + length
        lengths[at] = length
    return lengths[len(pattern) + 1 :]


def _standing(lengths: Sequence[int], begin: int) -> _Match | None:
    """The match where a run reaches the transcript's end, else the longest one; None where there is none.

    Of several that reach the end the longest; of several equal ones the one at `begin`, else the latest.
    """
    places = [at for at, length in enumerate(lengths) if length]
    reaching = (at for at in places if at + lengths[at] == len(lengths))
    start = next(reaching, max(places, key=lambda at: (lengths[at], at == begin, at), default=None))
    return None if start is None else _Match(start + lengths[start], lengths[start], lengths[start])


def _behind_anchor(transcript: _Transcript, codes: Sequence[str]) -> _Match | None:
    """The match as a window that begins inside a turn: the turn's user message, then what came later in the turn."""
    lengths = _common(codes[1:], transcript.codes)
    opener = ""
    for at, (key, code) in enumerate(zip(transcript.keys, transcript.codes, strict=True)):
        if key.role == "user" or opener != codes[0]:
            lengths[at] = 0
        opener = code if key.role == "user" else opener
    rest = _standing(lengths, transcript.begin)
    return rest and _Match(rest.keep, 1 + rest.taken, 1 + rest.shared)


def _stands_alone(transcript: _Transcript, elements: Sequence[_Element], first: _Given) -> bool:
    """Whether the list begins with the newest user message as we show it where what follows it does not fit."""
    newest = transcript.users()[-1:]
    if not newest or first.codes != (transcript.codes[newest[0]],):
        return False
    return "anchor" in first.kinds or (len(elements) == 1 and bool(first.kinds) and "head" not in first.kinds)


def _is_unshown(transcript: _Transcript, first: _Given) -> bool:
    """Whether contexts show nothing of the transcript, so that a list with its next messages begins after it."""
    if all(key.role == "system" for key in transcript.keys):
        return True
    return first.message.role == "user" and not transcript.users()


# ------------------------------------------------------------------ what is new


def _at_a_seam(match: _Match, elements: Sequence[_Element]) -> _Match:
    """The match without a part of a joined message whose other part is not in it."""
    firsts: dict[int, int] = {}
    for at, element in enumerate(elements):
        firsts.setdefault(element.given, at)
    taken, at = match.taken, len(elements)
    while at > taken:
        at -= 1
        taken = min(taken, firsts[elements[at].given])
    torn = match.taken - taken
    return _Match(match.keep - torn, taken, match.shared - torn)


def _new(given: Iterable[_Given], said: Iterable[tuple[str | None, str]]) -> tuple[Message, ...]:
    """The messages that are added, without those that were said already with the same id."""
    before: set[tuple[str, tuple[str, ...]]] = {(id_, (code,)) for id_, code in said if id_}
    new: list[Message] = []
    for one in given:
        if one.message.id and (one.message.id, one.codes) in before:
            continue
        if one.message.id:
            before.add((one.message.id, one.codes))
        new.append(one.message)
    return tuple(new)
