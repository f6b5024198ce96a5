"""Decides how a content block is a neutral part, and which block a part is.

A part's JSON is OpenAI's shape (thinking: Anthropic's), so that summarisers and other frameworks read it. Where a
block says more than that, the message keeps its own JSON besides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from io import IOBase
from typing import Any, Final, Literal, cast

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import (
    AudioBlock,
    CachePoint,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
)
from llama_index.core.bridge.pydantic import AnyUrl, BaseModel, ValidationError

from llamaindex_slidemem.values import plain
from slidemem import Part

PartKind = Literal["text", "reasoning", "image", "audio", "video", "file", "other"]
Fields = dict[str, Any]

_DATA: Final = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_KINDS: Final[Mapping[str, PartKind]] = {"image": "image", "audio": "audio", "video": "video", "document": "file"}


def fields_of(block: BaseModel) -> Fields:
    """The fields of a block, nested blocks as dicts; a stream is read as its bytes."""
    return {name: _field(value) for name, value in block}


def part_of(block: BaseModel) -> Part:
    """The neutral part of a block."""
    if type(block) is TextBlock:
        return Part("text", block.text)
    if isinstance(block, ThinkingBlock):
        return _thought(block)
    if isinstance(block, CitableBlock):
        return _quoted(f"{block.title} ({block.source})", block.content)
    if isinstance(block, CitationBlock):
        return _quoted(f"{block.title} ({block.source})", [block.cited_content])
    if isinstance(block, TextBlock):
        return _sourced("text", {"type": "text", "text": block.text}, block.text)
    kind = str(getattr(block, "block_type", "other"))
    fields = fields_of(block)
    known = _KINDS.get(kind)
    return _sourced(known, _WRITERS[known](fields)) if known else _sourced("other", {**fields, "type": kind})


def block_of(part: Part) -> BaseModel:
    """The block of a part, whichever framework it came from; a text that names it when there is none."""
    if not part.source:
        return ThinkingBlock(content=part.text) if part.kind == "reasoning" else TextBlock(text=part.text)
    return _read(part) or _found(part) or TextBlock(text=part.text or f"[{part.kind}]")


def _read(part: Part) -> BaseModel | None:
    """The block of a part in the shape that we write; None for a shape of somebody else's."""
    try:
        return _READERS.get(part.kind, _named)(cast("Fields", json.loads(part.source)))
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _found(part: Part) -> BaseModel | None:
    """The block of thinking or media in whatever shape, when it says where they are."""
    if part.kind == "reasoning":
        return ThinkingBlock(content=part.text, additional_information=json.loads(part.source))
    address = part.address
    try:
        return _PLACED[part.kind](address) if address and part.kind in _PLACED else None
    except ValidationError:  # an id of a provider's, say
        return None


def _field(value: object) -> object:
    if isinstance(value, BaseModel) and type(value).__module__ == types.__name__:  # a block, or a part of one
        return fields_of(value)
    if isinstance(value, list):
        return [_field(item) for item in cast("list[object]", value)]
    if isinstance(value, IOBase):
        value.seek(0)
        return value.read()
    return value


def _sourced(kind: PartKind, source: Fields, text: str = "") -> Part:
    return Part(kind, text, json.dumps(plain(source), sort_keys=True))


def _thought(block: ThinkingBlock) -> Part:
    """Thinking, with its signature where it has one."""
    text, beside = block.content or "", block.additional_information
    return (
        _sourced("reasoning", {**beside, "type": "thinking", "thinking": text}, text)
        if beside
        else Part("reasoning", text)
    )


def _quoted(named: str, blocks: Sequence[BaseModel]) -> Part:
    """A source with its texts; when there are media in it, the first of those."""
    parts = [part_of(block) for block in blocks]
    media = next((part for part in parts if part.kind != "text"), None)
    if media:
        return media
    text = "\n".join((named, *(part.text for part in parts)))
    return _sourced("text", {"type": "text", "text": text}, text)


# ------------------------------------------------------------------ media out


def _address(fields: Fields, name: str, mime: object) -> str:
    """Where the media are: in the address itself, at one, or in a file."""
    data = fields.get(name)
    if isinstance(data, bytes) and data:
        return f"data:{mime or ''};base64,{data.decode('latin-1')}"
    return str(fields.get("url") or fields.get("path") or "")


