# ruff: noqa: RUF001  # Chinese has its own signs
"""Decides which conversations every memory is given: messages in OpenAI format, generated or written for us."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from speech import Said, Writer, agent_of, chat_of, remark

import slidemem

DATA: Final = Path(slidemem.__file__).parent / "data" / "travel_support.json"
CORPUS: Final = Path(__file__).parent.parent / "conversations" / "measured"
LATER: Final = (20, 120)  # turns between what is said and the question about it


@dataclass(frozen=True)
class Talk:
    """A conversation.

    Attributes:
        name: of it.
        messages: in OpenAI format, without a system prompt: LlamaIndex's engines keep theirs outside the memory.
        tools: whether tools are called in it.
        needed: for the place of a user message, texts that its answer needs.
    """

    name: str
    messages: tuple[Said, ...]
    tools: bool = False
    needed: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def turns(self) -> int:
        """User messages."""
        return sum(message["role"] == "user" for message in self.messages)


@dataclass(frozen=True)
class Sizes:
    """How much is played.

    Attributes:
        chat: turns of a chat.
        rounds: of tools.
        logs: turns of a chat with pasted logs.
        whole: messages after which the full history is given up: each of its prompts is longer than the last.
    """

    chat: int
    rounds: int
    logs: int
    whole: int


FULL: Final = Sizes(300, 2_000, 100, 400)
QUICK: Final = Sizes(100, 40, 40, 200)


def asks(messages: Sequence[Said]) -> Iterator[tuple[int, bool]]:
    """Each message's place, and whether a model is called after it: after a user's, and after the last result."""
    for at, message in enumerate(messages):
        following = messages[at + 1]["role"] if at + 1 < len(messages) else ""
        yield at, message["role"] == "user" or (message["role"] == "tool" and following != "tool")


def tagged(messages: Sequence[Said]) -> tuple[Said, ...]:
    """The messages between tags of their own, so that each can be told apart wherever it turns up."""
    return tuple(
        {**message, "content": f"[{at:06d}: {message['content']} :{at:06d}]"} for at, message in enumerate(messages)
    )


def chat(sizes: Sizes) -> Talk:
    """Ordinary chat: remarks as long as LoCoMo's dialogues have them."""
    return Talk("chat", tuple(chat_of(51, 2 * sizes.chat, remark)))


def asked(sizes: Sizes) -> Talk:
    """A chat in which each turn tells a fact, and asks about one that was told 20 to 120 turns ago."""
    rng, writer = random.Random(52), Writer(53)
    things = [f"{place} {kind}" for place in PLACES for kind in KINDS]
    messages: list[Said] = []
    needed: dict[int, tuple[str, ...]] = {}
    facts: list[tuple[str, str]] = []
    for turn in range(sizes.chat):
        number, around = divmod(turn, len(things))
        thing = f"{things[around]}{f' {number + 1}' if number else ''}"
        facts.append((thing, f"The code of the {thing} is {rng.choice('ABCDEFGH')}{rng.randint(10_000, 99_999)}."))
        text = f"{writer.prose(8)} {facts[-1][1]}"
        if turn >= LATER[0]:
            about, fact = facts[turn - rng.randint(LATER[0], min(turn, LATER[1]))]
            text += f" What was the code of the {about}?"
            needed[len(messages)] = (fact,)
        messages.append({"role": "user", "content": text})
        messages.append({"role": "assistant", "content": writer.prose(20)})
    return Talk("asked", tuple(messages), needed=needed)


PLACES: Final = [
    "cellar",
    "attic",
    "garage",
    "kitchen",
    "library",
    "workshop",
    "greenhouse",
    "boathouse",
    "chapel",
    "bakery",
    "stable",
    "dairy",
    "mill",
    "foundry",
    "observatory",
    "archive",
    "infirmary",
    "laundry",
    "pantry",
    "studio",
    "orchard",
    "vineyard",
    "harbour",
    "tower",
]
KINDS: Final = ("door", "locker", "safe", "gate", "alarm", "bicycle", "cupboard", "hatch")


