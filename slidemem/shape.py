"""Decides whether a frozen value that was read from outside holds what its fields say they hold."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints


def misfit(value: object, name: str = "") -> str:
    """The first field of a dataclass that holds another type than it says, with what it holds; "" when none does.

    Args:
        value: a dataclass, whose fields are texts, numbers, dataclasses, and tuples, unions and literals of them.
        name: of the value itself, before those of its fields.
    """
    kind: Any = type(value)
    for field, hint in _hints(kind).items():
        found = _misfit(getattr(value, field), hint, f"{name}.{field}".lstrip("."))
        if found:
            return found
    return ""


def _misfit(value: object, hint: Any, name: str) -> str:
    origin = get_origin(hint)
    if origin is tuple:
        return _in_tuple(value, get_args(hint), name)
    if origin in {Union, types.UnionType}:
        found = [_misfit(value, one, name) for one in get_args(hint)]
        return "" if "" in found else found[0]
    if origin is Literal:
        return "" if value in get_args(hint) else _told(name, value)
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        return _told(name, value)
    return misfit(value, name) if is_dataclass(value) else ""


def _in_tuple(value: object, hints: tuple[Any, ...], name: str) -> str:
    if not isinstance(value, tuple):
        return _told(name, value)
    held = cast("tuple[object, ...]", value)
    every = hints[0] if hints[-1:] == (...,) else None
    if every is None and len(held) != len(hints):
        return _told(name, held)
    pairs = ((one, every or hints[at], f"{name}[{at}]") for at, one in enumerate(held))
    return next((found for found in (_misfit(*pair) for pair in pairs) if found), "")


def _told(name: str, value: object) -> str:
    return f"{name} is {value!r:.60}"


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}
