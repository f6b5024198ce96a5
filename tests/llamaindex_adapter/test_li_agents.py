"""Every agent: the archive arrives in each of its prompts, the budget holds, calls and results stay together."""

from __future__ import annotations

import ast
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from li_models import FACT, FENCE, LIMIT, ScriptedLLM, awaited, cost, filled, history, texts, words
from llama_index.core import Document, Settings, SummaryIndex
from llama_index.core.agent.workflow import AgentWorkflow, CodeActAgent, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ThinkingBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context

from llamaindex_slidemem import RememberedMessage, SlidingChatMemoryBuffer
from slidemem.testing import violations

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # agents and workflows give each other theirs

QUESTION = "Which snack may I have on the train?"
THOUGHT = "Thought: I can answer without using any more tools. I'll use the user's language to answer\nAnswer: "
ACTION = (
    'Thought: I need to use a tool to help me answer the question.\nAction: weather\nAction Input: {"city": "Pune"}'
)


def weather(city: str) -> str:
    """The weather of a city."""
    return f"dry in {city}"


def calling(id_: str, tool: str = "weather", **kwargs: Any) -> ChatMessage:
    """An answer that calls a tool."""
    block = ToolCallBlock(tool_call_id=id_, tool_name=tool, tool_kwargs=kwargs or {"city": "Pune"})
    return ChatMessage(role="assistant", blocks=[block])


def function_agent(llm: ScriptedLLM, **fields: Any) -> FunctionAgent:
    """A FunctionAgent with one tool."""
    return FunctionAgent(**{"tools": [weather], "llm": llm, "system_prompt": "You are kind.", **fields})


def react_agent(llm: ScriptedLLM, **fields: Any) -> ReActAgent:
    """A ReActAgent without a system prompt of its own: it takes a first system message for its own."""
    return ReActAgent(tools=[weather], llm=llm, **fields)


def codeact_agent(llm: ScriptedLLM, **fields: Any) -> CodeActAgent:
    """A CodeActAgent; it overwrites the first system message."""
    return CodeActAgent(code_execute_fn=lambda code: f"ran {code}", llm=llm, **fields)


SCRIPTS: list[Any] = [
    pytest.param(function_agent, [calling("1"), "done"], id="FunctionAgent"),
    pytest.param(react_agent, [ACTION, THOUGHT + "done"], id="ReActAgent"),
    pytest.param(codeact_agent, ["<execute>print(1)</execute>", "done"], id="CodeActAgent"),
]


def run(agent: Any, question: str | None = QUESTION, **kwargs: Any) -> Any:
    """Run an agent to its end."""

    async def running() -> Any:
        return await agent.run(question, **kwargs)

    return awaited(running())


def whole(prompt: list[ChatMessage]) -> str:
    """A prompt as one text."""
    return "\n".join(texts(prompt))


def check(prompt: list[ChatMessage], question: str = QUESTION) -> None:
    """What holds in every prompt of an agent."""
    said = whole(prompt)
    assert (1, True, True) == (said.count(FENCE), FACT in said, question in said)
    assert [] == [message for message in prompt if message.role == "system" and FENCE in (message.content or "")]
    assert 1 == sum(message.role == "system" for message in prompt)
    assert LIMIT >= cost([message for message in prompt if isinstance(message, RememberedMessage)])


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("make, script", SCRIPTS)
def test_every_agent_gets_archive_and_question_in_every_step(
    make: Any, script: list[Any], *, streaming: bool
) -> None:
    """Before and after a tool, the archive stands once, in no system message, and the budget holds."""
    llm, memory = ScriptedLLM.of(*script), filled()

    run(make(llm, streaming=streaming), memory=memory)

    assert 2 == len(llm.prompts)
    for prompt in llm.prompts:
        check(prompt)


@pytest.mark.parametrize("make, script", SCRIPTS)
def test_every_agent_stores_its_turn_and_goes_on(make: Any, script: list[Any]) -> None:
    """Two runs with one memory lose nothing, and the second sees what the first did."""
    llm, memory = ScriptedLLM.of(*script, *script), filled()

    run(make(llm), memory=memory)
    run(make(llm), "And the weather?", memory=memory)

    said = texts(memory.get_all())
    assert texts(history()) == said[:80]
    assert f"user: {QUESTION}" == said[80]
    assert 1 == said.count("user: And the weather?")
    assert QUESTION in whole(llm.prompts[2])
    check(llm.prompts[2], "And the weather?")
    context = memory.session.context()
    assert [] == violations(context.to_openai())


