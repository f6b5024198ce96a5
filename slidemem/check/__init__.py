"""Decides whether a provider would take a list of messages, by the providers' own published rules.

The list is in OpenAI chat-completions format. Each rule is one function, and its docstring says who published
it and where; a room holds those of one subject, since most rules are several providers'. Nothing here knows how
slidemem makes a list: a checker that shared code with what it checks would share its faults. Mending a list is
left to others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from slidemem.check.calls import CALLS
from slidemem.check.content import CONTENT
from slidemem.check.reading import call_ids, result_id, speaks
from slidemem.check.results import RESULTS
from slidemem.check.roles import ROLES
from slidemem.check.rule import ALL, Given, Listed, Provider, Rule
from slidemem.check.thinking import THINKING

__all__ = ["ALL", "RULES", "Provider", "Rule", "Violation", "assert_valid", "violations"]

RULES: Final[Mapping[str, Rule]] = MappingProxyType({**ROLES, **CONTENT, **CALLS, **RESULTS, **THINKING})
"""Every rule by its name, in the order in which a list is checked."""


@dataclass(frozen=True)
class Violation:
    """One rule that one message breaks.

    Attributes:
        index: the message's position in the list, -1 when it is the list as a whole.
        rule: the rule's name, a key of `RULES`.
        provider: who would refuse the list for it, in the order of `ALL`; never empty.
        detail: what is wrong, with the ids or values at fault.
    """

    index: int
    rule: str
    provider: tuple[Provider, ...]
    detail: str

    def __str__(self) -> str:
        place = "list" if self.index < 0 else f"messages[{self.index}]"
        return f"{place}: {self.rule} ({', '.join(self.provider)}): {self.detail}"


def violations(
    messages: Sequence[Mapping[str, Any]],
    *,
    providers: Collection[str] = ALL,
    ignore: Collection[str] = (),
) -> list[Violation]:
    """Every rule that a list of messages breaks.

    Args:
        messages: dicts in OpenAI chat-completions format; read, never changed.
        providers: whose rules count, names from `ALL`.
        ignore: names of rules that do not count. A user's own transcript may hold two user messages in a
            row, for instance; `ignore=["alternation"]` then asks about everything else.

    Returns:
        The violations by position, those of the list as a whole first; empty when all would take it.

    Raises:
        ValueError: for a provider or a rule that is not known.
    """
    _refuse_unknown("provider", providers, ALL)
    _refuse_unknown("rule", ignore, RULES)
    counted = [rule for rule in RULES.values() if rule.name not in ignore]
    found = [violation for rule in counted for violation in _broken(rule, messages, providers)]
    return sorted(found, key=lambda violation: violation.index)


def assert_valid(
    messages: Sequence[Mapping[str, Any]],
    *,
    providers: Collection[str] = ALL,
    ignore: Collection[str] = (),
) -> None:
    """Assert that every provider would take a list of messages.

    Args:
        messages: dicts in OpenAI chat-completions format; read, never changed.
        providers: whose rules count, names from `ALL`.
        ignore: names of rules that do not count.

    Raises:
        AssertionError: with the roles drawn in one line and every violation below it.
        ValueError: for a provider or a rule that is not known.
    """
    found = violations(messages, providers=providers, ignore=ignore)
    if found:
        lines = "".join(f"\n  {violation}" for violation in found)
        raise AssertionError(f"rules broken: {len(found)} in [{_drawn(messages)}]{lines}")


def _refuse_unknown(kind: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {kind} {name!r}: choose from {', '.join(known)}")


def _broken(rule: Rule, messages: Listed, providers: Collection[str]) -> Iterator[Violation]:
    for finding in rule.check(messages):
        minding = set(finding.providers).intersection(rule.providers, providers)
        if minding:
            blamed = tuple(sorted(minding, key=ALL.index))
            yield Violation(finding.at, rule.name, blamed, finding.detail)


def _drawn(messages: Listed) -> str:
    return " | ".join(f"{index} {_portrait(message)}" for index, message in enumerate(messages))


def _portrait(message: Given) -> str:
    ids = [result_id(message)] if speaks(message, "tool") else call_ids(message)
    return f"{message.get('role')}({', '.join(ids)})" if ids else str(message.get("role"))
