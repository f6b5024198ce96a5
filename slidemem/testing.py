"""For tests of your own: a strict checker of message lists, the contract of stores, and a store that waits."""

from slidemem.check import ALL, RULES, Provider, Rule, Violation, assert_valid, violations
from slidemem.contract import RecordsContract, StoreContract, TranscriptContract
from slidemem.gated import Choose, GatedStore, Killed, TaskGate, ThreadGate, every_order

__all__ = [
    "ALL",
    "RULES",
    "Choose",
    "GatedStore",
    "Killed",
    "Provider",
    "RecordsContract",
    "Rule",
    "StoreContract",
    "TaskGate",
    "ThreadGate",
    "TranscriptContract",
    "Violation",
    "assert_valid",
    "every_order",
    "violations",
]
