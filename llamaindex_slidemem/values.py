"""Decides how the values inside a ChatMessage become JSON, and what comes back of those that JSON cannot hold.

Texts, numbers, lists and dicts stand as they are; bytes, paths and addresses are tagged and come back exactly.
Anything else (a provider's own object, a tuple) is kept in this process and comes back as it was as long as this
process remembers it; elsewhere comes what LlamaIndex's own stores would have written of it.
"""

from __future__ import annotations

import base64
import copy
import itertools
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast
from uuid import uuid4

from llama_index.core.bridge.pydantic import AnyUrl, BaseModel
from pydantic_core import from_json, to_json

_TAG: Final = "$slidemem"
_LONG: Final = 2_000  # bits of a number that Python may refuse to write


class Values:
    """Packs values into JSON and unpacks them.

    What JSON cannot hold is remembered here, so that only the same object gives it back as it was.
    """

    def __init__(self) -> None:
        self._here = uuid4().hex
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Drop what is remembered."""
        with self._lock:
            self._numbers = itertools.count()
            self._names: dict[int, str] = {}  # by identity of an object, which `_kept` holds so that it stays its own
            self._kept: dict[str, tuple[object, object]] = {}

    def pack(self, value: object) -> Any:
        """JSON of a value; what JSON cannot hold is remembered."""
        return _packed(value, self)

    def unpack(self, packed: object) -> Any:
        """The value of `pack`'s JSON, a new one wherever it can be copied."""
        if isinstance(packed, list):
            return [self.unpack(item) for item in cast("list[object]", packed)]
        if not isinstance(packed, dict):
            return packed
        fields = cast("dict[str, Any]", packed)
        if _TAG not in fields:
            return {key: self.unpack(value) for key, value in fields.items()}
        return self._untagged(fields)

    def keep(self, value: object) -> str:
        """Remember an object; its name, the same for the same object."""
        with self._lock:
            name = self._names.get(id(value))
            if name is None:
                name = self._names[id(value)] = f"{self._here}-{next(self._numbers)}"
                self._kept[name] = (value, _copied(value))
            return name

    def _untagged(self, fields: dict[str, Any]) -> Any:
        kind, said = fields[_TAG], fields.get("as")
        if kind == "dict":
            return {key: self.unpack(value) for key, value in cast("dict[str, Any]", said).items()}
        if kind == "bytes":
            return str(said).encode("ascii")
        if kind == "base64":
            return base64.b64decode(str(said))
        if kind == "path":
            return Path(str(said))
        if kind == "url":
            return AnyUrl(str(said))
        with self._lock:
            kept = self._kept.get(str(fields.get("name")))
        return _copied(kept[1]) if kept else self.unpack(said)


def plain(value: object) -> Any:
    """JSON of a value that depends on nothing but the value; what JSON cannot hold is written as LlamaIndex does."""
    return _packed(value, None)


def bare(value: object) -> Any:
    """JSON of a value with nothing of ours in it, as LlamaIndex's own stores write it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, BaseModel):
        return {name: bare(item) for name, item in value}
    if isinstance(value, (list, tuple)):
        return [bare(item) for item in cast("Sequence[object]", value)]
    fields = _json_object(value)
    return _written(value) if fields is None else {key: bare(item) for key, item in fields.items()}


def _packed(value: object, values: Values | None) -> Any:
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        if isinstance(value, int) and value.bit_length() > _LONG:
            str(value)  # raises where JSON would
        return value
    if isinstance(value, list):
        return [_packed(item, values) for item in cast("list[object]", value)]
    fields = _json_object(value)
    if fields is not None:
        packed = {key: _packed(item, values) for key, item in fields.items()}
        return {_TAG: "dict", "as": packed} if _TAG in fields else packed
    tagged = _tagged(value)
    if tagged:
        return tagged
    return {_TAG: "object", "name": values.keep(value), "as": _written(value)} if values else _written(value)


def _json_object(value: object) -> dict[str, object] | None:
    """The value when it is a dict as JSON has them."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[object, object]", value)
    return cast("dict[str, object]", fields) if all(isinstance(key, str) for key in fields) else None


def _tagged(value: object) -> dict[str, str] | None:
    """What stands for a value that comes back exactly."""
    if isinstance(value, bytes):
        return _packed_bytes(value)
    if isinstance(value, Path):
        return {_TAG: "path", "as": str(value)}
    return {_TAG: "url", "as": str(value)} if isinstance(value, AnyUrl) else None


def _packed_bytes(value: bytes) -> dict[str, str]:
    """Media are base64 already in LlamaIndex's blocks, and are not made a third larger once more."""
    if value.isascii():
        return {_TAG: "bytes", "as": value.decode("ascii")}
    return {_TAG: "base64", "as": base64.b64encode(value).decode("ascii")}


def _written(value: object) -> Any:
    """What stands for an object in another process."""
    if isinstance(value, BaseModel):  # field by field: its own serializer may fail on bytes
        return {name: plain(item) for name, item in value}
    if isinstance(value, tuple):
        return [plain(item) for item in cast("tuple[object, ...]", value)]
    return from_json(to_json(value, bytes_mode="base64", inf_nan_mode="strings", fallback=_said))


def _said(value: object) -> str:
    """What an object says of itself, without the place in memory where it happens to be."""
    kind = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        return f"<{kind.__module__}.{kind.__qualname__}>"
    return str(value)


def _copied(value: object) -> object:
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001  # a client, a lock: what cannot be copied is handed out as it is
        return value
