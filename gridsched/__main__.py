"""``python -m gridsched``."""

import sys

from gridsched.cli.app import main

sys.exit(main())
