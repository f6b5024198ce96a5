"""Decides how requests come in and answers go out: one small HTTP server on loopback for all dialects."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from strict_provider.anthropic_messages import AnthropicMessages
from strict_provider.bedrock import Bedrock
from strict_provider.gemini import Gemini
from strict_provider.ledger import Ledger
from strict_provider.openai_chat import OpenAIChat, Template
from strict_provider.openai_responses import OpenAIResponses
from strict_provider.script import spoken_of
from strict_provider.wire import Asked, Dialect, Refused, Usage


@dataclass(frozen=True)
class Served:
    """One request that was answered."""

    dialect: str
    asked: Asked
    usage: Usage


@dataclass
class StrictProvider:
    """A server that refuses what providers refuse, and counts what they count.

    Attributes:
        limit: tokens that its model takes in.
        ledger: counts.
        served: requests that were answered.
        refused: rules that requests broke, each as `dialect: rule: detail`.
        port: where it listens.
    """

    limit: int
    ledger: Ledger = field(default_factory=Ledger)
    served: list[Served] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """Its root."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def prompts(self) -> int:
        """Tokens of all prompts that were answered."""
        return sum(served.usage.prompt for served in self.served)

    @property
    def cached(self) -> int:
        """Of those, tokens that an earlier prompt began with."""
        return sum(served.usage.cached for served in self.served)

    def clear(self, limit: int | None = None, ledger: Ledger | None = None) -> None:
        """Begin anew."""
        self.served.clear()
        self.refused.clear()
        self.limit = self.limit if limit is None else limit
        self.ledger = Ledger() if ledger is None else ledger

    async def answer(self, dialect: Dialect, request: Request) -> Response:
        """The answer of one request."""
        try:
            asked = dialect.read(await request.json(), request.url.path)
            prompt = self.ledger.prompt(asked)
            if len(prompt.tokens) > self.limit:
                raise dialect.too_long(len(prompt.tokens), self.limit)
        except Refused as refused:
            self.refused.append(f"{dialect.name}: {refused.rule}: {refused.detail}")
            body, headers = dialect.refusal(refused)
            return JSONResponse(body, refused.status, headers)
        spoken = spoken_of(asked)
        usage = self.ledger.enter(dialect.name, prompt, spoken, automatic=dialect.automatic)
        self.served.append(Served(dialect.name, asked, usage))
        if not asked.streams:
            return JSONResponse(dialect.answer(asked, spoken, usage))
        kind = "application/vnd.amazon.eventstream" if dialect.name == "bedrock" else "text/event-stream"
        return StreamingResponse(dialect.pieces(asked, spoken, usage), media_type=kind)


def application(provider: StrictProvider) -> Starlette:
    """The server's routes."""

    def route(path: str, dialect: Dialect) -> Route:
        async def endpoint(request: Request) -> Response:
            return await provider.answer(dialect, request)

        return Route(path, endpoint, methods=["POST"])

    async def model(request: Request) -> Response:
        name = request.path_params["call"]
        return JSONResponse({"name": f"models/{name}", "inputTokenLimit": 1_048_576, "outputTokenLimit": 8192})

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": []})

    return Starlette(
        routes=[
            route("/v1/chat/completions", OpenAIChat()),
            route("/v1/responses", OpenAIResponses()),
            route("/v1/messages", AnthropicMessages()),
            route("/v1beta/models/{call}", Gemini()),
            route("/v1beta1/models/{call}", Gemini()),
            route("/model/{id:path}/{kind}", Bedrock()),
            route("/template/v1/chat/completions", Template()),
            Route("/v1beta/models/{call}", model),
            Route("/v1/models", models),
        ]
    )


@contextmanager
def running(limit: int = 8000, **fields: Any) -> Iterator[StrictProvider]:
    """A strict provider on a free port of loopback, while the block runs."""
    provider = StrictProvider(limit, **fields)
    config = uvicorn.Config(application(provider), host="127.0.0.1", port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    bound = config.bind_socket()
    bound.listen()  # requests that come before the server runs wait
    provider.port = bound.getsockname()[1]
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.should_exit = True
        thread.join(10)
        bound.close()
