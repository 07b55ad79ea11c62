"""Sends the cases to both APIs and prints the differences: `python -m tests.drift [GROUP ...]`.

With `--api newer` the other one is the API extensions server of Kubernetes 1.36, for the groups about custom resources.
What is explained for an older version only may then be the same.

Each API is fresh and is asked in a thread of its own; within a group the cases run in order.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml
from tests.apis import ApiKind, find_kubectl, new_api
from tests.drift import explained
from tests.drift.cases import Case, load
from tests.drift.compare import Outcome, Verdict, counts, outcomes, side_by_side
from tests.drift.session import Api, Session

from embedded_kubeapi.server import EmbeddedApi

_CRDS = Path(__file__).parents[2] / "crds"
_OF_CUSTOM_RESOURCES = ("invalid", "kinds", "lists", "patches")
_ORDER = (Verdict.EXPLAINED, Verdict.STALE, Verdict.UNEXPLAINED)


def main() -> int:
    """Ends 1 when a difference has no explanation, or an explanation no difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.drift", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="files of tests/drift/cases (default: all)")
    parser.add_argument(
        "--api", choices=("real", "newer"), default="real", help="what the embedded API is compared with"
    )
    parser.add_argument("--verbose", action="store_true", help="show explained differences too, in full")
    parser.add_argument("--answers", metavar="ID", help="show both whole answers to this case")
    parser.add_argument("--table", action="store_true", help="print the explanations as in the README, and end")
    options = parser.parse_args()
    reasons = explained.load()
    if options.table:
        print(*explained.markdown(reasons), sep="\n")
        return 0
    cases = load()
    newer = options.api == "newer"
    known = [name for name in dict.fromkeys(case.group for case in cases) if not newer or name in _OF_CUSTOM_RESOURCES]
    if unknown := set(options.groups) - set(known):
        parser.error(f"no such group: {', '.join(sorted(unknown))} (there are {', '.join(known)})")
    cases = [case for case in cases if case.group in (options.groups or known)]
    began = time.monotonic()
    real, embedded, versions = _both(cases, options.api)
    found = outcomes(real, embedded, explained.by_case(reasons))
    width = shutil.get_terminal_size((160, 24)).columns
    if options.answers:
        for outcome in found:
            if outcome.id == options.answers:
                print("real:", *outcome.real, "", "embedded:", *outcome.embedded, sep="\n")
    _print(found, {case.id: case for case in cases}, options.verbose, width)
    total = counts(found)
    print(f"\n{versions}, {len(found)} cases in {time.monotonic() - began:.0f} s: "
          + ", ".join(f"{count} {verdict}" for verdict, count in total.items()))  # fmt: skip
    lost = {case for each in reasons for case in each.cases} - {case.id for case in load()}
    for case in sorted(lost):
        print(f"explained.yaml names {case}, which is no case")
    failing = [outcome for outcome in found if outcome.fails and not (newer and outcome.verdict is Verdict.STALE)]
    return int(bool(lost or failing))


def _both(cases: Sequence[Case], other: ApiKind) -> tuple[dict[str, list[str]], dict[str, list[str]], str]:
    kubectl = find_kubectl()
    if kubectl is None:
        raise SystemExit("there is no kubectl on this machine: put one on PATH")
    crds = [yaml.safe_load(path.read_text()) for path in sorted(_CRDS.glob("*.yaml")) if path.stem != "kustomization"]
    with new_api(other) as real, EmbeddedApi() as embedded, ThreadPoolExecutor(2) as threads:

        def run(api: Api) -> dict[str, list[str]]:
            session = Session(api, kubectl)
            try:
                session.prepare(list(dict.fromkeys(case.group for case in cases)), crds)
                return {case.id: session.ask(case) for case in cases}
            finally:
                session.close()

        both = threads.submit(run, real), threads.submit(run, embedded)
        versions = f"Kubernetes {'.'.join(map(str, real.version))} and the embedded API"
        return both[0].result(), both[1].result(), versions


def _print(found: Sequence[Outcome], cases: dict[str, Case], verbose: bool, width: int) -> None:
    for verdict in _ORDER:
        for outcome in (each for each in found if each.verdict is verdict):
            case = cases[outcome.id]
            print(f"\n{outcome.id}: {verdict}\n  {case.kubectl and 'kubectl '}{case.kubectl or case.call}")
            if outcome.reason:
                print(f"  {outcome.reason}")
            if verdict is Verdict.UNEXPLAINED or verbose:
                print(*(f"  {line}" for line in side_by_side(outcome, width - 2)), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
