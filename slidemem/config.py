"""Decides which options there are, and that a wrong one raises when the object is made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, ValidationError

from slidemem.costs import Prices
from slidemem.cues import Cue
from slidemem.errors import ConfigurationError

_LINE: Final = 4  # tokens that the shortest head is over, by any counter
MOST: Final = 10**12  # tokens; no number beyond it is meant
MOST_FACTOR: Final = 2.0  # no tokenizer of today makes more than twice the tokens of another one
_ELSEWHERE: Final = {  # names of the frameworks, and what is called so here
    "summarizer": "consolidator",
    "token_counter": "counter",
    "tokenizer_fn": "counter",
    "token_limit": "max_tokens",
}
_TYPO: Final = 0.85  # how alike two names are, by difflib, when one is the other mistyped

Fraction = Annotated[StrictFloat, Field(ge=0, le=1)]
Tokens = Annotated[StrictInt, Field(ge=0, le=MOST)]
Positive = Annotated[StrictInt, Field(ge=1, le=MOST)]
Share = Fraction | Tokens
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Options(BaseModel):
    """The options of a memory; frozen.

    Attributes:
        max_tokens: budget of everything a context returns, in tokens.
        reserve_tokens: tokens kept free for what the memory does not see: tools, answer, system prompt.
        count_system: whether the system prompt counts against the budget.
        archive_share: upper limit of archive and pins together, as a share of usable, or in tokens (int).
        recall_share: kept free for recall once something is archived, as a share of usable, or in tokens.
        recall_scope: whose old messages are quoted and searched: those of the `session`, or of all sessions of its
            `user`, where it has a `user_id`.
        compact_at: share of the window's allotment at which consolidation starts.
        compact_to: share of the window's allotment down to which it goes.
        keep_turns: newest turns that stay verbatim while they fit.
        window_turns: consolidate also when more turns than this are in the window; None for no limit.
        batch_turns: how many turns leave then; None for half of `window_turns`.
        keep_first_user: keep the conversation's first user message verbatim in the head.
        oversize: what happens to a message larger than half of usable: `clamp` it, or `raise`.
        archive_role: where the head stands: `merge` (in front of the first shown user message's text), or a
            message of its own with the role `user` or `system`.
        alternate: join neighbouring messages of one role, the user's own too.
        mode: `inline` (consolidate while appending), `background` (behind the caller's back, on a thread or in
            a task) or `manual` (only when asked).
        summary_seconds: how long a summariser is waited for; None for as long as it takes. One that keeps its own
            time (`keeps_time = True`) is left to it.
        embedding_seconds: how long an embedding model or a vector store is waited for at each call; None for as long
            as it takes.
        summary_input_tokens: what a summariser's model takes in one prompt, in tokens; a larger span is summarised in
            pieces. None for any length.
        prices: what tokens cost, for `stats().money`; see `Prices`.
        cues: a user's own signs that a sentence matters: regular expressions, and what each multiplies a sentence's
            worth by. A number multiplies it by 4, a prohibition by 4.5, an identifier by 25.
        pin_scope: whose pins are: the `session`'s, or the `user`'s, shown in all sessions of the `user_id` (a session
            without one keeps its own).
        correct_counts: whether the budget follows what providers report of their prompts, see
            `ConversationMemory.report`; for a model whose tokenizer nobody has.
        token_factor: how many of the provider's tokens one of ours is, to begin with, 1 to 2; `stats().token_factor`
            of an earlier process.
        flush_seconds: how long `flush`, and the end of the process, wait for what runs in the background.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: Positive
    reserve_tokens: Tokens = 0
    count_system: StrictBool = True
    archive_share: Share = 0.2
    recall_share: Share = 0.25
    recall_scope: Literal["session", "user"] = "session"
    compact_at: Fraction = 0.9
    compact_to: Fraction = 0.5
    keep_turns: Positive = 1
    window_turns: Positive | None = None
    batch_turns: Positive | None = None
    keep_first_user: StrictBool = False
    oversize: Literal["clamp", "raise"] = "clamp"
    archive_role: Literal["merge", "user", "system"] = "merge"
    alternate: StrictBool = False
    mode: Literal["inline", "background", "manual"] = "inline"
    summary_seconds: Annotated[float, Field(gt=0, le=MOST)] | None = 60.0
    embedding_seconds: Annotated[float, Field(gt=0, le=MOST)] | None = 10.0
    summary_input_tokens: Annotated[StrictInt, Field(ge=200, le=MOST)] | None = None
    prices: Prices | None = None
    cues: Mapping[str, Annotated[float, Field(gt=0, le=1000)]] = Field(default_factory=dict)
    pin_scope: Literal["session", "user"] = "session"
    correct_counts: StrictBool = False
    token_factor: Annotated[float, Field(ge=1, le=MOST_FACTOR)] = 1.0
    flush_seconds: Seconds = 30.0

    @classmethod
    def of(cls, **options: Any) -> Options:
        """Check and freeze options.

        Raises:
            ConfigurationError: an unknown option, a value of the wrong type or range, or values that
                contradict each other.
        """
        try:
            made = cls.model_validate(options)
        except ValidationError as invalid:
            raise ConfigurationError(_sentence(invalid)) from None
        _refuse_contradictions(made)
        return made

    @cached_property
    def usable(self) -> int:
        """Tokens that a context may take: `max_tokens` less `reserve_tokens`."""
        return self.max_tokens - self.reserve_tokens

    @cached_property
    def archive_tokens(self) -> int:
        """Tokens that archive and pins may take together."""
        return _of(self.archive_share, self.usable)

    @cached_property
    def allotment(self) -> int:
        """Tokens of the window once something is archived: usable less the shares of archive and recall.

        An archive of so few tokens that no counter takes a line for it leaves them to the window.
        """
        archive = self.archive_tokens if self.archive_tokens >= _LINE else 0
        return self.usable - archive - self.recall_tokens

    @cached_property
    def recall_tokens(self) -> int:
        """Tokens that are kept free for recall once something is archived."""
        return _of(self.recall_share, self.usable)

    @cached_property
    def unit_tokens(self) -> int:
        """Tokens that one unit may show: half of usable."""
        return self.usable // 2

    @cached_property
    def signs(self) -> tuple[Cue, ...]:
        """The cues, ready for use."""
        return tuple(Cue(re.compile(pattern, re.IGNORECASE), weight) for pattern, weight in self.cues.items())

    @cached_property
    def leaving_turns(self) -> int:
        """How many turns leave when the window holds more than `window_turns`."""
        return self.batch_turns or max(1, (self.window_turns or 1) // 2)


def _refuse_contradictions(options: Options) -> None:
    try:
        empty = [cue.pattern.pattern for cue in options.signs if cue.pattern.match("")]
    except re.error as wrong:
        raise ConfigurationError(f"cues must be regular expressions: {wrong}") from None
    if empty:
        raise ConfigurationError(f"these cues match everything: {', '.join(map(repr, empty))}")
    if options.usable < 1:
        raise ConfigurationError(
            f"reserve_tokens ({options.reserve_tokens}) leaves nothing of max_tokens ({options.max_tokens}): "
            "raise max_tokens or reserve less"
        )
    if options.allotment < 1:
        raise ConfigurationError(
            f"archive_share ({options.archive_share}) and recall_share ({options.recall_share}) leave nothing "
            f"of {options.usable} usable tokens for the window: lower one of them"
        )
    if not 0 < options.compact_to < options.compact_at:
        raise ConfigurationError(
            f"compact_to ({options.compact_to}) must be above 0 and below compact_at ({options.compact_at}): "
            "consolidation goes from the one down to the other"
        )
    if options.batch_turns is not None and options.batch_turns > (options.window_turns or 0):
        raise ConfigurationError(
            f"batch_turns ({options.batch_turns}) needs window_turns of that or more, got {options.window_turns}"
        )


def _of(share: float, usable: int) -> int:
    return share if isinstance(share, int) else int(share * usable)


def _sentence(invalid: ValidationError) -> str:
    """The faults of options in a sentence each; where one is unknown, with those that there are."""
    faults: dict[str, str] = {}
    for error in invalid.errors():
        name, *inner = map(str, error["loc"])
        unknown = error["type"] == "extra_forbidden"
        told = f"{error['msg']}, got {error['input']!r:.60}"
        if unknown:
            told = f"it has no {inner[0]!r}" if inner else f"there is no such option{_meant(name)}"
        faults[name] = f"{faults[name]}, or {told}" if name in faults and not unknown else f"{name}: {told}"
    known = any(error["type"] in {"extra_forbidden", "missing"} for error in invalid.errors())
    names = Prices.model_fields if set(faults) == {"prices"} else Options.model_fields
    return f"wrong options: {'; '.join(faults.values())}" + (f" (known: {', '.join(names)})" if known else "")


def _meant(name: str) -> str:
    """A question that names the option which is probably meant, where there is one."""
    close = get_close_matches(name, Options.model_fields, n=1, cutoff=_TYPO)
    meant = _ELSEWHERE.get(name) or (close[0] if close else None)
    return f", did you mean {meant}?" if meant else ""
