"""Runs one session through real clients against a strict provider, with our memory and with the frameworks' own.

    python benchmarks/providers.py [--turns N]

The provider is the tests' own, on loopback: it refuses what providers refuse, and reports cached tokens as they do,
from the real prefixes of earlier requests (from 1,024 tokens on in steps of 128, as OpenAI publishes it). The session
has tools, several calls at once, an oversize paste and interrupted runs. No key, no network. Exits 1 when ours is
refused or over the limit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

TESTS: Final = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "clients")]

import client_script  # noqa: E402  # the tests' own, from where the line above says
from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage, trim_messages  # noqa: E402
from langchain_core.runnables import RunnableLambda  # noqa: E402
from lc_clients import History, Surface, look_up  # noqa: E402
from li_clients import Agent  # noqa: E402
from llama_index.core.memory import ChatMemoryBuffer  # noqa: E402
from strict_provider import Ledger, StrictProvider, running  # noqa: E402

from langchain_slidemem import LangChainCodec, mark_prefix  # noqa: E402
from slidemem import tiktoken_counter  # noqa: E402

BUDGET: Final = 4000


@dataclass(frozen=True)
class Row:
    """What came of a session."""

    client: str
    memory: str
    answered: int
    refused: int
    over: int
    tokens: int
    reported: float
    exact: float
    stats: float | None


class Trimmed(Surface):
    """The same tool loop over a list that `trim_messages` cuts, as its documentation shows.

    https://docs.langchain.com/oss/python/langchain/short-term-memory
    """

    def open(self) -> None:
        """A list; a restart leaves it as it is."""
        self.log: list[BaseMessage] = getattr(self, "log", [])
        self.bound = self.model.bind_tools([look_up])
        counter, codec = tiktoken_counter("o200k_base"), LangChainCodec()
        self.count = lambda messages: sum(counter.count(codec.encode(message)) for message in messages)

    def prompt(self) -> list[BaseMessage]:
        """What is sent."""
        cut = trim_messages(
            self.log,
            max_tokens=client_script.BUDGET - client_script.TOOLS,
            token_counter=self.count,
            strategy="last",
            start_on="human",
        )
        return [SystemMessage(client_script.SYSTEM), *cut]

    def say(self, line: Any) -> None:
        """One turn; one that is refused ends there."""
        from lc_clients import message_of  # noqa: PLC0415

        self.log.append(message_of(line))
        while self._round():
            pass

    def _round(self) -> bool:
        answer = self.calls(self.bound, self.prompt())
        self.log.append(answer)
        self.log.extend(
            ToolMessage(look_up.invoke(call["args"]), tool_call_id=call["id"], name=call["name"])
            for call in answer.tool_calls
        )
        return bool(answer.tool_calls)

    def break_off(self, line: Any) -> None:
        """A turn whose calls get no results."""
        from lc_clients import message_of  # noqa: PLC0415

        self.log.append(message_of(line))
        self.log.append(self.calls(self.bound, self.prompt()))


class Marked(History):
    """Ours with Anthropic's client marking the end of each prompt, as its documentation shows."""

    def open(self) -> None:
        """The same with a mark."""
        super().open()
        self.bound = self.model.bind_tools([look_up], cache_control={"type": "ephemeral"})


class MarkedPrefix(History):
    """Ours with `mark_prefix`, which marks where the stable part ends."""

    def open(self) -> None:
        """The same behind a step that marks."""
        super().open()
        self.bound = RunnableLambda(mark_prefix) | self.bound


class TrimmedMarked(Trimmed):
    """The same with `trim_messages`."""

    def open(self) -> None:
        """The same with a mark."""
        super().open()
        self.bound = self.model.bind_tools([look_up], cache_control={"type": "ephemeral"})


class Untrimmed(Trimmed):
    """The same with everything sent each time."""

    def prompt(self) -> list[BaseMessage]:
        """What is sent."""
        return [SystemMessage(client_script.SYSTEM), *self.log]


class WithoutRecall(History):
    """Ours without quotes of old messages, which are new to a cache in each turn."""

    def open(self) -> None:
        """The same with another share."""
        self.options["recall_share"] = 0
        super().open()


