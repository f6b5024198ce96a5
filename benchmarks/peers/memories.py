"""Decides which memories are compared, each set up as its own documentation says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from speech import Said

from peers import of_langchain as lc
from peers import of_llama_index as li
from peers.protocol import Memory, Setting
from peers.writers import Consolidating
from slidemem import Event, SlideMem, from_openai


class Ours(Memory):
    """Slidemem's core.

    Args:
        setting: counter, budget, summariser.
        writes: whether the summariser writes the archive; without it the default does, which needs no model.
        **options: of `SlideMem`.
    """

    def __init__(self, setting: Setting, *, writes: bool = False, **options: Any) -> None:
        self.events: list[Event] = []
        if writes:
            options["consolidator"] = Consolidating(setting.script)
        self._memory = SlideMem(
            max_tokens=setting.budget, counter=setting.count, on_event=self.events.append, **options
        )
        self.chat = self._memory.session("bench")

    def add(self, said: Said) -> None:
        """Append it."""
        self.chat.append(from_openai(said))

    def fill(self, messages: Sequence[Said]) -> None:
        """Append them, some hundred at a time."""
        for at in range(0, len(messages), 200):
            self.chat.append([from_openai(one) for one in messages[at : at + 200]])

    def prompt(self) -> list[Said]:
        """The context."""
        return self.chat.context().to_openai()

    def ask(self, question: str) -> list[Said]:
        """The context for a question."""
        return [*self.chat.context(query=question).to_openai(), {"role": "user", "content": question}]

    def held(self) -> list[str]:
        """The transcript, and the archive's segments."""
        return [
            *(message.text for message in self.chat.transcript()),
            *(segment.text for segment in self.chat.archive()),
        ]

    def close(self) -> None:
        """End what runs in the background."""
        self.chat.flush()
        self._memory.close()


class Whole(Memory):
    """The full history, as a reference."""

    def __init__(self, setting: Setting) -> None:
        del setting
        self._said: list[Said] = []

    def add(self, said: Said) -> None:
        """Keep it."""
        self._said.append(said)

    def fill(self, messages: Sequence[Said]) -> None:
        """Keep them."""
        self._said.extend(messages)

    def prompt(self) -> list[Said]:
        """All of them."""
        return list(self._said)

    def held(self) -> list[str]:
        """All of them."""
        return [str(one["content"]) for one in self._said]


@dataclass(frozen=True)
class Kind:
    """A memory that is compared.

    Attributes:
        name: of it, in the tables.
        make: makes one.
        package: whose version is printed.
        summarises: whether it asks the summariser.
        embeds: whether it needs an embedding model.
        given_all: makes one that is given its whole history at each prompt, for times and counts, where `make` spares
            it what it drops in any case.
    """

    name: str
    make: Callable[[Setting], Memory]
    package: str
    summarises: bool = False
    embeds: bool = False
    given_all: Callable[[Setting], Memory] | None = None

    @property
    def ours(self) -> bool:
        """Whether it is slidemem."""
        return self.package == "slidemem"

    @property
    def whole(self) -> Callable[[Setting], Memory]:
        """Makes one that is spared nothing."""
        return self.given_all or self.make

    @property
    def version(self) -> str:
        """The installed version of its package."""
        return version(self.package) if self.package else ""


def ours(name: str, *, writes: bool = False, **options: Any) -> Kind:
    """Slidemem with options."""
    return Kind(name, lambda given: Ours(given, writes=writes, **options), "slidemem", summarises=writes)


DEFAULTS: Final = ours("slidemem")
WITHOUT_RECALL: Final = ours("slidemem, recall off", recall_share=0)
BACKGROUND: Final = ours("slidemem, summariser in the background", writes=True, mode="background", flush_seconds=600)
REFERENCE: Final = Kind("full history", Whole, "")
KINDS: Final[Sequence[Kind]] = (
    DEFAULTS,
    WITHOUT_RECALL,
    ours("slidemem, summariser", writes=True),
    ours("slidemem, summariser, recall off", writes=True, recall_share=0),
    ours("slidemem, the same, deep cuts", writes=True, recall_share=0, archive_share=0.1, compact_to=0.22),
    Kind("trim_messages", lc.Trimmed, "langchain-core", given_all=lc.UntouchedTrimmed),
    Kind("ConversationSummaryBufferMemory", lc.SummaryBuffer, "langchain-classic", summarises=True),
    Kind("SummarizationMiddleware", lc.Middleware, "langchain", summarises=True),
    Kind("langmem summarize_messages", lc.LangMem, "langmem", summarises=True),
    Kind("ChatMemoryBuffer", li.Buffer, "llama-index-core", given_all=li.UntouchedBuffer),
    Kind("ChatSummaryMemoryBuffer", li.SummaryBuffer, "llama-index-core", summarises=True),
    Kind("Memory", li.Queue, "llama-index-core"),
    Kind("Memory, fact block", li.Facts, "llama-index-core", summarises=True),
    Kind("Memory, vector block", li.Vectors, "llama-index-core", embeds=True),
    REFERENCE,
)
