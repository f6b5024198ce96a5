"""A real chain: prompt template, chat model, parser; three sessions at once, one process killed and resumed."""

# no token here is a password

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from lc_scripted import Echo, faults

from langchain_slidemem import LangChainCodec, SlidingChatMessageHistory, with_sliding_memory
from slidemem import SlideMem, approximate_counter

HERE = Path(__file__).parent
LIMIT = 400
SESSIONS = ("meera", "asha", "tomas")
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
        await asyncio.gather(*(talk(session) for session in SESSIONS))

    asyncio.run(all_of_them())

    assert 600 == len(model.seen)
    assert [] == [fault for given in model.seen[::7] for fault in faults(given)]
    assert LIMIT >= max(sum(memory.count(codec.encode(message)) for message in given[1:]) for given in model.seen)
    mem = SlideMem(max_tokens=LIMIT, counter="approximate", store=f"sqlite:///{tmp_path / 'chat.db'}")
    for session in SESSIONS:
        said = SlidingChatMessageHistory(session, memory=mem).transcript
        assert [text for n in range(200) for text in (question(session, n), f"re: {question(session, n)}")] == [
            message.text for message in said
        ]


CHILD = """
import sys, threading
sys.path.insert(0, {here!r})
from test_lc_end_to_end import Echo, answered, chain, config, question
talking = chain({store!r}, Echo())
def talk(session):
    for n in range(answered({store!r}, session), 200):
        talking.invoke({{"question": question(session, n)}}, config(session))
        sys.stdout.write(f"{{session}} {{n}}\\n")
        sys.stdout.flush()
threads = [threading.Thread(target=talk, args=(session,)) for session in {sessions!r}]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def answered(store: str, session: str) -> int:
    """How many questions of a session have been answered."""
    mem = SlideMem(max_tokens=LIMIT, counter="approximate", store=store)
    return len(SlidingChatMessageHistory(session, memory=mem).transcript) // 2


def run_until(store: str, lines: int) -> tuple[list[str], int]:
    """Talk in a process of its own that is killed after so many answers; what it told, and how it ended."""
    code = CHILD.format(here=str(HERE), store=store, sessions=SESSIONS)
    told: list[str] = []
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as talking:  # noqa: S603  # our own code
        assert talking.stdout is not None
        for line in talking.stdout:
            told.append(line.strip())
            if len(told) == lines:
                talking.kill()
    return told, talking.returncode


def test_processes_that_are_killed_are_resumed(tmp_path: Path) -> None:
    """Three sessions at once in processes that are killed twice: no answered turn is lost, torn or said twice."""
    store = f"sqlite:///{tmp_path / 'chat.db'}"

    told, ends = [], []
    for lines in (150, 201, 1000):
        lines_told, end = run_until(store, lines)
        after = {session: answered(store, session) for session in SESSIONS}
        told += lines_told
        ends.append(end)
        assert [] == [line for line in lines_told if int(line.split()[1]) >= after[line.split()[0]]]

    assert [-signal.SIGKILL, -signal.SIGKILL, 0] == ends
    assert len(told) == len(set(told))
    mem = SlideMem(max_tokens=LIMIT, counter="approximate", store=store)
    for session in SESSIONS:
        history = SlidingChatMessageHistory(session, memory=mem)
        assert [text for n in range(200) for text in (question(session, n), f"re: {question(session, n)}")] == [
            message.text for message in history.transcript
        ]
        archive, receipt = history.session.archive(), history.context().receipt
        assert [0, *(one.end for one in archive)] == [*(one.start for one in archive), receipt.covered]
        assert ([], True) == (faults(history.messages), 0 < receipt.covered < 400)


def test_a_question_that_was_being_answered_when_its_process_was_killed_is_asked_again(tmp_path: Path) -> None:
    """A stream that was killed has stored nothing of its turn, and the next prompt goes on from the turn before."""
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    code = f"""
import os, signal, sys
sys.path.insert(0, {str(HERE)!r})
from test_lc_end_to_end import Echo, chain, config, question
talking = chain({store!r}, Echo())
for n in range(60):
    talking.invoke({{"question": question("meera", n)}}, config("meera"))
stream = talking.stream({{"question": question("meera", 60)}}, config("meera"))
next(stream)
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603  # our own code
    model = Echo()

    chain(store, model).invoke({"question": question("meera", 60)}, config("meera"))

    assert (-signal.SIGKILL, "", 61) == (killed.returncode, killed.stderr, answered(store, "meera"))
    (given,) = model.seen
    assert ([], question("meera", 59)) == (faults(given), given[-3].text)


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
def test_the_two_lines_of_the_readme_are_all_that_changes(fresh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's diff, applied to the chain that it shows, runs before and after, and bounds the prompt after."""
    readme = (HERE.parent.parent / "README.md").read_text(encoding="utf-8")
    diff = re.findall(r"```diff\n(.*?)```", readme, re.DOTALL)[0].splitlines()
    before = "\n".join(line[1:] for line in diff if line[0] != "+")
    after = "\n".join(line[1:] for line in diff if line[0] != "-")
    monkeypatch.setattr("slidemem.memory.resolve_counter", lambda counter: approximate_counter())
    sizes = []
    for program in (before, after):
        model = Echo()
        given = {
            "RunnableWithMessageHistory": RunnableWithMessageHistory,
            "prompt": PROMPT,
            "model": model,
            "histories": {},
        }
        exec(program, given)  # noqa: S102  # our own document
        for n in range(30):
            given["chain"].invoke({"question": question(fresh, n) + " word" * 150}, config(fresh))
        sizes.append(sum(approximate_counter().count(LangChainCodec().encode(one)) for one in model.seen[-1][1:-1]))

    assert (2, 2) == tuple(sum(line[0] == sign for line in diff) for sign in "-+")
    assert sizes[1] <= 4000 < sizes[0]
