"""Prints, for `env`, what coverage leaves out where a server is absent: files that nothing else tests."""

import os

from sv_places import reached

FILES = {"postgres": "*/slidemem/stores/postgres*.py", "redis": "*/slidemem/stores/redis.py"}
SHARED = {
    "SERVED": "*/slidemem/stores/served.py",
    "WIRE": "*/slidemem/stores/wire.py",
    "LOOPS": "*/slidemem/stores/loops.py",
}


def left_out() -> list[str]:
    """Settings of the environment, none where all servers are there or have to be."""
    if os.environ.get("SLIDEMEM_SERVERS") == "required":
        return []
    absent = [name for name in FILES if reached(name)]
    files = {name.upper(): FILES[name] for name in absent} | (SHARED if len(absent) == len(FILES) else {})
    return [f"SLIDEMEM_NO_{name}={pattern}" for name, pattern in files.items()]


if __name__ == "__main__":
    print(" ".join(left_out()))  # noqa: T201  # what it is for