class Buffered(Agent):
    """The same agent with ChatMemoryBuffer."""

    def open(self) -> None:
        """An agent over a memory; a restart leaves that as it is."""
        kept = getattr(self, "memory", None)
        super().open()
        limit = client_script.BUDGET - self.beside
        self.memory: Any = kept or ChatMemoryBuffer.from_defaults(
            token_limit=limit, tokenizer_fn=self.memory.tokenizer_fn
        )


def session(surface: Any, turns: int) -> None:
    """A whole session; a turn that is refused is given up."""
    for line in client_script.lines(turns, tools=True, think=False, pictures=False):
        if line.kind == "restart":
            surface.open()
        try:
            (surface.break_off if line.kind == "interrupted" else surface.say)(line)
        except Exception:  # noqa: BLE001, S112  # each client's own error; the server counts them
            continue


def reuse_of(surface: Any) -> float | None:
    """What our memory says of its own prefixes."""
    ours = getattr(surface, "history", None) or getattr(surface, "memory", None)
    told = getattr(ours, "session", None)
    return told.stats().prefix_reuse if told else None


def measured(provider: StrictProvider, client: str, name: str, surface: Callable[..., Any], turns: int) -> Row:
    """Run a session twice: with cached tokens as the provider reports them, and to the token."""
    shares, last = [], None
    for ledger in (Ledger(exact=True), Ledger()):
        provider.clear(limit=BUDGET, ledger=ledger)
        with tempfile.TemporaryDirectory() as home:
            last = surface(client, provider, "ainvoke" if issubclass(surface, Surface) else "achat", Path(home))
            session(last, turns)
            told = reuse_of(last)
        shares.append(provider.cached / max(1, provider.prompts))
    over = sum("context-length" in line for line in provider.refused)
    return Row(
        client=client,
        memory=name,
        answered=len(provider.served),
        refused=len(provider.refused) - over,
        over=over,
        tokens=provider.prompts,
        reported=shares[1],
        exact=shares[0],
        stats=told,
    )


def rows(provider: StrictProvider, turns: int) -> Iterator[Row]:
    """Every session."""
    yield measured(provider, "anthropic", "slidemem, history", Marked, turns)
    yield measured(provider, "anthropic", "slidemem, mark_prefix", MarkedPrefix, turns)
    yield measured(provider, "anthropic", "trim_messages", TrimmedMarked, turns)
    for client in ("openai", "gemini"):
        yield measured(provider, client, "slidemem, history", History, turns)
        yield measured(provider, client, "slidemem, no recall", WithoutRecall, turns)
        yield measured(provider, client, "trim_messages", Trimmed, turns)
        yield measured(provider, client, "none", Untrimmed, turns)
        yield measured(provider, client, "slidemem, FunctionAgent", Agent, turns)
        yield measured(provider, client, "ChatMemoryBuffer", Buffered, turns)


def main() -> int:
    """Print the table; 1 when ours falls short."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=200, help="turns of a session (200)")
    turns: int = parser.parse_args().turns
    warnings.simplefilter("ignore")  # the clients' own
    client_script.BUDGET = BUDGET
    failed = 0
    columns = ["client", "memory", "answered", "refused", "over the limit", "prompt tokens"]
    columns += ["cached, reported", "cached, to the token", "stats()"]
    print(f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", sep="\n")
    with tempfile.TemporaryDirectory() as folder, running(BUDGET) as provider:
        os.environ["TIKTOKEN_CACHE_DIR"] = vocabulary(Path(folder))
        for row in rows(provider, turns):
            told = "" if row.stats is None else f"{row.stats:.0%}"
            print(
                f"| {row.client} | {row.memory} | {row.answered} | {row.refused} | {row.over} | {row.tokens:,} "
                f"| {row.reported:.0%} | {row.exact:.0%} | {told} |",
                flush=True,
            )
            failed |= row.stats is not None and bool(row.refused or row.over)
    return int(failed)


def vocabulary(folder: Path) -> str:
    """A copy of the vocabularies that llama-index-core ships: tiktoken fetches its own otherwise."""
    package = find_spec("llama_index.core")
    assert package is not None
    assert package.origin is not None
    copied = folder / "tiktoken"
    shutil.copytree(Path(package.origin).parent / "_static" / "tiktoken_cache", copied)
    return str(copied)


if __name__ == "__main__":
    sys.exit(main())
