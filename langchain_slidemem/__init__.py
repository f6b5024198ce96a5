"""LangChain adapter: conversion and LangChain's habits; every rule of memory is in `slidemem`."""

from importlib.util import find_spec

from slidemem.errors import MissingExtra

if find_spec("langchain_core") is None:
    raise MissingExtra("langchain_slidemem", "langchain")

from langchain_slidemem.codec import LangChainCodec
from langchain_slidemem.consolidator import ChatModelConsolidator
from langchain_slidemem.graph import SlidingMemoryNodes, SlidingState, sliding_pre_model_hook
from langchain_slidemem.history import ChatContext, SlidingChatMessageHistory
from langchain_slidemem.marks import mark_prefix
from langchain_slidemem.recall import SlidingMemoryRetriever, recall_tool
from langchain_slidemem.runnable import RunnableWithSlidingMemory, with_sliding_memory
from langchain_slidemem.vectors import MessageVectors

__all__ = [
    "ChatContext",
    "ChatModelConsolidator",
    "LangChainCodec",
    "MessageVectors",
    "RunnableWithSlidingMemory",
    "SlidingChatMessageHistory",
    "SlidingMemoryNodes",
    "SlidingMemoryRetriever",
    "SlidingState",
    "mark_prefix",
    "recall_tool",
    "sliding_pre_model_hook",
    "with_sliding_memory",
]
