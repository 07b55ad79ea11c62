#!/usr/bin/env bash
# Makes the Secret of a Postgres for trying out, where there is none: the database keeps the password that it was made
# with. Standard input keeps it out of the process list.
# Called as: database-secret.sh KUBECTL [ARGUMENT...]
set -euo pipefail
! "$@" -n tarsy-system get secret tarsy-database >/dev/null 2>&1 || exit 0
password=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
"$@" create -f - <<EOF
apiVersion: v1
kind: Secret
metadata: {name: tarsy-database, namespace: tarsy-system}
stringData:
  password: $password
  url: postgresql://tarsy:$password@tarsy-postgres.tarsy-system.svc:5432/tarsy?sslmode=disable
EOF
