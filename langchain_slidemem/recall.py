"""Decides how a search of a memory is a tool that an agent calls, and a retriever that a chain asks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from langchain_slidemem.history import SlidingChatMessageHistory
from slidemem import ConfigurationError, ConversationMemory, Hit

Searched = SlidingChatMessageHistory | ConversationMemory

NOTHING: Final = "Nothing was found."
_DESCRIPTION: Final = (
    "Searches everything that was ever said in this conversation, also what is no longer shown. "
    "Call it before you say that you do not know something that the user may have told you."
)
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


class RecallInput(BaseModel):
    """What a model says when it calls the tool.

    Attributes:
        query: what to look for.
    """

    query: str = Field(description="What to look for: the names, numbers and words that were probably used.")


def recall_tool(memory: Searched, *, k: int = 5, name: str = "recall", description: str = _DESCRIPTION) -> BaseTool:
    """A tool with which a model searches its own conversation, sync and async.

    It answers with text: a message or line of the archive after the other, best first, each after who said it and,
    where the message has a `time`, the day.

    Args:
        memory: the session that is searched.
        k: how many hits at most.
        name: of the tool, as the model calls it.
        description: tells the model when to call it.

    Raises:
        ConfigurationError: `memory` is no session, or `k` no whole number of 1 or more.
    """
    chat = _session(memory)
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ConfigurationError(f"k must be a whole number of 1 or more, got {k!r:.80}")

    def recall(query: str) -> str:
        return _told(chat.search(query, k, tool=name))

    async def arecall(query: str) -> str:
        return _told(await chat.asearch(query, k, tool=name))

    return StructuredTool.from_function(recall, arecall, name=name, description=description, args_schema=RecallInput)


class SlidingMemoryRetriever(BaseRetriever):
    """A retriever over everything that was ever said in a session.

    A document's `page_content` is the text of a message or of a line of the archive, and its `metadata` has `seq`
    and `role` (None for a line), `score` (0 or more, to compare within one search), `session` (its id) and
    `segment` (the id of the one that holds the line; None for a message). Best first.

    Attributes:
        memory: the session that is searched.
        k: how many documents at most; `invoke(query, k=3)` asks for another number once.
    """

    memory: Searched
    k: int = Field(default=5, ge=1)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        """Documents, best first."""
        del run_manager  # a search has no steps to tell of
        return _documents(_session(self.memory).search(query, self.k if k is None else k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        """Async twin, without a thread."""
        del run_manager
        return _documents(await _session(self.memory).asearch(query, self.k if k is None else k))


def _session(memory: Searched) -> ConversationMemory:
    if isinstance(memory, SlidingChatMessageHistory):
        return memory.session
    if isinstance(memory, ConversationMemory):
        return memory
    raise ConfigurationError(
        f"memory must be a SlidingChatMessageHistory or a session of a SlideMem, got {type(memory).__name__}"
    )


def _told(hits: Sequence[Hit]) -> str:
    """Hits as a model reads them."""
    return "\n".join(map(_line, hits)) or NOTHING


def _line(hit: Hit) -> str:
    """A hit after who said it; further lines are indented, so that none passes for another hit."""
    said, *more = hit.text.splitlines() or [""]
    return "\n  ".join([f"{_speaker(hit)}: {said}", *more])


def _speaker(hit: Hit) -> str:
    if hit.message is None:
        return "summary"
    day = _DAY.match(hit.message.time or "")
    return f"{hit.message.role}, {day.group()}" if day else hit.message.role


def _documents(hits: Sequence[Hit]) -> list[Document]:
    return [Document(page_content=hit.text, metadata=_metadata(hit)) for hit in hits]


def _metadata(hit: Hit) -> dict[str, object]:
    return {
        "seq": hit.seq,
        "role": hit.message.role if hit.message else None,
        "score": hit.score,
        "session": hit.session,
        "segment": hit.segment.id if hit.segment else None,
    }
