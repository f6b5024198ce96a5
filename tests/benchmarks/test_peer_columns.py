"""The checker of the checker: each column of the comparison is tried on a memory that was built to fail it."""

from __future__ import annotations

from typing import Any

import pytest
from peers import conversations, kept, losses, played, times
from peers.conversations import Talk
from peers.counting import Counter
from peers.memories import DEFAULTS, Kind, Ours, Whole
from peers.of_langchain import Trimmed, UntouchedTrimmed
from peers.of_llama_index import Buffer, UntouchedBuffer
from peers.protocol import Memory, Setting
from peers.writers import Script, quoting, useless
from retention import Fact
from retention import Talk as Corpus

Said = dict[str, Any]

CHAT = Talk(
    "chat",
    tuple(
        {"role": ("user", "assistant")[at % 2], "content": f"Remark {at} on matter {at * 7}, with a few more words."}
        for at in range(60)
    ),
)


def setting(count: Counter, *, budget: int = 800, **given: Any) -> Setting:
    """What a memory is made with here."""
    return Setting(count, Script(quoting(count), count, **given), budget)


def seen(memory: Memory, count: Counter, talk: Talk = CHAT, budget: int = 800) -> played.Seen:
    """What is seen of a conversation."""
    return played.watched(memory, talk, count, budget)


class Forgetting(Whole):
    """Hands out the first message alone."""

    def prompt(self) -> list[Said]:
        """The first message."""
        return super().prompt()[:1]


class Answering(Whole):
    """Begins with an assistant's message."""

    def prompt(self) -> list[Said]:
        """What no provider takes."""
        return [{"role": "tool", "tool_call_id": "nobody", "content": "lost"}, *super().prompt()]


class Shuffling(Whole):
    """Puts something new at the front of each prompt."""

    def prompt(self) -> list[Said]:
        """The same behind a number."""
        return [{"role": "user", "content": f"{len(super().prompt())}: here we go"}, *super().prompt()]


class Raising(Whole):
    """Raises at every prompt."""

    def prompt(self) -> list[Said]:
        """Nothing."""
        raise ValueError("no prompt today")


class Losing(Whole):
    """Throws away all but its newest message when its summariser fails."""

    def __init__(self, given: Setting) -> None:
        super().__init__(given)
        self._script = given.script
        self._summary = ""

    def prompt(self) -> list[Said]:
        """Summarise all but the newest at each turn."""
        gone, self._said = self._said[:-1], self._said[-1:]
        if gone:
            texts = "\n".join(str(one["content"]) for one in gone)
            self._summary = self._script(f"{self._summary}\n{texts}")
        return super().prompt()

    def held(self) -> list[str]:
        """What is left, and the summary."""
        return [*super().held(), self._summary]


def test_a_memory_that_keeps_everything_is_over_its_budget(count: Counter) -> None:
    """Prompts above the budget are counted, and the worst is told."""
    found = seen(Whole(setting(count)), count)

    assert found.over > 0
    assert found.worst == sum(map(count.said, CHAT.messages[:-1]))


def test_a_memory_that_forgets_the_question_is_found_out(count: Counter) -> None:
    """Every prompt but the first lacks the newest question."""
    assert seen(Forgetting(setting(count)), count).missing == CHAT.turns - 1


def test_a_memory_that_raises_has_no_question_in_its_prompt(count: Counter) -> None:
    """A turn that ends in an error is a failure, and a prompt without its question."""
    found = seen(Raising(setting(count)), count)

    assert (found.failed, found.missing) == (CHAT.turns, CHAT.turns)


def test_a_memory_that_hands_out_orphans_is_invalid(count: Counter) -> None:
    """A result that nobody asked for is refused in every prompt."""
    assert seen(Answering(setting(count)), count).invalid == CHAT.turns


def test_a_memory_whose_front_changes_reuses_nothing(count: Counter) -> None:
    """A prompt whose beginning changes costs the price of writing all of it, and a stable one a tenth of most."""
    shuffled, stable = (seen(kind(setting(count)), count) for kind in (Shuffling, Whole))

    assert shuffled.reused < 0.01 * shuffled.tokens
    assert stable.reused > 0.9 * stable.tokens
    assert shuffled.cost > 4 * stable.cost


