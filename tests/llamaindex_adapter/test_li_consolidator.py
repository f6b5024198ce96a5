"""A LlamaIndex model as the one who writes the archive: what it is asked, what is heard, and what when it fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from li_models import FACT, FENCE, LIMIT, ScriptedLLM, awaited, cost, filled, history, texts, words
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, TextBlock, ThinkingBlock
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler

from llamaindex_slidemem import (
    ConsolidationEvent,
    EvictionEvent,
    LLMConsolidator,
    MemoryEvent,
    SlidingChatMemoryBuffer,
)
from slidemem import ConfigurationError, Event

NOTES = f"Meera is {FACT}. Seats 1A and following to Pune are booked, PNR-0001 and following."


def noting(messages: Any) -> str:
    """An answer with notes of what is asked about."""
    said = str(messages[-1].content)
    numbers = [f"PNR-{at:04}" for at in range(40) if f"PNR-{at:04}" in said]
    return f"{NOTES if FACT in said else 'More seats to Pune.'} Booked: {', '.join(numbers[:3])}."


def model(**fields: Any) -> ScriptedLLM:
    """A model that writes notes as often as it is asked."""
    return ScriptedLLM.of(*[noting] * 100, **fields)


@pytest.mark.parametrize("twin", [False, True])
def test_the_model_is_asked_with_a_system_and_a_user_message(*, twin: bool) -> None:
    """Sync writes ask with `chat`, async ones with `achat`; what it says reaches the prompt; reads ask nothing."""
    llm = model(usage={"prompt_tokens": 70, "completion_tokens": 30})
    memory = SlidingChatMemoryBuffer.from_defaults(
        token_limit=LIMIT, tokenizer_fn=words, summarizer=llm, archive_share=0.3
    )
    if twin:
        awaited(memory.aput_messages(history()))
    else:
        memory.put_messages(history())
    asked = len(llm.prompts)

    got = memory.get()

    assert {"achat" if twin else "chat"} == llm.methods
    assert ["system", "user"] == [message.role.value for message in llm.prompts[0]]
    assert FACT in str(llm.prompts[0][1].content)
    assert (True, NOTES in str(got[0].content)) == (FENCE in str(got[0].content), True)
    assert (asked, asked) == (len(llm.prompts), memory.stats().summarizer_calls)
    assert (70 * asked, 30 * asked) == (memory.stats().summarizer_read, memory.stats().summarizer_wrote)


class ReadingLLM(ScriptedLLM):
    """A model whose provider tells its usage in a way of its own."""

    response: Any = None

    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        """The response that the test gave."""
        return self.response  # type: ignore[no-any-return]  # the test's


GEMINI = {"prompt_token_count": 7, "candidates_token_count": 3}
SAID = ChatMessage(role="assistant", blocks=[ThinkingBlock(content="hm"), TextBlock(text="notes")])


@pytest.mark.parametrize(
    "response, used",
    [
        (ChatResponse(message=SAID, raw={"usage": {"input_tokens": 7, "output_tokens": 3}}), (7, 3)),
        (ChatResponse(message=SAID, raw=SimpleNamespace(usage=SimpleNamespace(prompt_tokens=7))), (7, 0)),
        (
            ChatResponse(message=SAID, raw={"usage_metadata": GEMINI}),
            (7, 3),
        ),
        (ChatResponse(message=SAID, additional_kwargs={"prompt_tokens": 7, "completion_tokens": 3}), (7, 3)),
        (ChatResponse(message=SAID, raw="text"), (0, 0)),
    ],
)
def test_usage_is_heard_wherever_a_provider_tells_it(response: ChatResponse, used: tuple[int, int]) -> None:
    """In a dict or an object, by each provider's names, or in the response; thinking is no part of the notes."""
    heard: list[tuple[int, int]] = []
    request: Any = SimpleNamespace(prompt="Write.", used=lambda *tokens: heard.append(tokens))

    text = LLMConsolidator(ReadingLLM(response=response)).summarize(request)

    assert ("notes", [used]) == (text, heard)


def test_an_answer_without_text_is_empty() -> None:
    """It is refused like any empty summary."""
    request: Any = SimpleNamespace(prompt="Write.", used=lambda *_: None)
    llm = ScriptedLLM.of(ChatMessage(role="assistant"))

    assert "" == LLMConsolidator(llm).summarize(request)


def test_what_is_no_model_is_refused() -> None:
    """A text in the place of a model says so when the consolidator is made."""
    with pytest.raises(ConfigurationError, match="takes a LlamaIndex LLM, got str"):
        LLMConsolidator("gpt-4o")  # type: ignore[arg-type]  # a wrong call


@pytest.mark.parametrize("twin", [False, True])
def test_a_model_that_fails_loses_nothing(*, twin: bool) -> None:
    """run-llama/llama_index 22867: all messages are there once, extracts stand in, and it is left alone."""
    tries: list[int] = []

    def fails(messages: Any) -> str:
        tries.append(1)
        raise OSError("no network")

    memory = filled(turns=0, summarizer=ScriptedLLM.of(*[fails] * 100))
    for at in range(0, 80, 2):
        if twin:
            awaited(memory.aput_messages(history()[at : at + 2]))
        else:
            memory.put_messages(history()[at : at + 2])
    memory.session.consolidate(force=True)

    assert texts(history()) == texts(memory.get_all())
    assert (True, FACT in str(memory.get()[0].content)) == (2 * 3 == len(tries), True)
    assert LIMIT >= cost(memory.get())


class Listener(BaseEventHandler):
    """Hears what the dispatcher tells."""

    heard: list[Any] = []  # noqa: RUF012  # pydantic copies it

    def handle(self, event: Any, **kwargs: Any) -> None:
        """Keep what is about a memory."""
        if isinstance(event, MemoryEvent):
            self.heard.append(event)


def test_the_dispatcher_hears_of_eviction_and_consolidation() -> None:
    """Each consolidation tells what left and what was written of it; other events are told by their kind."""
    listener = Listener()
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(listener)
    own: list[Event] = []

    memory = SlidingChatMemoryBuffer.from_defaults(
        token_limit=LIMIT, tokenizer_fn=words, on_event=own.append, archive_share=0.3
    )
    for message in history(200):
        memory.put(message)
    memory.set(history(2))
    dispatcher.event_handlers.remove(listener)

    kinds = [(type(event), event.kind) for event in listener.heard]
    evicted = [event for event in listener.heard if isinstance(event, EvictionEvent)]
    written = next(event for event in listener.heard if isinstance(event, ConsolidationEvent))
    assert kinds.count((EvictionEvent, "consolidated")) == kinds.count((ConsolidationEvent, "consolidated")) > 1
    assert {(ConsolidationEvent, "merged"), (MemoryEvent, "rewound")} <= set(kinds)
    assert (0, "chat_history", "extractive") == (evicted[0].start, evicted[0].session, written.method)
    assert FACT in written.text
    assert ["MemoryEvent", "EvictionEvent", "ConsolidationEvent"] == [
        kind.class_name() for kind in (MemoryEvent, EvictionEvent, ConsolidationEvent)
    ]
    assert {"consolidated", "merged", "rewound"} <= {event.kind for event in own}
