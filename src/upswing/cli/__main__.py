"""`python -m upswing.cli`"""

import sys

from upswing.cli import main

sys.exit(main())
