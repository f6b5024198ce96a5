"""A real chain: prompt template, chat model, parser; three sessions at once, one process killed and resumed."""

# no token here is a password

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from lc_scripted import Echo, faults

from langchain_slidemem import LangChainCodec, SlidingChatMessageHistory, with_sliding_memory
from slidemem import SlideMem

HERE = Path(__file__).parent
LIMIT = 400
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "You book trains."), MessagesPlaceholder("history"), ("human", "{question}")]
)


def chain(store: str, model: Echo) -> Any:
    """The chain over a store."""
    mem = SlideMem(max_tokens=LIMIT, counter="approximate", store=store)
    return with_sliding_memory(
        PROMPT | model | StrOutputParser(), mem, input_messages_key="question", history_messages_key="history"
    )


def config(session: str) -> Any:
    """For a session."""
    return {"configurable": {"session_id": session}}


def question(session: str, n: int) -> str:
    """The n-th question of a session."""
    return f"Please book seat {n}A for {session}, reference {session}-{n:03}." + " Thank you." * (n % 7)


def test_two_hundred_turns_in_three_sessions_at_once(tmp_path: Path) -> None:
    """Every prompt is valid and within the budget, and every word of three conversations is kept apart."""
    model, codec = Echo(), LangChainCodec()
    memory = SlideMem(max_tokens=LIMIT, counter="approximate")
    talking = chain(f"sqlite:///{tmp_path / 'chat.db'}", model)

    async def talk(session: str) -> None:
        for n in range(200):
            if n % 3:
                await talking.ainvoke({"question": question(session, n)}, config(session))
            else:
                [chunk async for chunk in talking.astream({"question": question(session, n)}, config(session))]

    async def all_of_them() -> None:
        await asyncio.gather(*(talk(session) for session in ("meera", "asha", "tomas")))

    asyncio.run(all_of_them())

    assert 600 == len(model.seen)
    assert [] == [fault for given in model.seen[::7] for fault in faults(given)]
    assert LIMIT >= max(sum(memory.count(codec.encode(message)) for message in given[1:]) for given in model.seen)
    mem = SlideMem(max_tokens=LIMIT, counter="approximate", store=f"sqlite:///{tmp_path / 'chat.db'}")
    for session in ("meera", "asha", "tomas"):
        said = SlidingChatMessageHistory(session, memory=mem).transcript
        assert [text for n in range(200) for text in (question(session, n), f"re: {question(session, n)}")] == [
            message.text for message in said
        ]


CHILD = """
import os, sys
sys.path.insert(0, {here!r})
from test_lc_end_to_end import Echo, chain, config, question
talking = chain({store!r}, Echo())
for n in range(60):
    talking.invoke({{"question": question("meera", n)}}, config("meera"))
stream = talking.stream({{"question": question("meera", 60)}}, config("meera"))
next(stream)
os._exit(9)  # no clean-up of any kind, as when a process is killed
"""


def test_a_process_that_is_killed_is_resumed(tmp_path: Path) -> None:
    """What was answered before the kill is there, the next prompt goes on from it, and no archive is torn."""
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    code = CHILD.format(here=str(HERE), store=store)
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603  # our own code
    model = Echo()

    chain(store, model).invoke({"question": question("meera", 60)}, config("meera"))

    assert (9, "") == (killed.returncode, killed.stderr)
    mem = SlideMem(max_tokens=LIMIT, counter="approximate", store=store)
    history = SlidingChatMessageHistory("meera", memory=mem)
    assert [text for n in range(61) for text in (question("meera", n), f"re: {question('meera', n)}")] == [
        message.text for message in history.transcript
    ]
    (given,) = model.seen
    assert [] == faults(given)
    assert question("meera", 59) == given[-3].text
    covered = history.context().receipt.covered
    assert (covered, 0) == (history.session.archive()[-1].end, history.session.archive()[0].start)
