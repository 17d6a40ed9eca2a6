"""``python -m lanner``: the same as the ``lanner`` command."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
