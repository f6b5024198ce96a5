"""Decides whether a chain that begins with a prompt has a place for what is remembered.

LangChain fills a list of messages into a variable of text as its `repr`, and drops what no variable asks for, both in
silence: the model would never see the conversation.
"""

from __future__ import annotations

from typing import Any

from langchain_core.prompts import BasePromptTemplate, ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable, RunnableSequence

from slidemem import ConfigurationError


def check_placeholder(bound: Runnable[Any, Any], asked: str | None, history: str | None) -> None:
    """Refuse keys under which the prompt at the head of a chain would lose the history.

    Args:
        bound: the runnable; one that begins with anything but a prompt is not looked into.
        asked: the key of the input's messages, where there is one.
        history: the key of what is remembered; None where it stands in front of the input's messages.

    Raises:
        ConfigurationError: the prompt has no variable of that name, or a text where messages come.
    """
    prompt: Any = bound.first if isinstance(bound, RunnableSequence) else bound
    if not isinstance(prompt, BasePromptTemplate):
        return
    names = {*prompt.input_variables, *prompt.optional_variables, *prompt.partial_variables}
    listed = prompt.messages if isinstance(prompt, ChatPromptTemplate) else []
    places = {one.variable_name for one in listed if isinstance(one, MessagesPlaceholder)}
    if history is not None:
        lost = history not in names
    else:
        lost = bool(names) and (asked not in places if asked is not None else not names <= places)
    if lost:
        wanted = f"named {history!r}" if history else "for messages where the input comes"
        raise ConfigurationError(
            f"the prompt has no placeholder {wanted} (its variables: {', '.join(sorted(names))}): "
            'put MessagesPlaceholder("history") into it, and pass history_messages_key="history" and '
            "input_messages_key=, the variable of the question"
        )
