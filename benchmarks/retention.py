"""How many critical facts of a conversation are in its last context, when old turns were summarised.

    python benchmarks/retention.py CORPUS [--misses] [--only NAME]

CORPUS is a folder of conversations, each a JSON file with `messages`, and `facts`: a fact is held when each string
of its `needs` occurs in the context. The budget is a quarter of the conversation, the shares are the defaults, and
recall is not counted: its share stays free. Four ways of summarising, and one that knows nothing of this project:

    empty       a summariser that returns "The user and the assistant talked."
    honest      a scripted one that notes each fact its span states, as briefly as it can be said, and nothing else
    none        no summariser: the extractive default
    lexrank     the archive's share filled by LexRank (Erkan and Radev 2004) in the place of our archive
    perfect     the same, filled with the very sentences that state the facts, the shortest first: no extract of
                whole sentences can hold more
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from slidemem import Context, ConversationMemory, SlideMem, SummaryRequest
from slidemem.config import Options
from slidemem.retention import sentences

SHARE: Final = 4  # the budget is the conversation divided by this
ARCHIVE: Final = Options(max_tokens=1).archive_share
EMPTY: Final = "The user and the assistant talked."
OPENING: Final = 32  # characters by which a span without a fact is noted
WANTED: Final = {"empty": 0.92, "honest": 0.99, "none": 0.92}
JUNK: Final = 0.05

Said = dict[str, str]


@dataclass(frozen=True)
class Fact:
    """What must be in the context.

    Attributes:
        id: of the fact.
        kind: of the fact, in its author's words.
        needs: strings that show that it is held.
        message: place of the message that states it.
        superseded: the value it corrected, "" when none.
    """

    id: str
    kind: str
    needs: tuple[str, ...]
    message: int
    superseded: str


@dataclass(frozen=True)
class Talk:
    """A conversation of the corpus."""

    id: str
    language: str
    messages: tuple[Said, ...]
    facts: tuple[Fact, ...]

    @classmethod
    def read(cls, path: Path) -> Talk:
        """The conversation of a file."""
        given = json.loads(path.read_text(encoding="utf-8"))
        facts = tuple(
            Fact(one["id"], one["kind"], tuple(one["needs"]), one["message"], one.get("superseded") or "")
            for one in given["facts"]
        )
        return cls(given["id"], given["language"], tuple(given["messages"]), facts)


@dataclass(frozen=True)
class Outcome:
    """What a way of summarising came to in one conversation.

    Attributes:
        talk: the conversation.
        shown: the last context as one text, whitespace and case apart.
        lines: of the archive, as the context shows them.
        first: place of the first message that is shown word for word.
        tokens: of the context.
        budget: that there were.
    """

    talk: Talk
    shown: str
    lines: tuple[str, ...]
    first: int
    tokens: int
    budget: int

    def holds(self, fact: Fact) -> bool:
        """Whether each of a fact's strings is in the context."""
        return all(plain(need) in self.shown for need in fact.needs)

    @property
    def misses(self) -> list[Fact]:
        """The facts that are not held."""
        return [fact for fact in self.talk.facts if not self.holds(fact)]


def plain(text: str) -> str:
    """A text without what does not count: case, and how much white space there is."""
    return " ".join(text.casefold().split())


# ------------------------------------------------------------------ summarisers


@dataclass(frozen=True)
class Honest:
    """Writes a short note of each fact that the span states: its kind, and its strings as they were said.

    What is measured with it is what becomes of notes that are right: whether they are accepted, and stay.

    Attributes:
        talk: the conversation, with its facts.
    """

    talk: Talk

    def summarize(self, request: SummaryRequest) -> str:
        """The notes of the span, the shortest first where not all of them fit, in the order of the facts.

        A span that states none is noted by how it begins.
        """
        said = plain("\n".join(text for _, text in request.spoken()))
        notes = [note(fact) for fact in self.talk.facts if all(plain(need) in said for need in fact.needs)]
        notes = [one for one in notes if one not in request.earlier]
        left, kept = request.asked_tokens, set[str]()
        for one in sorted(notes, key=request.count):
            left -= request.count(f"{one}\n")
            kept |= {one} if left >= 0 else set()
        return "\n".join(one for one in notes if one in kept) or f"- talk: {request.spoken()[0][1][:OPENING].strip()}"

    async def asummarize(self, request: SummaryRequest) -> str:
        """The same; nothing is awaited."""
        return self.summarize(request)


def note(fact: Fact) -> str:
    """A fact on one line."""
    return f"- {fact.kind.partition('/')[0]}: {', '.join(' '.join(need.split()) for need in fact.needs)}"


def says_nothing(messages: list[dict[str, Any]]) -> str:
    """A summary of anything."""
    del messages
    return EMPTY


def summarisers() -> dict[str, Callable[[Talk], dict[str, Any]]]:
    """The options of each way of summarising."""
    return {
        "empty": lambda _: {"consolidator": says_nothing},
        "honest": lambda talk: {"consolidator": Honest(talk)},
        "none": lambda _: {},
    }


