"""The generators of hack/ are imported from the checkout, however pytest was started."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