def test_a_prefix_that_ends_inside_a_message_counts_in_part(count: Counter) -> None:
    """Of a message that changes half way, about half is re-used."""
    before, after = ([{"role": "user", "content": "a" * 100 + end * 100}] for end in "bc")

    assert played.reused(before, after, count) == pytest.approx(100, abs=3)


def test_a_needed_fact_that_is_not_shown_is_missed(count: Counter) -> None:
    """What an answer needs is looked for in its prompt."""
    talk = Talk("needs", CHAT.messages, needed={10: ("remark 4 on",), 12: ("remark 0 on",)})

    assert (
        seen(Forgetting(setting(count)), count, talk).needed,
        seen(Whole(setting(count)), count, talk).needed,
    ) == (1, 2)


def test_a_memory_that_throws_away_before_it_summarises_loses_messages(count: Counter) -> None:
    """What was thrown away when the summariser failed is lost, and ours loses nothing."""
    losing = Kind("losing", Losing, "")

    lost, failures, errors = losses.lost(losing, CHAT, count)

    assert failures == errors > 0
    assert lost >= failures
    assert losses.lost(DEFAULTS, CHAT, count)[0] == 0


def test_what_a_summary_of_a_summary_read_is_not_lost(count: Counter) -> None:
    """A message is followed through the summaries that were made of it, however far back."""
    script = Script(useless, count, marks=True)
    first = script("[000003: told :000003]")
    second = script(f"{first} [000004: and more :000004]")

    assert losses.kept([second], script) == {3, 4}
    assert losses.kept([first], script) == {3}


def test_a_corpus_fact_is_missed_where_only_a_useless_summary_is_left(count: Counter) -> None:
    """A summariser that says nothing loses the fact, an honest one keeps it."""
    said = [{"role": "user", "content": "My badge is K-4471."}, *CHAT.messages[1:]]
    corpus = [Corpus("one", "en", tuple(said), (Fact("a", "identifier", ("K-4471",), 0, ""),))]
    kind = Kind("langmem", _middleware, "langchain", summarises=True)

    shares = [kept.facts(kind, corpus, count, lies=lies) for lies in (True, False)]

    assert shares == [0, 1]


def _middleware(given: Setting) -> Memory:
    from peers.of_langchain import Middleware  # noqa: PLC0415  # one test needs it

    return Middleware(given)


def test_a_memory_that_counts_again_and_again_is_found_out(count: Counter) -> None:
    """A list that is trimmed anew is counted many times a message; ours counts each message once by itself."""
    tagged = conversations.tagged(CHAT.messages)

    again, _ = times.counted(Kind("trim", Trimmed, "", given_all=UntouchedTrimmed), tagged, count, None)
    _, alone = times.counted(DEFAULTS, tagged, count, None)

    assert again > 10
    assert alone == 1


def test_a_summary_that_is_waited_for_is_a_pause(count: Counter) -> None:
    """A memory that waits for its summariser pauses at least as long as one summary takes."""
    assert times.longest_pause(Kind("losing", Losing, ""), 3, 1, count, None) >= times.PAUSE


@pytest.mark.parametrize("spared, whole", [(Trimmed, UntouchedTrimmed), (Buffer, UntouchedBuffer)])
def test_what_a_peer_is_spared_changes_nothing(count: Counter, spared: Any, whole: Any) -> None:
    """A memory that is given only what it might keep hands out what it would have of everything."""
    memories = [kind(setting(count)) for kind in (spared, whole)]

    for message in CHAT.messages:
        for memory in memories:
            memory.add(message)
        if message["role"] == "user":
            assert memories[0].prompt() == memories[1].prompt()


def test_ours_passes_every_column(count: Counter) -> None:
    """Under the same checks ours is inside its budget, valid, and holds the question."""
    found = seen(Ours(setting(count), writes=True), count)

    assert (found.over, found.invalid, found.missing, found.failed) == (0, 0, 0, 0)
    assert found.worst <= 800
