"""For each invariant faults are planted that its check must catch: a check that cannot fail proves nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from conversations import script
from invariants import Run

from slidemem import Context, Message, Pin, compose, entries, flow, leaving, plan, present, session, settle, units
from slidemem.compose import Composition
from slidemem.stores.memory import MemoryStore
from slidemem.tokens import Tally


def uncut(patch: pytest.MonkeyPatch) -> None:
    """Clamping that cuts nothing."""
    patch.setattr(units, "clamp", lambda messages, limit, count: messages)
    patch.setattr(compose, "fitted", lambda unit, limit, count: unit)
    patch.setattr(entries, "clamp", lambda messages, limit, count: tuple(messages))


def heavier_head(patch: pytest.MonkeyPatch) -> None:
    """A head that grows after it was counted."""
    patch.setattr(compose, "Shown", lambda message, tokens, seqs: present.Shown(_longer(message), tokens, seqs))


def _longer(message: Message) -> Message:
    made = message.mark is not None and "head" in message.mark.kinds
    return present.headed(message, "one word more", "head") if made else message


def loose_results(patch: pytest.MonkeyPatch) -> None:
    """Results out of place shown as tool messages."""
    patch.setattr(units, "_note", lambda entry, names, tally: units._as_counted(entry))


def no_stubs(patch: pytest.MonkeyPatch) -> None:
    """Calls without result left open."""
    patch.setattr(units, "_unit", _unstubbed(units._unit))


def _unstubbed(real: Callable[..., units.Unit]) -> Callable[..., units.Unit]:
    def unit(*arguments: Any, **named: Any) -> units.Unit:
        made = real(*arguments, **named)
        return replace(made, shown=tuple(shown for shown in made.shown if shown.seqs))

    return unit


def split_pairs(patch: pytest.MonkeyPatch) -> None:
    """A cut between a call and its result."""
    patch.setattr(plan, "quiet", lambda units_, start, tally: _beheaded(units_[start:]))
    patch.setattr(compose, "quiet", lambda units_, start, tally: _beheaded(units_[start:]))


def _beheaded(shown: Sequence[units.Unit]) -> tuple[units.Unit, ...]:
    if shown and len(shown[0].shown) > 1:
        return (replace(shown[0], shown=shown[0].shown[1:]), *shown[1:])
    return tuple(shown)


def no_anchor(patch: pytest.MonkeyPatch) -> None:
    """A turn cut through without its user message."""
    patch.setattr(compose, "anchor_at", lambda *arguments: None)


def newest_dropped(patch: pytest.MonkeyPatch) -> None:
    """A window without its newest turn."""
    patch.setattr(compose, "quiet", lambda units_, start, tally: tuple(units_[start:-1]) or tuple(units_[start:]))


def boundary_ahead(patch: pytest.MonkeyPatch) -> None:
    """A boundary that passes one message more than the archive covers."""
    real = leaving.advanced
    patch.setattr(settle, "advanced", lambda job, segment: _ahead(real(job, segment)))


def _ahead(record: Any) -> Any:
    return replace(record, boundary=record.boundary + 1)


def lost_message(patch: pytest.MonkeyPatch) -> None:
    """An append that drops its last message when there are several."""
    real = MemoryStore.append

    async def append(self: MemoryStore, session: str, entries: Sequence[Any], *rest: Any) -> Any:
        return await real(self, session, entries[:-1] if len(entries) > 1 else entries, *rest)

    patch.setattr(MemoryStore, "append", append)


def counting_read(patch: pytest.MonkeyPatch) -> None:
    """A read that tells how often it was called."""
    real = flow.compose
    counter = itertools.count()

    def composing(snapshot: Any, *arguments: Any) -> Composition:
        made = real(snapshot, *arguments)
        receipt = replace(made.context.receipt, covered=next(counter))
        return replace(made, context=replace(made.context, receipt=receipt))

    patch.setattr(flow, "compose", composing)


def wandering_quotes(patch: pytest.MonkeyPatch) -> None:
    """Quotes that stand at the end of a list, and not at the question that they are for."""
    real = flow.question_of

    def asking(*arguments: Any, **named: Any) -> Any:
        question = real(*arguments, **named)
        return question and replace(question, place=None)

    patch.setattr(flow, "question_of", asking)


def pinning_read(patch: pytest.MonkeyPatch) -> None:
    """A read that pins that it was read."""
    real = flow.context
    reads = itertools.count()

    async def context(session: Any, *arguments: Any) -> Context:
        read = await real(session, *arguments)
        pin = Pin(str(next(reads)), "read once more")
        session.store._sessions[session.id].pins[pin.id] = pin
        return read

    patch.setattr(flow, "context", context)


def ticking_head(patch: pytest.MonkeyPatch) -> None:
    """A head whose bytes change with every read."""
    real = present.headed
    ticks = itertools.count()
    patch.setattr(compose, "headed", lambda message, text, kind: real(message, f"{text}{next(ticks)}", kind))


def stale_layout(patch: pytest.MonkeyPatch) -> None:
    """A layout that is used again though the record has moved."""
    real = session.lay_out

    def laid_out(snapshot: Any, options: Any, tally: Any, pending: Any, before: Any) -> Any:
        made = real(snapshot, options, tally, pending, before)
        return replace(made, head=before.head) if before else made

    patch.setattr(session, "lay_out", laid_out)


def traces_of_pending(patch: pytest.MonkeyPatch) -> None:
    """A layout made with pending messages that later reads build on, unchecked."""
    patch.setattr(
        units, "_goes_on", lambda before, entries: before.entries[: before.settled] == entries[: before.settled]
    )
    real = session.lay_out

    class Keeping(session.Session):
        def lay_out(self, snapshot: Any, pending: Any = ()) -> Any:
            layout = real(snapshot, self.options, self.tally, pending, self.layouts.get(self.id))
            self.layouts.put(self.id, layout)
            return layout

    patch.setattr(session.Session, "lay_out", Keeping.lay_out)


def moving_note(patch: pytest.MonkeyPatch) -> None:
    """A late result that is moved to the front of its message."""
    real = compose.joined
    patch.setattr(compose, "joined", lambda first, second: real(second, first))


def forgetful_tally(patch: pytest.MonkeyPatch) -> None:
    """Counts that are not kept."""
    real = Tally.__init__
    patch.setattr(Tally, "__init__", lambda self, counter, failed, remember=0: real(self, counter, failed, 0))


def unmarked_changes(patch: pytest.MonkeyPatch) -> None:
    """Messages that we change and that do not say what they were."""
    patch.setattr(present, "marked", lambda changed, kind, before: changed)
    patch.setattr(units, "marked", lambda changed, kind, before: changed)


def unmarked_anchor(patch: pytest.MonkeyPatch) -> None:
    """A user message that stands for the rest of its turn and does not say so."""
    patch.setattr(compose, "_as_anchor", lambda alone: alone)


def prompt_of_the_call(patch: pytest.MonkeyPatch) -> None:
    """A system prompt of one call that looks like one of the conversation."""
    real = compose._system
    patch.setattr(
        compose,
        "_system",
        lambda *given: tuple(replace(one, message=replace(one.message, mark=None)) for one in real(*given)),
    )


FAULTS = {
    "budget": [uncut, heavier_head],
    "valid": [loose_results, no_stubs, split_pairs],
    "newest": [no_anchor, newest_dropped],
    "nothing lost": [boundary_ahead, lost_message],
    "pure": [counting_read, pinning_read, stale_layout, traces_of_pending],
    "prefix": [ticking_head, moving_note, wandering_quotes],
    "counted once": [forgetful_tally],
    "handed back": [unmarked_changes, unmarked_anchor, prompt_of_the_call],
}
TRIED = 60


@pytest.mark.parametrize(
    "invariant, fault",
    [(invariant, fault) for invariant, faults in FAULTS.items() for fault in faults],
    ids=lambda value: value.__name__ if callable(value) else value.replace(" ", "_"),
)
def test_a_planted_fault_is_caught(
    invariant: str, fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of the invariant fails on some conversation when the fault is in."""
    fault(monkeypatch)

    caught = any(_fails(seed, invariant) for seed in range(TRIED))

    assert caught


def _fails(seed: int, invariant: str) -> bool:
    """Whether the check of this invariant, and no other, fails on the conversation."""
    run = Run(script(seed), only=frozenset({invariant} - {"counted once"}), rewinds=invariant == "handed back")
    try:
        run.play()
    except AssertionError:
        return True
    except (ValueError, KeyError, IndexError, AttributeError, TypeError):
        return False  # the fault broke the code itself; that is not what is tried
    return False
