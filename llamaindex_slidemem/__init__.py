"""LlamaIndex adapter: conversion and LlamaIndex's habits; every rule of memory is in `slidemem`."""

from slidemem.errors import MissingExtra

try:
    from llamaindex_slidemem.buffer import SlidingChatMemoryBuffer
    from llamaindex_slidemem.chat_store import ChatStoreLog
    from llamaindex_slidemem.codec import LlamaIndexCodec
    from llamaindex_slidemem.consolidator import LLMConsolidator
    from llamaindex_slidemem.counter import TokenizerCounter
    from llamaindex_slidemem.instrumentation import ConsolidationEvent, EvictionEvent, MemoryEvent, RecallEvent
    from llamaindex_slidemem.recall import recall_tool
    from llamaindex_slidemem.remembered import RememberedMessage
    from llamaindex_slidemem.usage import UsageHandler, follow_usage
    from llamaindex_slidemem.vectors import MessageVectors
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "llama_index":
        raise
    raise MissingExtra("llamaindex_slidemem", "llamaindex") from missing

__all__ = [
    "ChatStoreLog",
    "ConsolidationEvent",
    "EvictionEvent",
    "LLMConsolidator",
    "LlamaIndexCodec",
    "MemoryEvent",
    "MessageVectors",
    "RecallEvent",
    "RememberedMessage",
    "SlidingChatMemoryBuffer",
    "TokenizerCounter",
    "UsageHandler",
    "follow_usage",
    "recall_tool",
]
