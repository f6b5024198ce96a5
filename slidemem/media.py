"""Decides where a block's media are: at an address, or in the block, whichever provider's shape it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

_HELD: Final = ("data", "base64", "file_data", "url", "image_url", "video_url", "file_uri", "uri", "path")
_TYPED: Final = ("mime_type", "media_type")


def address_of(source: str, kind: str) -> str:
    """Where the media of a block are: an address, or `data:image/png;base64,…`; "" where it does not say.

    Args:
        source: the block as JSON text.
        kind: of its media, for the type of data that is named by its format alone.
    """
    try:
        block: object = json.loads(source) if source else None
    except (ValueError, RecursionError):
        return ""
    found = _found(cast("Mapping[str, Any]", block)) if isinstance(block, dict) else None
    if found is None:
        return ""
    held, key, fields = found
    inline = key in {"data", "base64"} or (key == "file_data" and not held.startswith("data:"))
    return f"data:{_type(fields, kind)};base64,{held}" if inline and not held.startswith("data:") else held


def _found(block: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any]] | None:
    """What is held, under which key, and what stands beside it."""
    for key in _HELD:
        held = block.get(key)
        if isinstance(held, str) and held:
            return held, key, block
    inner = (_found(cast("Mapping[str, Any]", value)) for value in block.values() if isinstance(value, dict))
    return next((one for one in inner if one), None)


def _type(fields: Mapping[str, Any], kind: str) -> str:
    named = next((fields[key] for key in _TYPED if isinstance(fields.get(key), str)), None)
    written = fields.get("format")
    return str(named or (f"{kind}/{written}" if isinstance(written, str) else ""))
