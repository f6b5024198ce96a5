# ruff: noqa: S106  # no token here is a password
"""Chats with a real small model in a window of 4,096 tokens, streaming, its own summaries in the archive.

    python tests/e2e/real_model.py [--turns N] [--window N] [--weights model.gguf]

SmolLM2-135M-Instruct runs in this process through llama.cpp's OpenAI-compatible server (xllamacpp). Both frameworks
chat through their real clients; then what was said is sent whole, as a chat without memory would, which the server
refuses.
Exits 1 when one of ours is refused, or when what was said is not. `make e2e` fetches the parts.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import xllamacpp
from langchain_core.messages import convert_to_openai_messages
from langchain_openai import ChatOpenAI
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.llms.openai_like import OpenAILike

from langchain_slidemem import SlidingChatMessageHistory, with_sliding_memory
from llamaindex_slidemem import SlidingChatMemoryBuffer, follow_usage

ANSWER = 32  # tokens
OPTIONS: dict[str, Any] = {"reserve_tokens": ANSWER + 64, "correct_counts": True}
PAD = "I would like a window seat and a quiet coach, I travel light, and I am vegetarian. " * 3


def question(turn: int) -> str:
    """What the user says in a turn."""
    return f"Turn {turn}: my reference is REF-{turn * 37 + 1000}. {PAD}What should I pack for day {turn} in Pune?"


def served(weights: Path, window: int) -> Any:
    """The model's server, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.port = port
    params.n_ctx = window
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.use_jinja = True
    return xllamacpp.Server(params), f"http://127.0.0.1:{port}/v1"


def with_langchain(url: str, turns: int, window: int) -> tuple[Any, list[dict[str, Any]]]:
    """A chain with memory: its figures, and what was said."""
    plain: dict[str, Any] = {
        "model": "smollm2",
        "base_url": url,
        "api_key": "k",
        "max_retries": 0,
        "stream_usage": True,
    }
    summarizer = ChatOpenAI(max_tokens=160, **plain)
    history = SlidingChatMessageHistory(
        "e2e", max_tokens=window, summarizer=summarizer, token_counter="approximate", **OPTIONS
    )
    chain = with_sliding_memory(ChatOpenAI(max_tokens=ANSWER, **plain), lambda _: history)
    for turn in range(turns):
        for _ in chain.stream(question(turn), {"configurable": {"session_id": "e2e"}}):
            pass
        _progress("LangChain", turn, history.session.stats())
    said = [message for message in convert_to_openai_messages(history.transcript) if message["content"]]
    return history.session.stats(), said


def with_llamaindex(url: str, turns: int, window: int) -> tuple[Any, list[dict[str, Any]]]:
    """A chat engine with memory: its figures, and what was said."""
    plain: dict[str, Any] = {
        "model": "smollm2",
        "api_base": url,
        "api_key": "k",
        "is_chat_model": True,
        "max_retries": 0,
    }
    usage = {"stream_options": {"include_usage": True}}
    memory = SlidingChatMemoryBuffer.from_defaults(
        token_limit=window, summarizer=OpenAILike(max_tokens=160, **plain), **OPTIONS
    )
    handler = follow_usage(memory)
    engine = SimpleChatEngine.from_defaults(
        llm=OpenAILike(max_tokens=ANSWER, additional_kwargs=usage, **plain), memory=memory
    )
    try:
        for turn in range(turns):
            for _ in engine.stream_chat(question(turn)).response_gen:
                pass
            _progress("LlamaIndex", turn, memory.stats())
    finally:
        get_dispatcher().event_handlers.remove(handler)
    return memory.stats(), [{"role": one.role.value, "content": one.content} for one in memory.get_all()]


def _progress(framework: str, turn: int, stats: Any) -> None:
    if turn % 10 == 9:  # every tenth
        print(f"{framework}: {turn + 1} turns, {stats.consolidations} consolidations", flush=True)  # a script


def refusal_of(url: str, said: list[dict[str, Any]]) -> str:
    """What the server says of everything that was said, sent whole; "" when it takes it."""
    client = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
    try:
        client.chat.completions.create(model="smollm2", messages=said, max_tokens=1)  # type: ignore[arg-type]  # dicts
    except openai.BadRequestError as refused:
        return str(refused.body)
    return ""


def main() -> int:
    """Chat, and print the figures; 1 when something is refused that should not be, or the other way round."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=60, help="turns of each chat (60)")
    parser.add_argument("--window", type=int, default=4096, help="tokens that the model takes in (4096)")
    parser.add_argument("--weights", type=Path, default=Path(".venv/smollm2.gguf"), help="of the model")
    given = parser.parse_args()
    failed = False
    server, url = served(given.weights, given.window)
    frameworks: dict[str, Callable[[str, int, int], Any]] = {
        "LangChain": with_langchain,
        "LlamaIndex": with_llamaindex,
    }
    for name, chat in frameworks.items():
        began = time.monotonic()
        try:
            stats, said = chat(url, given.turns, given.window)
        except Exception as fault:  # noqa: BLE001  # each client has its own
            print(f"{name}: refused: {fault}")
            failed = True
            continue
        refusal = refusal_of(url, said)
        failed = failed or not refusal
        print(
            f"{name}: {given.turns} turns, none refused, {stats.consolidations} consolidations, "
            f"{stats.summarizer_calls} calls of the summariser ({stats.refusals} answers refused), "
            f"factor {stats.token_factor:g}, {time.monotonic() - began:.0f} s\n"
            f"{name} without memory: {refusal or 'taken'}",
            flush=True,
        )
    del server
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
