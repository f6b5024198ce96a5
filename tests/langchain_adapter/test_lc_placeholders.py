"""A chain whose prompt has no place for what is remembered is refused when it is made."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from lc_scripted import Echo

from langchain_slidemem import with_sliding_memory
from slidemem import ConfigurationError, SlideMem

HISTORY = MessagesPlaceholder("history")
TEXT = ChatPromptTemplate.from_messages([("human", "{question}")])
BOTH = ChatPromptTemplate.from_messages([HISTORY, ("human", "{question}")])
OPTIONAL = ChatPromptTemplate.from_messages([("placeholder", "{history}"), ("human", "{question}")])
LISTED = ChatPromptTemplate.from_messages([("system", "Be kind."), MessagesPlaceholder("messages")])
FIXED = ChatPromptTemplate.from_messages([("system", "Be kind.")])
KEYS = {"input_messages_key": "question", "history_messages_key": "history"}

LOST: dict[str, tuple[Any, dict[str, str], str]] = {
    "no placeholder": (TEXT | Echo(), KEYS, "no placeholder named 'history' .its variables: question."),
    "another name": (BOTH | Echo(), {**KEYS, "history_messages_key": "chat"}, "no placeholder named 'chat'"),
    "no keys": (BOTH | Echo(), {}, "no placeholder for messages where the input comes"),
    "a text takes the list": (
        TEXT | Echo(),
        {"input_messages_key": "question"},
        "for messages where the input comes",
    ),
    "a plain prompt": (PromptTemplate.from_template("{question}") | Echo(), {}, "for messages"),
    "a prompt alone": (TEXT, KEYS, "no placeholder named 'history'"),
}
KEPT: dict[str, tuple[Any, dict[str, str]]] = {
    "both": (BOTH | Echo(), KEYS),
    "an optional placeholder": (OPTIONAL | Echo(), KEYS),
    "a value to begin with": (BOTH.partial(history=[]) | Echo(), KEYS),
    "a text of the history": (PromptTemplate.from_template("{history} {question}") | Echo(), KEYS),
    "messages alone": (LISTED | Echo(), {}),
    "messages under a key": (LISTED | Echo(), {"input_messages_key": "messages"}),
    "no variables": (FIXED | Echo(), {}),
    "something before the prompt": (RunnablePassthrough() | TEXT | Echo(), KEYS),
    "a function": (RunnableLambda(lambda given: given["question"]), KEYS),
}


@pytest.mark.parametrize("chain, keys, said", LOST.values(), ids=LOST.keys())
def test_a_prompt_that_would_lose_the_history_is_refused(chain: Any, keys: dict[str, str], said: str) -> None:
    """The error names what is missing, the variables that there are, and what to pass."""
    with pytest.raises(ConfigurationError, match=f"{said}.*put MessagesPlaceholder"):
        with_sliding_memory(chain, SlideMem(max_tokens=300, counter="approximate"), **keys)


@pytest.mark.parametrize("chain, keys", KEPT.values(), ids=KEPT.keys())
def test_a_prompt_with_a_place_for_it_is_taken(chain: Any, keys: dict[str, str]) -> None:
    """Whatever way a prompt takes messages, and whatever is no prompt."""
    made = with_sliding_memory(chain, SlideMem(max_tokens=300, counter="approximate"), **keys)

    assert chain is made.bound