def agent(sizes: Sizes) -> Talk:
    """An agent: turns of 1 to 40 tool rounds, parallel calls.

    A result takes 10 to 500 tokens; every fifth one 10 to 20,000, each order of magnitude as often.
    """
    messages = [message for message, _ in agent_of(54, sizes.rounds, (40, 80_000))]
    results = itertools.count()
    for at, message in enumerate(messages):
        if message["role"] == "tool" and next(results) % 5:
            messages[at] = {**message, "content": message["content"][:2_000].strip()}
    return Talk("agent", tuple(messages), tools=True)


def logs(sizes: Sizes) -> Talk:
    """Support: every seventh user message pastes a log of some 250 to 10,000 tokens."""
    writer = Writer(55)
    messages: list[Said] = []
    for turn in range(sizes.logs):
        question = writer.prose(round(remark(writer.rng)) + 4)
        if turn % 7 == 3:
            pasted = round(math.exp(writer.rng.uniform(math.log(1_000), math.log(40_000))))
            question += f"\n\n{writer.output(pasted)}"
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": writer.prose(round(remark(writer.rng)) + 10)})
    return Talk("logs", tuple(messages))


def chinese(sizes: Sizes) -> Talk:
    """A Chinese chat, put together from phrases of ours."""
    rng = random.Random(56)
    messages: list[Said] = []
    for turn in range(sizes.chat // 2):
        city, when, number = (
            rng.choice(CITIES),
            f"{rng.randint(6, 22)}点{rng.randint(10, 59)}分",
            rng.randint(100, 999),
        )
        ask = rng.choice(ASKING).format(city=city, when=when, number=number, turn=turn + 1)
        say = "".join(
            rng.choice(SAYING).format(city=city, when=when, number=number) for _ in range(rng.randint(1, 3))
        )
        messages.append({"role": "user", "content": ask})
        messages.append({"role": "assistant", "content": say})
    return Talk("chinese", tuple(messages))


CITIES: Final = ("杭州", "成都", "青岛", "昆明", "西安", "厦门", "苏州", "大连")
ASKING: Final = (
    "我想在{when}到{city}，坐{number}次车来得及吗？这是第{turn}个问题。",
    "请记下：我在{city}的房间号是{number}，{when}以前不能入住。第{turn}条。",
    "{city}那边的朋友说第{turn}天会下雨，我们是不是应该改到{when}出发？",
    "第{turn}次问：{city}有没有离车站近、又安静的旅馆，价格不超过{number}元？",
)
SAYING: Final = (
    "可以，{number}次车{when}到{city}，不过要提前半小时进站。",
    "已经记下了，{city}，房间{number}。",
    "天气预报说{city}有小雨，{when}以后会停，带伞就行。",
    "我查到三家，最近的一家离车站{number}米，早餐到{when}为止。",
)


def travel() -> Talk:
    """The sample conversation of the package: tools, a long stack trace, five weeks."""
    given = json.loads(DATA.read_text(encoding="utf-8"))
    messages = tuple(message for message in given["messages"] if message["role"] != "system")
    turns = [at for at, message in enumerate(messages) if message["role"] == "user"]
    needed: dict[int, tuple[str, ...]] = {}
    for fact in given["facts"]:
        place = turns[fact["needed_in"] - 1]
        needed[place] = (*needed.get(place, ()), fact["needle"])
    return Talk("travel", messages, tools=True, needed=needed)


def generated(sizes: Sizes) -> list[Talk]:
    """Every conversation that is always there."""
    return [chat(sizes), asked(sizes), logs(sizes), chinese(sizes), travel(), agent(sizes)]


def of_dialogue(name: str, said: Sequence[Any]) -> Talk:
    """A dialogue of LoCoMo as a conversation; neighbours of one speaker are joined, so that roles alternate."""
    messages: list[Said] = []
    for one in said:
        if messages and messages[-1]["role"] == one["role"]:
            messages[-1]["content"] += f"\n{one['content']}"
        else:
            messages.append({"role": one["role"], "content": one["content"]})
    return Talk(name, tuple(messages))
