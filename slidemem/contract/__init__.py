"""What a store must do, as tests that a store of your own inherits: subclass one, make a store, let pytest run it.

    class TestMine(StoreContract):
        def store(self) -> Store:
            return MyStore()

`TranscriptContract` and `RecordsContract` are for a host that owns one of the two, `StoreContract` for both in one.
Assertions tell more after `pytest.register_assert_rewrite("slidemem.contract")`.
"""

from slidemem.contract.base import entry, segment
from slidemem.contract.records import RecordsContract
from slidemem.contract.store import StoreContract
from slidemem.contract.transcript import TranscriptContract

__all__ = ["RecordsContract", "StoreContract", "TranscriptContract", "entry", "segment"]
