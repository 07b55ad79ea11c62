#!/bin/sh
# Makes .venv from the hashed lock, byte-compiled (an uncompiled start of the operator takes seconds longer).
# uv, itself installed by hash, does it in a third of pip's time; where it cannot, pip does it.
set -eu
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "TARSy needs Python 3.11 or newer; $("$PYTHON" --version) is installed. Set PYTHON to a newer one." >&2
  exit 1
}
say() { echo "setup: $*" >&2; }

say "making .venv with $("$PYTHON" --version)"
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

pip() {
  .venv/bin/python -m pip --disable-pip-version-check --quiet "$@"
}

# What pip is configured to use (files and PIP_*) holds for uv too: uv reads neither.
as_pip_does() {
  eval "$(pip config list | sed -En \
    -e "s/^(global|install|:env:)\.index-url=/export UV_DEFAULT_INDEX=/p" \
    -e "s/^(global|install|:env:)\.extra-index-url=/export UV_INDEX=/p" \
    -e "s/^(global|install|:env:)\.find-links=/export UV_FIND_LINKS=/p" \
    -e "s/^(global|install|:env:)\.no-index=/export UV_NO_INDEX=/p" \
    -e "s/^(global|install|:env:)\.cert=/export SSL_CERT_FILE=/p")"
  UV_FIND_LINKS=$(printf %s "${UV_FIND_LINKS:-}" | tr -s ' \n' ',')
  export UV_FIND_LINKS UV_INDEX_STRATEGY=unsafe-best-match  # pip looks in every index; the hashes decide
}

with_uv() (
  say 'installing uv'
  pip install --require-hashes -r requirements-uv.lock || exit 1
  as_pip_does || exit 1
  uv() { .venv/bin/uv pip install --python .venv/bin/python --quiet --no-deps --compile-bytecode "$@"; }
  say "installing $packages packages by hash (the longest step, once)"
  uv --require-hashes -r requirements.lock && say 'installing the three packages of this checkout' &&
    uv --build-constraint requirements-build.lock --editable . --editable operator/kubeapi --editable operator/tarsy_dev
)

with_pip() {
  say "uv cannot install here (see above); installing $packages packages with pip, which takes longer"
  pip install --require-hashes -r requirements.lock
  pip install --no-deps --editable . --editable operator/kubeapi --editable operator/tarsy_dev
}

packages=$(grep -c '==' requirements.lock)
with_uv || with_pip
say 'done'
touch .venv/ready