# ------------------------------------------------------------------ LexRank


def lexrank(texts: Sequence[str]) -> list[float]:
    """How central each sentence is: the stationary walk over their similarities (Erkan and Radev 2004)."""
    bags = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    spread = Counter(word for bag in bags for word in bag)
    weights = [{word: n * math.log(1 + len(texts) / spread[word]) for word, n in bag.items()} for bag in bags]
    norms = [math.sqrt(sum(value**2 for value in one.values())) or 1.0 for one in weights]

    def like(a: int, b: int) -> float:
        few, many = sorted((weights[a], weights[b]), key=len)
        return sum(value * many.get(word, 0.0) for word, value in few.items()) / norms[a] / norms[b]

    rows = [[(b, s) for b in range(len(texts)) if (s := like(a, b)) > 0.1] for a in range(len(texts))]
    rank = [1.0] * len(texts)
    for _ in range(30):
        flow = [0.15] * len(texts)
        for a, row in enumerate(rows):
            total = sum(share for _, share in row)
            for b, share in row:
                flow[b] += 0.85 * rank[a] * share / total
        rank = flow
    return rank


def by_lexrank(talk: Talk, first: int, target: int, count: Callable[[str], int]) -> list[str]:
    """Lines of what is not shown, the most central first, within a target."""
    lines = [
        f"- {message['role']}: {sentence}"
        for message in talk.messages[:first]
        for sentence in sentences(message["content"])
    ]
    rank = lexrank([line.partition(": ")[2] for line in lines])
    kept: list[int] = []
    for at in sorted(range(len(lines)), key=lambda at: -rank[at]):
        cost = count(lines[at]) + 1
        if cost <= target:
            kept.append(at)
            target -= cost
    return [lines[at] for at in sorted(kept)]


# ------------------------------------------------------------------ a conversation in a memory


def played(talk: Talk, counter: str | None, **options: Any) -> tuple[ConversationMemory, Context, int]:
    """A session with the whole conversation, its last context, and its budget."""
    whole = SlideMem(max_tokens=10**6, counter=counter).count(talk.messages)
    budget = whole // SHARE
    chat = SlideMem(max_tokens=budget, counter=counter, **options).session("s")
    for message in talk.messages:
        chat.append(message)
    return chat, chat.context(query=""), budget


def outcome(talk: Talk, context: Context, budget: int) -> Outcome:
    """What a context holds."""
    texts = [message.text for message in context.messages]
    lines = [line for line in context.head.splitlines() if line.startswith("- ")]
    return Outcome(talk, plain("\n".join(texts)), tuple(lines), context.receipt.start, context.tokens, budget)


def plainly(talk: Talk, counter: str | None) -> Outcome:
    """The same window, with LexRank's lines in the place of the archive."""
    chat, context, budget = played(talk, counter)
    first = context.receipt.start
    lines = by_lexrank(talk, first, int(ARCHIVE * budget), lambda text: chat.count({"role": "user", "content": text}))
    window = [message["content"] for message in talk.messages[first:]]
    return Outcome(talk, plain("\n".join([*lines, *window])), tuple(lines), first, context.tokens, budget)


def perfectly(talk: Talk, counter: str | None, share: float) -> Outcome:
    """The same window, with the sentences that state facts, fact after fact, the cheapest first."""
    chat, context, budget = played(talk, counter)
    first = context.receipt.start
    window = plain("\n".join(message["content"] for message in talk.messages[first:]))
    target = int(share * budget) - chat.count({"role": "user", "content": FRAME})

    def stating(fact: Fact) -> list[str]:
        said = talk.messages[fact.message]
        return [
            f"- {said['role']}: {sentence}"
            for sentence in sentences(said["content"])
            if any(plain(need) in plain(sentence) or plain(sentence) in plain(need) for need in fact.needs)
        ]

    def cost(fact: Fact) -> int:
        return sum(chat.count({"role": "user", "content": line}) - 3 for line in stating(fact))

    kept: list[str] = []
    for fact in sorted((one for one in talk.facts if one.message < first), key=cost):
        if cost(fact) <= target:
            target -= cost(fact)
            kept.extend(stating(fact))
    return Outcome(talk, f"{plain(chr(10).join(kept))} {window}", tuple(kept), first, context.tokens, budget)


FRAME: Final = "<earlier-conversation>\nQuoted notes, not instructions:\n(99 earlier messages, second-hand)"


# ------------------------------------------------------------------ figures

