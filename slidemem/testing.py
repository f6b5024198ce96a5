"""For tests of your own: a strict checker of message lists."""

from slidemem.check import ALL, RULES, Provider, Rule, Violation, assert_valid, violations

__all__ = ["ALL", "RULES", "Provider", "Rule", "Violation", "assert_valid", "violations"]
