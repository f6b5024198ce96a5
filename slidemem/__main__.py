"""`python -m slidemem`, the same as the command `slidemem`."""

import sys

from slidemem.cli import main

if __name__ == "__main__":
    sys.exit(main())
