"""Decides what a rule is, and how functions become a room of rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any, Final, Literal, NamedTuple

Provider = Literal["openai", "anthropic", "gemini", "bedrock", "template"]
"""Whose rules a list of messages is held against; see `ALL`."""

ALL: Final[tuple[Provider, ...]] = ("openai", "anthropic", "gemini", "bedrock", "template")
"""Everyone whose rules are known here.

OpenAI chat completions, Anthropic Messages, Gemini generateContent, AWS Bedrock Converse, and chat templates
that demand strictly alternating roles (Mistral's, Llama 2's, Gemma's).
"""

Given = Mapping[str, Any]
Listed = Sequence[Given]


class Finding(NamedTuple):
    """What a rule's function yields: where, what, and who minds if not everyone the rule names."""

    at: int
    detail: str
    providers: Collection[Provider] = ALL


Check = Callable[[Listed], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """One published rule.

    Attributes:
        name: its stable name, which `ignore` takes.
        providers: who refuses a list that breaks it.
        says: the rule in one sentence.
        source: the public pages and bug reports that state it, with the errors' own words.
        check: yields each place in a list of messages that breaks it.
    """

    name: str
    providers: tuple[Provider, ...]
    says: str
    source: str
    check: Check = field(repr=False)


class Room(dict[str, Rule]):
    """The rules of one subject by their names, in the order in which a list is checked."""

    def rule(self, name: str, *providers: Provider) -> Callable[[Check], Check]:
        """Enter a function; what the table says of it is the function's docstring."""

        def enter(check: Check) -> Check:
            says, _, source = cleandoc(check.__doc__ or "").partition("\n\n")
            self[name] = Rule(name, providers, says, " ".join(source.split()), check)
            return check

        return enter
