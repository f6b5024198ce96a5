"""What a user of an installed wheel does first; run by the Python of an empty environment, outside the repository.

    python -I smoke.py README.md EXTRA...

Everything that an extra brings is used once; what it does not bring says the pip command that does.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import slidemem
from slidemem import MissingExtra, SlideMem, SlidememError, StoreUnreachable

TURNS = 30
NOWHERE = "127.0.0.1:1"  # no server listens there


def quick_start(readme: Path) -> None:
    """The README's first block prints what the README shows."""
    text = readme.read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    shown = re.findall(r"```text\n(.*?)```", text, re.DOTALL)[0]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})  # noqa: S102  # our own document
    assert shown == out.getvalue(), out.getvalue()


def version() -> None:
    """`python -m slidemem --version`, and the installed metadata, agree."""
    from importlib.metadata import version as installed  # stands beside its use

    told = subprocess.run(  # our own command
        [sys.executable, "-m", "slidemem", "--version"], capture_output=True, text=True, check=True
    )
    assert told.stdout == f"slidemem {installed('slidemem')}\n", told.stdout
    assert "site-packages" in str(slidemem.__file__), slidemem.__file__
    assert (Path(str(slidemem.__file__)).parent / "py.typed").exists()


def sqlite() -> None:
    """A session on a file, read again."""
    with SlideMem(max_tokens=300, counter="approximate", store="sqlite:///chat.db") as mem:
        fill(mem)
    with SlideMem(max_tokens=300, counter="approximate", store="sqlite:///chat.db") as mem:
        assert 2 * TURNS == len(mem.session("s").transcript())


def fill(mem: SlideMem) -> None:
    """A conversation that has to consolidate."""
    chat = mem.session("s")
    for n in range(TURNS):
        chat.append({"role": "user", "content": f"Please book seat {n}A to Pune."})
        chat.append({"role": "assistant", "content": f"Booked, reference PNR-{n:04}."})
    assert chat.context().tokens <= 300
    assert chat.archive()


def with_cli() -> None:
    """The demo, drawn in the terminal."""
    drawn = subprocess.run(  # our own command
        [sys.executable, "-m", "slidemem", "demo"], capture_output=True, text=True, check=True
    )
    assert "In figures" in drawn.stdout, drawn.stdout


def with_embeddings() -> None:
    """Vectors of an own model, compared in this process."""

    class Letters:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return [float(text.count(letter)) + 0.1 for letter in "abcdefgh"]

    mem = SlideMem(max_tokens=300, counter="approximate", embeddings=Letters())
    fill(mem)
    assert mem.session("s").search("seat 3A")


def with_langchain() -> None:
    """A chain with memory."""
    from langchain_core.language_models.fake_chat_models import FakeListChatModel  # an extra's
    from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

    from langchain_slidemem import SlidingChatMessageHistory, with_sliding_memory

    mem = SlideMem(max_tokens=300, counter="approximate")
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
    chain = with_sliding_memory(
        prompt | FakeListChatModel(responses=["Booked."]),
        mem,
        input_messages_key="question",
        history_messages_key="history",
    )
    for n in range(TURNS):
        chain.invoke({"question": f"Seat {n}A to Pune, please."}, {"configurable": {"session_id": "s"}})
    history = SlidingChatMessageHistory("s", memory=mem)
    assert 2 * TURNS == len(history.transcript)
    assert 300 >= history.context().tokens


def with_langchain_agents() -> None:
    """An agent with the middleware."""
    from langchain.agents import create_agent  # an extra's
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    from langchain_slidemem.middleware import SlidingMemoryMiddleware

    middleware = SlidingMemoryMiddleware(max_tokens=300, token_counter="approximate")
    agent = create_agent(FakeListChatModel(responses=["Booked."]), middleware=[middleware])
    said = [{"role": role, "content": f"{role} {n}"} for n in range(TURNS) for role in ("user", "assistant")]
    done = agent.invoke({"messages": [*said, {"role": "user", "content": "And now?"}]})
    assert 2 * TURNS + 2 == len(done["messages"])


def with_llamaindex() -> None:
    """A chat engine with memory."""
    from llama_index.core.chat_engine import SimpleChatEngine  # an extra's
    from llama_index.core.llms import MockLLM

    from llamaindex_slidemem import SlidingChatMemoryBuffer

    memory = SlidingChatMemoryBuffer.from_defaults(token_limit=300, tokenizer_fn=str.split)
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(max_tokens=5), memory=memory)
    for n in range(TURNS):
        engine.chat(f"Seat {n}A to Pune, please.")
    assert 2 * TURNS == len(memory.get_all())


def with_postgres() -> None:
    """The store is there, and says that no server is."""
    unreachable(f"postgresql://postgres@{NOWHERE}/slidemem")


def with_redis() -> None:
    """The same."""
    unreachable(f"redis://{NOWHERE}/0")


def unreachable(url: str) -> None:
    """A store whose server is not there is an error with its address."""
    mem = SlideMem(max_tokens=300, counter="approximate", store=url)
    fault = raised(lambda: mem.session("s").append({"role": "user", "content": "Hi"}))
    assert isinstance(fault, StoreUnreachable), fault
    assert NOWHERE in str(fault), fault


def raised(call: Callable[[], object]) -> SlidememError | None:
    """The error that a call raises, if it raises one of ours."""
    try:
        call()
    except SlidememError as error:
        return error
    return None


USES: dict[str, Callable[[], None]] = {
    "cli": with_cli,
    "embeddings": with_embeddings,
    "langchain": with_langchain,
    "langchain-agents": with_langchain_agents,
    "llamaindex": with_llamaindex,
    "postgres": with_postgres,
    "redis": with_redis,
    "notebooks": lambda: [import_module(name) for name in ("ipykernel", "matplotlib")] and None,
}
WITHOUT: dict[str, Callable[[], object]] = {
    "langchain": lambda: import_module("langchain_slidemem"),
    "langchain-agents": lambda: import_module("langchain_slidemem.middleware"),
    "llamaindex": lambda: import_module("llamaindex_slidemem"),
    "postgres": lambda: SlideMem(max_tokens=300, counter="approximate", store=f"postgresql://x@{NOWHERE}/x"),
    "redis": lambda: SlideMem(max_tokens=300, counter="approximate", store=f"redis://{NOWHERE}/0"),
}
BRINGS = {"langchain-agents": {"langchain"}, "all": set(USES)}


def main(readme: Path, extras: set[str]) -> None:
    """Use what is installed, and ask for what is not."""
    quick_start(readme)
    version()
    sqlite()
    there = extras.union(*(BRINGS.get(extra, set()) for extra in extras))
    for extra in there & set(USES):
        USES[extra]()
    for extra in set(WITHOUT) - there if "all" not in extras else ():
        fault = raised(WITHOUT[extra])
        assert isinstance(fault, MissingExtra), (extra, fault)
        advised = re.search(r"pip install 'slidemem\[([\w-]+)\]'", str(fault))
        assert advised is not None, fault
        assert advised[1] in {extra, "langchain"}, fault


if __name__ == "__main__":
    main(Path(sys.argv[1]), set(sys.argv[2:]))
