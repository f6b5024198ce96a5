"""What an import costs: `slidemem`, beside what the frameworks' own memories need to be imported.

Processor seconds of a new process, the least of three, less those of Python itself; ratios hold on any machine.
"""

from __future__ import annotations

import resource
import subprocess
import sys

TIMES = 3
OURS = "slidemem"
THEIRS = {
    "langchain_core (the bare name, which loads next to nothing)": "langchain_core",
    "langchain_core.chat_history": "langchain_core.chat_history",
    "langchain_core.runnables.history": "langchain_core.runnables.history",
    "langchain.agents.middleware": "langchain.agents.middleware",
    "llama_index.core.memory": "llama_index.core.memory",
}


def seconds(module: str) -> float:
    """Processor seconds that an import takes."""
    return min(_used(f"import {module}") for _ in range(TIMES)) - min(_used("pass") for _ in range(TIMES))


def _used(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)  # noqa: S603  # our own code
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    ours = seconds(OURS)
    print(f"import slidemem: {ours:.2f} processor seconds")
    for name, module in THEIRS.items():
        theirs = seconds(module)
        print(f"  {ours / theirs:5.0%} of import {name} ({theirs:.2f})")
