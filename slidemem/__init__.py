"""Conversation memory with a hard token budget: always a valid transcript, nothing lost, a stable prefix."""

from slidemem.archive import Retention, Segment
from slidemem.compose import Context, Receipt, Zones
from slidemem.config import Options
from slidemem.consolidate import Consolidator, ExtractiveConsolidator, SummaryRequest
from slidemem.errors import (
    AsyncOnly,
    BudgetError,
    BudgetTooSmall,
    ConfigurationError,
    InvalidMessage,
    InvalidTranscript,
    MissingExtra,
    OversizeMessage,
    PinBudgetError,
    SlidememError,
    VocabularyMissing,
)
from slidemem.events import Event, Stats
from slidemem.memory import ConversationMemory, SlideMem
from slidemem.messages import Mark, Message, MessageCodec, Part, ToolCall
from slidemem.openai_format import from_openai, to_openai
from slidemem.state import Pin
from slidemem.tokens import TokenCounter, approximate_counter, count_tokens, tiktoken_counter

__version__ = "0.1.0"

__all__ = [
    "AsyncOnly",
    "BudgetError",
    "BudgetTooSmall",
    "ConfigurationError",
    "Consolidator",
    "Context",
    "ConversationMemory",
    "Event",
    "ExtractiveConsolidator",
    "InvalidMessage",
    "InvalidTranscript",
    "Mark",
    "Message",
    "MessageCodec",
    "MissingExtra",
    "Options",
    "OversizeMessage",
    "Part",
    "Pin",
    "PinBudgetError",
    "Receipt",
    "Retention",
    "Segment",
    "SlideMem",
    "SlidememError",
    "Stats",
    "SummaryRequest",
    "TokenCounter",
    "ToolCall",
    "VocabularyMissing",
    "Zones",
    "approximate_counter",
    "count_tokens",
    "from_openai",
    "tiktoken_counter",
    "to_openai",
]
