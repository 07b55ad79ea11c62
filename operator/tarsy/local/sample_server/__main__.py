"""`python -m tarsy.local.sample_server`: the same as `python -m tarsy.kubernetes_tools`."""

import sys

from tarsy.kubernetes_tools.__main__ import main

if __name__ == "__main__":
    print("tarsy.local.sample_server is now tarsy.kubernetes_tools; change the command of this server", file=sys.stderr)
    main()
