"""Generated conversations, from a seed: varied prose with names and numbers in it, chats and agents."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

Said = dict[str, Any]

SHORT: Final = """
a an and are as at be but by can do for he I if in is it me my no not of on or our out she so some the to
up us was we you
"""
WORDS: Final = """
about after again along already among another around because before better between both bring build
careful carry change chapter cheap choose city clean clear close cold coming compare concert contract copy
corner cost could country couple course cover customer daily dance decide deliver dinner doctor document
door draft dream early earth easy email engine enough evening every exactly example extra family fast
father fever field final find flight flower follow friend from garden gave general gift good grow guess
guitar half happy hard have head hear help here history hope hotel hour house idea important inside
interest invoice island journey keep kitchen know large last late learn leave letter level library light
listen little live long look lunch machine make many market maybe meeting member message minute mobile
moment money month more morning mother mountain move much music near need never next night north nothing
number offer office often only open order other over paint paper part party passport pay people perhaps
photo piece place plan platform play please point possible practice prefer printer problem project promise
proposal question quick quiet rain reach read really receipt refund remember rent report rest return
review right river road room school screen season second send server service several share short should
show simple since sister small some song soon sound south spring start station still stop story street
strong study summer support table take talk team tell than that their them then there these they thing
think this those ticket time today together tomorrow train travel tree trip under until update used
vegetarian very visit voice wait walk want warm water weather week well west what when where which while
window winter with without wonder word work would write year yesterday young
"""
NAMES: Final = """
Asha Berlin Carlos Dublin Elena Fatima Geneva Hiroshi Ines Jonas Kyoto Lisbon Mumbai Noor Oslo Pune Quito
Rahul Samira Tomas Ulrike Valencia Wanjiru Xiomara Yusuf Zagreb
"""


class Writer:
    """Writes varied prose, with names and numbers in it, from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._short, self._words, self._names = SHORT.split(), WORDS.split(), NAMES.split()

    def prose(self, words: int) -> str:
        """Sentences of so many words altogether."""
        sentences: list[str] = []
        while words > 0:
            length = min(words, self.rng.randint(5, 14))
            sentences.append(self._sentence(length))
            words -= length
        return " ".join(sentences)

    def output(self, characters: int) -> str:
        """What a tool returns: prose, rows of JSON or lines of a log, of so many characters."""
        line = self.rng.choice((self._sentence, self._json, self._log))
        lines: list[str] = []
        left = characters
        while left > 0:
            lines.append(line(self.rng.randint(5, 14)))
            left -= len(lines[-1]) + 1
        return "\n".join(lines)[:characters].strip()

    def log_uniform(self, low: int, high: int) -> int:
        """A number from `low` to `high`, each order of magnitude as likely."""
        return round(math.exp(self.rng.uniform(math.log(low), math.log(high))))

    def _sentence(self, words: int) -> str:
        text = " ".join(self._word() for _ in range(words))
        return text[:1].upper() + text[1:] + self.rng.choice("...?")

    def _word(self) -> str:
        kind = self.rng.random()
        if kind < 0.05:
            return self.rng.choice(self._names)
        if kind < 0.09:
            return self._number()
        return self.rng.choice(self._short if kind < 0.5 else self._words)

    def _number(self) -> str:
        rng = self.rng
        made = (f"{rng.randint(2, 900)}", f"{rng.randint(1, 23)}:{rng.randint(10, 59)}", f"€{rng.randint(5, 4000)}")
        return rng.choice((*made, f"{rng.choice('ABCDEFGH')}{rng.randint(1000, 99999)}"))

    def _json(self, words: int) -> str:
        row = {"id": self.rng.randint(1, 10**6), "name": self.rng.choice(self._names), "note": self._sentence(words)}
        return json.dumps(row)

    def _log(self, words: int) -> str:
        file = f"/srv/app/{self.rng.choice(self._words)}.py"
        return f"[{self.rng.randint(10**9, 2 * 10**9)}] INFO {file} {self._sentence(words)}"


def chat_of(seed: int, messages: int, words: Callable[[random.Random], float]) -> list[Said]:
    """User and assistant in turn; `words` draws how long each message is."""
    writer = Writer(seed)
    return [
        {"role": ("user", "assistant")[at % 2], "content": writer.prose(max(2, round(words(writer.rng))))}
        for at in range(messages)
    ]


def letter(rng: random.Random) -> float:
    """Words of a message of about 300 characters."""
    return rng.uniform(25, 80)


def remark(rng: random.Random) -> float:
    """Words of a message as LoCoMo's dialogues have them (arXiv:2402.17753): median 20, mean 23, up to some 90."""
    return min(90.0, rng.lognormvariate(3.0, 0.55))


def agent_of(seed: int, rounds: int, characters: tuple[int, int]) -> Iterator[tuple[Said, bool]]:
    """Turns of 1 to 40 tool rounds, some rounds with parallel calls whose results come in any order.

    Args:
        seed: of the texts.
        rounds: of tools, over all turns.
        characters: the least and the most of a result.

    Yields:
        Each message, and whether a prompt is read after it: after a user message and after a round's last result.
    """
    writer = Writer(seed)
    while rounds > 0:
        yield {"role": "user", "content": writer.prose(writer.rng.randint(5, 60))}, True
        turn = min(rounds, writer.rng.choice((1, 1, 2, 3, 5, 8, 40)))
        for left in range(rounds, rounds - turn, -1):
            messages = _round(writer, left, characters)
            yield from ((message, at == len(messages) - 1) for at, message in enumerate(messages))
        rounds -= turn
        yield {"role": "assistant", "content": writer.prose(writer.rng.randint(10, 80))}, False


def _round(writer: Writer, key: int, characters: tuple[int, int]) -> list[Said]:
    """A message with calls and its results."""
    calls = [
        {"id": f"call_{key}_{at}", "type": "function", "function": {"name": "look_up", "arguments": arguments}}
        for at in range(writer.rng.choice((1, 1, 1, 2, 4)))
        for arguments in (json.dumps({"query": writer.prose(6), "page": at}),)
    ]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": writer.output(writer.log_uniform(*characters))}
        for call in calls
    ]
    writer.rng.shuffle(results)
    content = writer.rng.choice((None, writer.prose(8)))
    return [{"role": "assistant", "content": content, "tool_calls": calls}, *results]