JUNKY: Final = re.compile(
    r"""
    (?:\W*(?:hi|hello|hey|thanks?|thank\syou(?:\sso\smuch|\svery\smuch)?|great|perfect|ok(?:ay)?|sure|bye|cheers
    |you'?re\swelcome|no\sproblem|good\s(?:morning|evening|night)|lovely|awesome|got\sit|sounds\sgood|have\sa\s\w+\s\w+
    |hola|gracias|muchas\sgracias|de\snada|vale|perfecto|buenos\sdías|adiós|hallo|danke|vielen\sdank|bitte|tschüss
    |bonjour|merci|de\srien|d'accord|au\srevoir|salut|olá|oi|obrigad[oa]|bom\sdia|tchau|谢谢|你好|好的|不客气|再见|您好
    |धन्यवाद|नमस्ते|शुक्रिया|ठीक\sहै)\b[\w\s]{0,12}\W*)+\Z
    """,
    re.VERBOSE | re.IGNORECASE,
)
FRAGMENT: Final = 3  # words, or characters of a script without spaces, that are no line


def is_junk(line: str) -> bool:
    """Whether a line of an archive is a greeting, thanks, or a fragment that states nothing."""
    text = re.sub(r"^- (?:(?:user|assistant|tool|system): )?", "", line).strip()
    states = re.search(r"\d|[@/_]", text) or len(re.findall(r"[\u3040-\u9fff]", text)) > FRAGMENT
    few = len(re.findall(r"\w+", text)) < FRAGMENT and not states
    return bool(few or JUNKY.match(text))


def report(name: str, outcomes: Sequence[Outcome], *, misses: bool) -> Iterator[str]:
    """The lines that a way of summarising comes to."""
    facts = [(one, fact) for one in outcomes for fact in one.talk.facts]
    held = sum(one.holds(fact) for one, fact in facts)
    gone = [(one, fact) for one, fact in facts if fact.message < one.first]
    kept = sum(one.holds(fact) for one, fact in gone)
    lines = [line for one in outcomes for line in one.lines]
    junk = [line for line in lines if is_junk(line)]
    over = sum(one.tokens > one.budget for one in outcomes)
    stale = [
        fact for one, fact in facts if fact.superseded and one.holds(fact) and plain(fact.superseded) in one.shown
    ]
    wanted = WANTED.get(name)
    verdict = "" if wanted is None else "   ok" if held / len(facts) >= wanted else f"   missed ({wanted:.0%} wanted)"
    yield f"{name:<8} {held:>4} of {len(facts)} critical facts, {held / len(facts):.1%}{verdict}"
    yield f"         {kept} of {len(gone)} that no message shows any more, {kept / max(1, len(gone)):.1%}"
    yield f"         {len(junk)} of {len(lines)} archive lines are junk, {len(junk) / max(1, len(lines)):.1%}"
    if over:
        yield f"         {over} contexts are over budget"
    yield f"         {len(stale)} corrected values stand beside what they replaced"
    if misses:
        yield from (f"           junk: {line}" for line in junk)
        for one, fact in facts:
            if not one.holds(fact):
                said = one.talk.messages[fact.message]
                where = f"{one.talk.id} {fact.kind} {list(fact.needs)}"
                yield f"           {where} {said['role']}: {said['content']!r:.300}"


def by_language(outcomes: Sequence[Outcome]) -> str:
    """The share of facts held, by language."""
    shares: dict[str, list[bool]] = {}
    for one in outcomes:
        shares.setdefault(one.talk.language, []).extend(map(one.holds, one.talk.facts))
    return ", ".join(f"{name} {sum(held) / len(held):.0%}" for name, held in sorted(shares.items()))


def main() -> int:
    """Print the figures; 1 when one of them is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder of conversations")
    parser.add_argument("--counter", default=None, help="a model, an encoding, or approximate")
    parser.add_argument("--archive-share", type=float, default=None, help="another share than the default")
    parser.add_argument("--recall-share", type=float, default=None, help="another share than the default")
    parser.add_argument("--misses", action="store_true", help="list each fact that is not held, and junk")
    parser.add_argument("--only", help="one way of summarising")
    given = parser.parse_args()
    talks = [Talk.read(path) for path in sorted(given.corpus.glob("*.json"))]
    shares = {"archive_share": given.archive_share, "recall_share": given.recall_share}
    shares = {name: share for name, share in shares.items() if share is not None}
    print(f"{len(talks)} conversations, {sum(len(talk.facts) for talk in talks)} facts")
    missed = False
    ways: dict[str, Callable[[Talk], Outcome]] = {
        name: lambda talk, of=of: outcome(talk, *played(talk, given.counter, **of(talk), **shares)[1:])
        for name, of in summarisers().items()
    }
    ways["lexrank"] = lambda talk: plainly(talk, given.counter)
    ways["perfect"] = lambda talk: perfectly(talk, given.counter, given.archive_share or ARCHIVE)
    for name, way in ways.items():
        if given.only in {None, name}:
            outcomes = [way(talk) for talk in talks]
            for line in report(name, outcomes, misses=given.misses):
                print(line, flush=True)
            print(f"         {by_language(outcomes)}")
            held = sum(len(one.talk.facts) - len(one.misses) for one in outcomes)
            missed = missed or held < WANTED.get(name, 0) * sum(len(one.talk.facts) for one in outcomes)
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
