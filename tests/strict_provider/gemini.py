"""Decides how Gemini's generateContent is read and answered.

The request: https://ai.google.dev/api/generate-content; its contents:
https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1beta1/Content; errors:
https://ai.google.dev/gemini-api/docs/troubleshooting. Calls have no ids there: results answer the calls of the turn
before by their names and their number.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from strict_provider.wire import (
    CALL,
    FRAME,
    IMAGE,
    Asked,
    Block,
    Body,
    Message,
    Refused,
    Spoken,
    Usage,
    check,
    compact,
    demand,
    signed,
    sse,
    words,
)

_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
)
_STANDARD = str.maketrans("-_", "+/")
_SKIP = base64.b64encode(b"skip_thought_signature_validator").decode("ascii")


class Gemini:
    """Gemini's `POST /v1beta/models/{model}:generateContent`, and `:streamGenerateContent`."""

    name = "gemini"
    automatic = True

    def read(self, body: Body, path: str) -> Asked:
        """The request.

        Raises:
            Refused: it breaks a rule.
        """
        contents = [_content(content, at) for at, content in enumerate(body.get("contents") or ())]
        system = _system(body.get("systemInstruction") or {})
        messages = list(_messages(contents))
        check([*system, *messages], "gemini", ignore=["unknown-result-id", "null-content"])
        _names(contents)
        _signatures(contents)
        declared = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]
        thinking = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
        return Asked(
            model=path.rpartition("/")[2].partition(":")[0],
            blocks=tuple(_blocks(declared, system, contents)),
            messages=tuple(messages),
            tools=tuple(one["name"] for one in declared),
            thinks=bool(thinking.get("includeThoughts")),
            streams=":stream" in path,
            body=body,
        )

    def answer(self, asked: Asked, spoken: Spoken, usage: Usage) -> dict[str, Any]:
        """A `GenerateContentResponse`."""
        return _response(asked, spoken, _parts(spoken), usage, "STOP")

    def pieces(self, asked: Asked, spoken: Spoken, usage: Usage) -> Iterator[bytes]:
        """Responses, each with the next parts."""
        parts = _parts(spoken)
        for part in parts[:-1]:
            yield sse(_response(asked, spoken, [part], None, None))
        last = parts[-1]
        if "text" in last:
            *before, end = list(words(last["text"]))
            for piece in before:
                yield sse(_response(asked, spoken, [{"text": piece}], None, None))
            last = {**last, "text": end}
        yield sse(_response(asked, spoken, [last], usage, "STOP"))

    def refusal(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        """Google's error object."""
        detail = f"{refused.detail} ({refused.rule})"
        return {"error": {"code": refused.status, "message": detail, "status": "INVALID_ARGUMENT"}}, {}

    def too_long(self, tokens: int, limit: int) -> Refused:
        """What Gemini says: https://github.com/google-gemini/gemini-cli/issues/8026."""
        detail = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit})."
        return Refused("context-length", detail)


def _content(content: Message, at: int) -> Message:
    """A content whose parts are known.

    A role "must be either 'user' or 'model'"; a part is one of its kinds: "required oneof field 'data' must have one
    initialized field" https://github.com/router-for-me/CLIProxyAPI/issues/1292
    """
    role = content.get("role", "user")
    demand(role in {"user", "model"}, "unknown-role", "Please use a valid role: user, model.")
    parts = [dict(part) for part in content.get("parts") or ()]
    demand(parts, "empty-parts", f"contents[{at}].parts must not be empty.")
    for place, part in enumerate(parts):
        kinds = [kind for kind in _DATA if part.get(kind) not in (None, "")]
        where = f"contents[{at}].parts[{place}].data"
        demand(len(kinds) == 1, "part-data", f"{where}: required oneof field 'data' must have one initialized field")
    return {"role": role, "parts": parts}


def _system(instruction: Message) -> list[Message]:
    parts = instruction.get("parts") or ()
    return [{"role": "system", "content": part["text"]} for part in parts if part.get("text")]