def _image_part(fields: Fields) -> Fields:
    url = _address(fields, "image", fields.get("image_mimetype"))
    detail = fields.get("detail")
    return {"type": "image_url", "image_url": {"url": url, **({"detail": detail} if detail else {})}}


def _audio_part(fields: Fields) -> Fields:
    data = fields.get("audio")
    if isinstance(data, bytes) and data:
        audio = {"data": data.decode("latin-1"), "format": fields.get("format")}
        return {"type": "input_audio", "input_audio": audio}
    return {"type": "audio", "url": _address(fields, "audio", None), "format": fields.get("format")}


def _video_part(fields: Fields) -> Fields:
    return {"type": "video_url", "video_url": {"url": _address(fields, "video", fields.get("video_mimetype"))}}


def _file_part(fields: Fields) -> Fields:
    address = _address(fields, "data", fields.get("document_mimetype"))
    return {"type": "file", "file": {"file_data": address, "filename": fields.get("title")}}


_WRITERS: Final[Mapping[str, Callable[[Fields], Fields]]] = {
    "image": _image_part,
    "audio": _audio_part,
    "video": _video_part,
    "file": _file_part,
}


# ------------------------------------------------------------------ parts in


def _nested(fields: Fields, name: str) -> Fields:
    """What stands under a name: an object, or an address alone."""
    found = fields[name]
    return cast("Fields", found) if isinstance(found, dict) else {"url": found}


def _image(fields: Fields) -> BaseModel:
    found = _nested(fields, "image_url")
    return _media(ImageBlock, "image", found["url"], detail=found.get("detail"))


def _video(fields: Fields) -> BaseModel | None:
    kind = getattr(types, "VideoBlock", None)
    return _media(kind, "video", _nested(fields, "video_url")["url"]) if kind else None


def _audio(fields: Fields) -> BaseModel:
    if "url" in fields:
        return AudioBlock.model_construct(url=AnyUrl(fields["url"]), format=fields.get("format"))
    found = _nested(fields, "input_audio")
    return AudioBlock.model_construct(audio=found["data"].encode("latin-1"), format=found.get("format"))


def _file(fields: Fields) -> BaseModel:
    found = _nested(fields, "file")
    inline, title = _DATA.fullmatch(found["file_data"]), found.get("filename")
    if inline is None:
        return DocumentBlock(url=found["file_data"], title=title)
    data = inline[2].encode("latin-1")
    return DocumentBlock.model_construct(data=data, title=title, document_mimetype=inline[1] or None)


def _media(kind: type[BaseModel], name: str, url: str, **fields: Any) -> BaseModel:
    inline = _DATA.fullmatch(url)
    if inline:
        fields = {**fields, name: inline[2].encode("latin-1"), f"{name}_mimetype": inline[1] or None}
        return kind.model_construct(**fields)
    return kind(url=url, **fields)


def _placed_audio(address: str) -> BaseModel:
    inline = _DATA.fullmatch(address)
    if inline is None:
        return AudioBlock(url=AnyUrl(address))
    return AudioBlock.model_construct(audio=inline[2].encode("latin-1"), format=inline[1].partition("/")[2] or None)


def _placed_video(address: str) -> BaseModel | None:
    return _video({"video_url": address})


def _thinking(fields: Fields) -> BaseModel:
    beside = {key: value for key, value in fields.items() if key not in {"type", "thinking"}}
    return ThinkingBlock(content=fields["thinking"], additional_information=beside)


def _named(fields: Fields) -> BaseModel | None:
    return CachePoint.model_validate(fields) if fields.get("type") == "cache" else None


_PLACED: Final[Mapping[str, Callable[[str], BaseModel | None]]] = {
    "image": lambda address: _media(ImageBlock, "image", address),
    "audio": _placed_audio,
    "video": _placed_video,
    "file": lambda address: _file({"file": {"file_data": address}}),
}
_READERS: Final[Mapping[str, Callable[[Fields], BaseModel | None]]] = {
    "image": _image,
    "audio": _audio,
    "video": _video,
    "file": _file,
    "reasoning": _thinking,
}
