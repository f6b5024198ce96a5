"""Conversation memory with a hard token budget: always a valid transcript, nothing lost, a stable prefix."""

from slidemem.archive import Retention, Segment
from slidemem.asking import within
from slidemem.compose import Context, Receipt, Zones
from slidemem.config import Options
from slidemem.consolidate import Consolidator, ExtractiveConsolidator, FunctionConsolidator
from slidemem.conversation import ConversationMemory
from slidemem.costs import Money, Prices
from slidemem.driver import drive
from slidemem.due import DueJob
from slidemem.errors import (
    AsyncOnly,
    BudgetError,
    BudgetTooSmall,
    ConfigurationError,
    InvalidExport,
    InvalidMessage,
    InvalidTranscript,
    MissingExtra,
    OversizeMessage,
    PinBudgetError,
    SessionExists,
    SlidememError,
    StoreBusy,
    StoreError,
    StoreUnreachable,
    TranscriptMismatch,
    UnknownReference,
    VocabularyMissing,
)
from slidemem.events import Event, Stats
from slidemem.flow import Explanation
from slidemem.leaving import Plan
from slidemem.memory import SlideMem
from slidemem.messages import Mark, Message, MessageCodec, Part, PartKind, Role, ToolCall
from slidemem.openai_format import from_openai, to_openai
from slidemem.overview import Overview, Traced
from slidemem.profile import Profile
from slidemem.request import SummaryRequest
from slidemem.rewind import Reconciled
from slidemem.search import Hit
from slidemem.settle import Consolidation
from slidemem.state import Branch, Pin
from slidemem.stored_vectors import StoredVectors, VectorReach
from slidemem.stores.carried import Carried, CarriedRecords
from slidemem.stores.log import MessageLog, RewritableLog
from slidemem.stores.memory import MemoryStore
from slidemem.stores.sqlite import SQLiteStore
from slidemem.stores.text import TextRecords, Texts
from slidemem.tokens import TokenCounter, approximate_counter, count_tokens, tiktoken_counter
from slidemem.vectors import EmbeddedMessages, Embedder, VectorIndex
from slidemem.wishes import Asked

__version__ = "0.1.0"

__all__ = [
    "Asked",
    "AsyncOnly",
    "Branch",
    "BudgetError",
    "BudgetTooSmall",
    "Carried",
    "CarriedRecords",
    "ConfigurationError",
    "Consolidation",
    "Consolidator",
    "Context",
    "ConversationMemory",
    "DueJob",
    "EmbeddedMessages",
    "Embedder",
    "Event",
    "Explanation",
    "ExtractiveConsolidator",
    "FunctionConsolidator",
    "Hit",
    "InvalidExport",
    "InvalidMessage",
    "InvalidTranscript",
    "Mark",
    "MemoryStore",
    "Message",
    "MessageCodec",
    "MessageLog",
    "MissingExtra",
    "Money",
    "Options",
    "OversizeMessage",
    "Overview",
    "Part",
    "PartKind",
    "Pin",
    "PinBudgetError",
    "Plan",
    "Prices",
    "Profile",
    "Receipt",
    "Reconciled",
    "Retention",
    "RewritableLog",
    "Role",
    "SQLiteStore",
    "Segment",
    "SessionExists",
    "SlideMem",
    "SlidememError",
    "Stats",
    "StoreBusy",
    "StoreError",
    "StoreUnreachable",
    "StoredVectors",
    "SummaryRequest",
    "TextRecords",
    "Texts",
    "TokenCounter",
    "ToolCall",
    "Traced",
    "TranscriptMismatch",
    "UnknownReference",
    "VectorIndex",
    "VectorReach",
    "VocabularyMissing",
    "Zones",
    "approximate_counter",
    "count_tokens",
    "drive",
    "from_openai",
    "tiktoken_counter",
    "to_openai",
    "within",
]