def _messages(contents: Sequence[Message]) -> Iterator[Message]:
    """Contents as OpenAI-format messages; calls get ids from their places."""
    open_calls: list[tuple[str, str]] = []
    for at, content in enumerate(contents):
        parts = content["parts"]
        if content["role"] == "model":
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            open_calls = [(call["name"], f"{at}-{place}") for place, call in enumerate(calls)]
            said = [{"type": "text", "text": part["text"]} for part in parts if "text" in part]
            message: Message = {"role": "assistant", "content": said or None}
            if calls:
                message["tool_calls"] = [
                    {
                        "id": id_,
                        "type": "function",
                        "function": {"name": call["name"], "arguments": compact(call.get("args") or {})},
                    }
                    for call, (_, id_) in zip(calls, open_calls, strict=True)
                ]
            yield message
            continue
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        for result in results:
            id_ = next((id_ for name, id_ in open_calls if name == result["name"]), "")
            open_calls = [call for call in open_calls if call[1] != id_]
            yield {"role": "tool", "tool_call_id": id_, "content": compact(result.get("response"))}
        rest = [_part(part) for part in parts if "functionResponse" not in part]
        if rest:
            yield {"role": "user", "content": rest}


def _part(part: Message) -> Message:
    return (
        {"type": "text", "text": part["text"]} if "text" in part else {"type": "image_url", "image_url": {"url": ""}}
    )


def _names(contents: Sequence[Message]) -> None:
    """Each response is to a call of the content before it.

    "Please ensure that function response turn comes immediately after a function call turn. And the number of
    function response parts should be equal to number of function call parts of the function call turn."
    https://github.com/google-gemini/gemini-cli/issues/4217
    """
    for before, content in zip([{"parts": ()}, *contents], contents, strict=False):
        answered = sorted(part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part)
        called = sorted(part["functionCall"]["name"] for part in before["parts"] if "functionCall" in part)
        demand(
            not answered or answered == called,
            "response-turn",
            f"Please ensure that function response turn comes immediately after a function call turn: {answered}",
        )


def _signatures(contents: Sequence[Message]) -> None:
    """Each step of the current turn has the signature of its first call, where the model gave one.

    "Function call is missing a thought_signature in functionCall parts."
    https://ai.google.dev/gemini-api/docs/thought-signatures; a turn begins with what a user says.
    """
    asked = max((at for at, one in enumerate(contents) if one["role"] == "user" and _asks(one)), default=0)
    for at, content in enumerate(contents):
        calls = [part for part in content["parts"] if "functionCall" in part]
        for place, part in enumerate(calls):
            signature = part.get("thoughtSignature")
            name = part["functionCall"]["name"]
            missing = f"Function call `{name}` in the {at}. content block is missing a `thought_signature`."
            demand(signature or place or at < asked, "thought-signature", missing)
            genuine = signature is None or _genuine(signature, part["functionCall"])
            demand(genuine, "corrupt-signature", "Corrupted thought signature.")


def _asks(content: Message) -> bool:
    return not all("functionResponse" in part for part in content["parts"])


def _genuine(signature: str, call: Message) -> bool:
    """Whether it is the call's own, in either alphabet of base64, or the published one for calls of other models."""
    return signature.translate(_STANDARD) in {_signature(call), _SKIP}


def _signature(call: Message) -> str:
    return signed(call["name"] + compact(call.get("args") or {}))


def _blocks(declared: Sequence[Message], system: Sequence[Message], contents: Sequence[Message]) -> Iterator[Block]:
    for one in declared:
        yield Block(compact(one))
    for message in system:
        yield Block(message["content"], FRAME, "system")
    for content in contents:
        images = sum("inlineData" in part or "fileData" in part for part in content["parts"])
        calls = sum("functionCall" in part for part in content["parts"])
        said = "".join(map(_said, content["parts"]))
        yield Block(said, FRAME + IMAGE * images + CALL * calls, content["role"])


def _said(part: Message) -> str:
    if "functionCall" in part:
        return f"{part['functionCall']['name']}{compact(part['functionCall'].get('args') or {})}"
    if "functionResponse" in part:
        return f"{part['functionResponse']['name']}{compact(part['functionResponse'].get('response'))}"
    return str(part.get("text") or "")


def _parts(spoken: Spoken) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": spoken.thought, "thought": True}] if spoken.thought else []
    if spoken.text:
        parts.append({"text": spoken.text})
    for at, call in enumerate(spoken.calls):
        said = {"name": call.name, "args": call.arguments}
        parts.append({"functionCall": said, **({} if at else {"thoughtSignature": _signature(said)})})
    return parts


def _response(
    asked: Asked, spoken: Spoken, parts: list[dict[str, Any]], usage: Usage | None, reason: str | None
) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    return {
        "candidates": [{**candidate, **({"finishReason": reason} if reason else {})}],
        "modelVersion": asked.model,
        "responseId": f"response-{spoken.number}",
        **({"usageMetadata": _usage(usage)} if usage else {}),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "promptTokenCount": usage.prompt,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.answer,
        "thoughtsTokenCount": usage.thought,
        "totalTokenCount": usage.prompt + usage.answer + usage.thought,
    }
