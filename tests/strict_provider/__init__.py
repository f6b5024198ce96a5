"""A provider for tests: it takes what OpenAI, Anthropic, Google and AWS take, and refuses what they refuse."""

from strict_provider.ledger import Ledger
from strict_provider.script import directive
from strict_provider.server import StrictProvider, running

__all__ = ["Ledger", "StrictProvider", "directive", "running"]