@pytest.mark.parametrize("make, script", SCRIPTS)
def test_the_history_passed_to_each_run_keeps_the_archive(make: Any, script: list[Any]) -> None:
    """A client that sends question and answer pairs of the whole conversation gets the archive that is there."""
    llm, memory = ScriptedLLM.of(*script, *script), filled()
    archive = memory.session.archive()

    run(make(llm), memory=memory, chat_history=history())

    assert archive == memory.session.archive()[: len(archive)]
    assert texts(history()) == texts(memory.get_all())[:80]
    check(llm.prompts[0])


@pytest.mark.parametrize("make, script", SCRIPTS)
def test_a_run_on_a_history_alone_answers_its_last_message(make: Any, script: list[Any]) -> None:
    """Without a message of its own a run takes the newest user message of the history."""
    llm, memory = ScriptedLLM.of(*script), filled()

    run(make(llm), None, memory=memory, chat_history=[*history(), ChatMessage(QUESTION)])

    check(llm.prompts[0])


@pytest.mark.parametrize("make, script", SCRIPTS[:2])  # a CodeActAgent takes no state
def test_state_that_agents_write_into_a_message_stays_out_of_the_memory(make: Any, script: list[Any]) -> None:
    """run-llama/llama_index 22345, 22248: the state prompt is in what is sent, and in nothing that is stored."""
    llm, memory = ScriptedLLM.of(*script), filled()

    run(make(llm, initial_state={"seat": "window"}), memory=memory)

    assert "Current state" in whole(llm.prompts[0])
    assert f"user: {QUESTION}" == texts(memory.get_all())[80]
    assert [] == [text for text in texts(memory.get_all()) if "Current state" in text]


def test_a_handoff_between_agents_keeps_memory_and_pairs() -> None:
    """AgentWorkflow stores call and result of the handoff; the next agent sees archive, question and both."""
    llm, memory = (
        ScriptedLLM.of(calling("h", "handoff", to_agent="second", reason="it knows"), calling("1"), "done"),
        filled(),
    )
    first = function_agent(llm, name="first", description="asks", can_handoff_to=["second"])
    second = function_agent(llm, name="second", description="answers")

    run(AgentWorkflow(agents=[first, second], root_agent="first"), memory=memory)

    for prompt in llm.prompts:
        check(prompt)
    roles = [message.role.value for message in memory.get_all()[80:]]
    assert ["user", "assistant", "tool", "assistant", "tool", "assistant"] == roles
    assert [] == violations(memory.session.context().to_openai())


def test_react_tries_again_with_the_archive() -> None:
    """An answer that cannot be parsed is asked for again; the retry sees what the first try saw."""
    llm, memory = ScriptedLLM.of("Action: nothing of that kind", THOUGHT + "done"), filled()

    run(react_agent(llm), memory=memory)

    assert 2 == len(llm.prompts)
    for prompt in llm.prompts:
        check(prompt)


def test_an_agent_stopped_early_answers_from_the_archive() -> None:
    """`early_stopping_method="generate"` asks once more, with history and archive."""
    llm, memory = ScriptedLLM.of(calling("1"), calling("2"), "enough"), filled()

    run(function_agent(llm), memory=memory, max_iterations=2, early_stopping_method="generate")

    said = whole(llm.prompts[-1])
    assert (1, True, True) == (said.count(FENCE), FACT in said, QUESTION in said)
    assert "assistant: enough" == texts(memory.get_all())[-1]


class Snack(BaseModel):
    """A structured answer."""

    name: str


@pytest.mark.parametrize("said", ["plain", "{context_str} in {braces}"])
def test_structured_output_gets_what_the_agent_said(said: str) -> None:
    """A function, and a class, for the structured answer are given the messages after the agent's own."""
    llm, memory = ScriptedLLM.of(said, calling("s", "Snack", name="apple")), filled()
    seen: list[list[ChatMessage]] = []

    def structured(messages: list[ChatMessage]) -> dict[str, str]:
        seen.append(messages)
        return {"name": "apple"}

    run(function_agent(llm, structured_output_fn=structured), memory=memory)
    result = run(
        function_agent(ScriptedLLM.of(said, calling("s", "Snack", name="apple")), output_cls=Snack), memory=memory
    )

    assert (f"assistant: {said}", True) == (texts(seen[0])[-1], FENCE in whole(seen[0]))
    assert {"name": "apple"} == result.structured_response


def test_a_result_returned_directly_is_stored_with_its_call() -> None:
    """The assistant message that carries a result's id beside its text stays an assistant's."""
    llm, memory = ScriptedLLM.of(calling("1")), filled()

    run(function_agent(llm, tools=[FunctionTool.from_defaults(weather, return_direct=True)]), memory=memory)

    assert ["user", "assistant", "tool", "assistant"] == [message.role.value for message in memory.get_all()[80:]]
    assert [] == violations(memory.session.context().to_openai())


