#!/bin/sh
# Makes .venv from the hashed lock, byte-compiled (an uncompiled start of the operator takes seconds longer).
set -eu
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "TARSy needs Python 3.11 or newer; $("$PYTHON" --version) is installed. Set PYTHON to a newer one." >&2
  exit 1
}
if ! "$PYTHON" -m venv --clear .venv; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -qy python3-venv
    "$PYTHON" -m venv --clear .venv
  else
    echo "python3 cannot make virtual environments here; install its venv package (Debian: python3-venv)." >&2
    exit 1
  fi
fi
unset PYTHONDONTWRITEBYTECODE
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
touch .venv/ready
