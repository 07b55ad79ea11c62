"""Defines rules about Jobs and CronJobs."""

from collections.abc import Iterator

from tarsy.evidence.fields import moment, one_line, string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Signal, rule
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.workloads import condition


@rule("job-failed", "A Job failed for good")
def job_failed(facts: Facts) -> Iterator[Signal]:
    """Finds Jobs that failed, unless a later Job of the same CronJob succeeded."""
    for key, job in facts.snapshot.items("Job"):
        one = condition(job, "Failed")
        if one.get("status") == "True" and not _succeeded_later(facts, key):
            message = one_line(string(one, "message"), f"reason: {string(one, 'reason')}")
            yield Signal((key,), f"{key} failed: {string(one, 'reason')}.", message)


def _succeeded_later(facts: Facts, key: ObjectKey) -> bool:
    owner, job = facts.workload(key), facts.snapshot.at(key)
    created = moment(job, "metadata", "creationTimestamp")
    if owner.kind != "CronJob" or created is None:
        return False
    return any(
        facts.workload(other) == owner
        and condition(later, "Complete").get("status") == "True"
        and (moment(later, "metadata", "creationTimestamp") or created) > created
        for other, later in facts.snapshot.items("Job", key.namespace)
    )


@rule("cronjob-does-not-run", "A CronJob does not start its Jobs")
def cron_not_run(facts: Facts) -> Iterator[Signal]:
    """Finds CronJobs that missed too many starts, or whose schedule cannot be read."""
    for key, _ in facts.snapshot.items("CronJob"):
        reasons = ("TooManyMissedTimes", "MissSchedule", "UnparseableSchedule", "InvalidSchedule", "UnknownTimeZone")
        for message in facts.messages(key, *reasons):
            yield Signal((key,), f"{key} does not start its Jobs.", message)
            break


RULES = (job_failed, cron_not_run)
