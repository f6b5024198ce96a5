"""What a process remembers of texts, and forgets."""

from __future__ import annotations

import gc

import pytest

from slidemem import SlideMem
from slidemem.remembered import forget_texts, remembered


def test_an_answer_is_found_once_until_it_is_forgotten() -> None:
    """The same arguments are not asked again, the oldest go where there are too many, and all go at once."""
    asked: list[int] = []

    @remembered(2)
    def twice(number: int) -> int:
        asked.append(number)
        return number * 2

    assert [2, 2, 4, 6, 2] == [twice(number) for number in (1, 1, 2, 3, 1)]
    assert [1, 2, 3, 1] == asked
    forget_texts()
    assert 2 == twice(1)
    assert [1, 2, 3, 1, 1] == asked


@pytest.mark.parametrize("through", ["the session", "the user"])
def test_what_is_deleted_is_in_no_corner_of_the_process(through: str) -> None:
    """No text that the process holds has a word of a cleared session or a deleted user."""
    mem = SlideMem(max_tokens=300, counter=lambda text: len(text.split()))
    chat = mem.session("s", user_id="ann")
    word = "zeb" + "rafish"  # joined here, so that no constant of this file has it
    for at in range(40):
        chat.append({"role": "user", "content": f"I am allergic to {word} {at} of Pune, {at} euros."})
        chat.append({"role": "assistant", "content": f"Noted: no {word} {at}."})
    assert word in str(chat.context(query=f"Which {word} am I allergic to?").to_openai())

    if through == "the session":
        chat.clear()
    else:
        mem.delete_user("ann")

    del chat
    gc.collect()
    held = [one for one in _texts() if word in one and one is not word]
    assert [] == held


def _texts() -> set[str]:
    """Every text that a container of the process holds."""
    return {
        one
        for holder in gc.get_objects()
        for one in gc.get_referents(holder)
        if isinstance(one, str) and len(one) > len("zebrafish") - 1
    }
