"""`python -m dmkc` is the command line."""

import sys

from dmkc.cli import main

if __name__ == "__main__":
    sys.exit(main())
