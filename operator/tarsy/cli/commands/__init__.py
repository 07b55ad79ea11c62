"""What each command of `tarsy` and of `kubectl tarsy` takes; the work itself is in the modules of `tarsy.cli`."""
