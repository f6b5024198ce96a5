"""The tool and the retriever in LangChain's own standard tests."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain_tests")

from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from langchain_slidemem import SlidingMemoryRetriever, recall_tool
from slidemem import ConversationMemory, SlideMem

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """What runs the async ones."""
    return "asyncio"


def ferries() -> ConversationMemory:
    """A session in which four messages speak of ferries."""
    chat = SlideMem(max_tokens=1_000, counter="approximate").session("ferries")
    for place in ("Tangier", "Ceuta", "Oran", "Palermo"):
        chat.append({"role": "user", "content": f"Is there a ferry to {place}?"})
        chat.append({"role": "assistant", "content": "Let me see."})
    return chat


class TestTool(ToolsUnitTests):
    """What a tool is."""

    @property
    def tool_constructor(self) -> BaseTool:
        """The tool."""
        return recall_tool(ferries())

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        """What a model says."""
        return {"query": "ferry"}


class TestToolRuns(ToolsIntegrationTests):
    """What a tool does."""

    @property
    def tool_constructor(self) -> BaseTool:
        """The tool."""
        return recall_tool(ferries())

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        """What a model says."""
        return {"query": "ferry"}


class TestRetriever(RetrieversIntegrationTests):
    """What a retriever does."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        """The retriever."""
        return SlidingMemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        """Its session."""
        return {"memory": ferries()}

    @property
    def retriever_query_example(self) -> str:
        """What is asked."""
        return "ferry"