@pytest.mark.parametrize("make, script", SCRIPTS)
def test_every_agent_starts_on_a_new_memory(make: Any, script: list[Any]) -> None:
    """An empty memory is used, not replaced."""
    memory = SlidingChatMemoryBuffer.from_defaults(tokenizer_fn=words)

    run(make(ScriptedLLM.of(*script)), memory=memory)

    assert f"user: {QUESTION}" == texts(memory.get_all())[0]


def test_a_context_remembers_its_memory() -> None:
    """Runs with one Context go on with the memory of the first."""
    llm, memory = ScriptedLLM(), filled()
    agent = function_agent(llm)

    async def twice() -> None:
        ctx = Context(agent)
        await agent.run(QUESTION, memory=memory, ctx=ctx)
        await agent.run("And the weather?", ctx=ctx)

    awaited(twice())

    assert QUESTION in whole(llm.prompts[1])
    check(llm.prompts[1], "And the weather?")


def test_calls_are_never_shown_without_their_results() -> None:
    """run-llama/llama_index 12264, 14014, 13715: calls and results leave and stay together, reloaded too."""
    memory, beside = filled(turns=1), ["unknown-key"]  # thinking stands in `reasoning_content`, which is not OpenAI's
    for at in range(60):
        memory.put(ChatMessage(f"weather {at}?"))
        memory.put(ChatMessage(role="assistant", blocks=[ThinkingBlock(content="hm"), *calling(f"c{at}").blocks]))
        memory.put(ChatMessage(role="tool", content=f"dry {at}", additional_kwargs={"tool_call_id": f"c{at}"}))
        assert [] == violations(memory.session.context().to_openai(), ignore=beside)
        memory.put(ChatMessage(role="assistant", blocks=[TextBlock(text=f"It is dry {at}.")]))
        assert [] == violations(memory.session.context().to_openai(), ignore=beside)

    again = SlidingChatMemoryBuffer.from_string(memory.to_string(), tokenizer_fn=words)
    assert memory.get() == again.get()
    assert 242 == len(again.get_all())


# ------------------------------------------------------------------ the swap


ROOT = Path(__file__).parents[2]


def swaps(path: str) -> list[tuple[str, str]]:
    """What stands before and after each swap of a document."""
    diffs = re.findall(r"```diff\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)
    ours = [diff for diff in diffs if "SlidingChatMemoryBuffer" in diff]
    return [
        tuple(
            "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] in kept) for kept in (" -", " +")
        )  # type: ignore[misc]  # two of them
        for diff in ours
    ]


def test_the_readme_shows_the_swap_of_its_page() -> None:
    """The README's swap of an engine is the first of the page, which runs."""
    assert swaps("docs/llamaindex.md")[:1] == swaps("README.md")


def test_the_swaps_that_documents_show_run() -> None:
    """An engine and an agent, before and after: one name differs, and both run with what the documents leave out."""
    path = "docs/llamaindex.md"
    (engine_before, engine_after), (agent_before, agent_after) = swaps(path)
    llm = ScriptedLLM()
    names = {
        "index": SummaryIndex.from_documents([Document(text="Apples.")]),
        "agent": FunctionAgent(llm=llm),
        "llm": llm,
        "ChatMemoryBuffer": ChatMemoryBuffer,
        "SlidingChatMemoryBuffer": SlidingChatMemoryBuffer,
    }

    def ran(program: str) -> Any:
        used = dict(names)
        code = compile(program, path, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(code, used)  # noqa: S307  # the document's own code
        if running is not None:
            awaited(running)
        if "engine" in used:
            used["engine"].chat("hello")
        return used["memory"]

    settings, Settings.llm = Settings._llm, llm
    with ThreadPoolExecutor(1) as aside:  # on the main thread an index leaves an event loop of its own open
        made = list(aside.map(ran, (engine_before, engine_after, agent_before, agent_after)))
    Settings._llm = settings

    assert [engine_before, agent_before] == [
        after.replace("SlidingChatMemoryBuffer", "ChatMemoryBuffer") for after in (engine_after, agent_after)
    ]
    assert [ChatMemoryBuffer, SlidingChatMemoryBuffer] * 2 == [type(memory) for memory in made]
    assert [2] * 4 == [len(memory.get_all()) for memory in made]
    assert [3000, 3000, 7500, 7500] == [memory.token_limit for memory in made]
