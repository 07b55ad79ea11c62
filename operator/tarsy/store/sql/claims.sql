-- Registers workers, claims runs and keeps leases. Claims and the sweep of overdue runs take one advisory lock first,
-- so that counting and claiming are one step. A lease row is locked before its investigation, as writers do.

-- name: lock
SELECT pg_advisory_xact_lock(:key)

-- Deletes expired workers; their next heartbeat fails.
-- name: reap_workers
DELETE FROM worker WHERE expires_at <= clock_timestamp()

-- Deletes expired workers; returns whether :worker is one that has not expired.
-- name: reap_but
WITH expired AS (
    DELETE FROM worker WHERE expires_at <= clock_timestamp() RETURNING id
)
SELECT EXISTS (SELECT FROM worker WHERE id = :worker AND id NOT IN (SELECT id FROM expired))

-- Whether `i` is not parked, or may go on: because of a decision, or as it has waited long enough; and no quota holds it.
-- name: _awake
(i.parked_at IS NULL OR i.wake_at <= clock_timestamp())
    AND (i.held_until IS NULL OR i.held_until <= clock_timestamp())

-- Whether a claim of :worker may find something: any run that has no live worker, whatever the limits; or :worker has
-- expired, which the claim reports.
-- name: worth_a_claim
SELECT EXISTS (
    SELECT FROM investigation i LEFT JOIN lease l ON l.investigation = i.id
    LEFT JOIN worker w ON w.id = l.worker AND w.expires_at > clock_timestamp()
    WHERE i.state IN ('pending', 'running') AND w.id IS NULL AND (i.deadline IS NULL OR i.deadline > clock_timestamp())
        AND {_awake}
) OR NOT EXISTS (SELECT FROM worker WHERE id = :worker AND expires_at > clock_timestamp())

-- Runs in progress: those with a live worker. Answers to questions are not counted: the limits of runs do not apply to
-- them.
-- name: in_progress
SELECT i.namespace, i.chain_namespace, i.chain, count(*) AS runs
FROM lease l JOIN worker w ON w.id = l.worker JOIN investigation i ON i.id = l.investigation
WHERE i.parent IS NULL
GROUP BY i.namespace, i.chain_namespace, i.chain

-- Whether a worker that knows migration :knows may run `i`: the plan is no newer, or the run has waited for 10 minutes
-- and no worker is registered that knows its plan.
-- name: _readable
(i.reader <= :knows OR (
    i.accepted_at < now() - interval '10 minutes'
    AND NOT EXISTS (SELECT FROM worker newer WHERE newer.schema_version >= i.reader)
))

-- Runs that may be claimed: pending, handed back, orphaned, or parked and woken; the first :limit of each namespace and chain. The sweep
-- ends those past their deadline. The recursion finds each namespace and chain with one look-up in the index.
-- name: candidates
WITH RECURSIVE line AS (
    (
        SELECT namespace, chain_namespace, chain FROM investigation WHERE state IN ('pending', 'running')
        ORDER BY namespace, chain_namespace, chain LIMIT 1
    )
    UNION ALL
    SELECT next.* FROM line CROSS JOIN LATERAL (
        SELECT i.namespace, i.chain_namespace, i.chain FROM investigation i
        WHERE i.state IN ('pending', 'running')
            AND (i.namespace, i.chain_namespace, i.chain) > (line.namespace, line.chain_namespace, line.chain)
        ORDER BY i.namespace, i.chain_namespace, i.chain LIMIT 1
    ) next
)
SELECT waiting.*, t.claimed_at AS served_at FROM line CROSS JOIN LATERAL (
    SELECT i.id, i.namespace, i.chain_namespace, i.chain, i.priority, i.accepted_at, i.namespace_limit, i.chain_limit,
        l.investigation IS NOT NULL AS leased, i.replay,
        CASE WHEN i.started_at IS NULL THEN quota_room(i.namespace, quota_share(i), true) END AS room
    FROM investigation i LEFT JOIN lease l ON l.investigation = i.id LEFT JOIN worker w ON w.id = l.worker
    WHERE i.state IN ('pending', 'running') AND w.id IS NULL AND i.parent IS NULL
        AND i.namespace = line.namespace AND i.chain_namespace = line.chain_namespace AND i.chain = line.chain
        AND (i.deadline IS NULL OR i.deadline > clock_timestamp())
        AND {_readable} AND {_awake}
    ORDER BY i.replay, i.priority DESC, i.accepted_at, i.id LIMIT :limit
) waiting LEFT JOIN namespace_turn t ON t.namespace = waiting.namespace AND NOT t.questions

-- Answers in progress, by namespace.
-- name: answering
SELECT i.namespace, '' AS chain_namespace, '' AS chain, count(*) AS runs
FROM lease l JOIN worker w ON w.id = l.worker JOIN investigation i ON i.id = l.investigation
WHERE i.parent IS NOT NULL
GROUP BY i.namespace

-- The first open question about each investigation, when no worker answers it; at most :limit of a namespace.
-- name: questions
WITH RECURSIVE space AS (
    (
        SELECT namespace FROM investigation WHERE state IN ('pending', 'running') AND parent IS NOT NULL
        ORDER BY namespace LIMIT 1
    )
    UNION ALL
    SELECT next.* FROM space CROSS JOIN LATERAL (
        SELECT i.namespace FROM investigation i
        WHERE i.state IN ('pending', 'running') AND i.parent IS NOT NULL AND i.namespace > space.namespace
        ORDER BY i.namespace LIMIT 1
    ) next
)
SELECT waiting.*, t.claimed_at AS served_at FROM space CROSS JOIN LATERAL (
    SELECT i.id, i.namespace, '' AS chain_namespace, '' AS chain, 0 AS priority, i.accepted_at,
        NULL::integer AS namespace_limit, NULL::integer AS chain_limit, l.investigation IS NOT NULL AS leased,
        CASE WHEN i.started_at IS NULL THEN quota_room(i.namespace, quota_share(i), false) END AS room
    FROM investigation i LEFT JOIN lease l ON l.investigation = i.id LEFT JOIN worker w ON w.id = l.worker
    WHERE i.state IN ('pending', 'running') AND w.id IS NULL AND i.parent IS NOT NULL
        AND i.namespace = space.namespace
        AND (i.deadline IS NULL OR i.deadline > clock_timestamp())
        AND {_readable} AND {_awake}
        AND NOT EXISTS (
            SELECT FROM investigation before
            WHERE before.parent = i.parent AND before.place < i.place AND before.state IN ('pending', 'running')
        )
    ORDER BY i.accepted_at, i.id LIMIT :limit
) waiting LEFT JOIN namespace_turn t ON t.namespace = waiting.namespace AND t.questions

-- Notes that these namespaces were served; entries older than a day are deleted.
-- name: served
WITH served AS (
    SELECT DISTINCT namespace, parent IS NOT NULL AS questions FROM investigation WHERE id = ANY(:ids::uuid[])
), old AS (
    DELETE FROM namespace_turn t WHERE t.claimed_at < now() - interval '1 day'
        AND NOT EXISTS (SELECT FROM served s WHERE s.namespace = t.namespace AND s.questions = t.questions)
)
INSERT INTO namespace_turn (namespace, questions, claimed_at)
SELECT namespace, questions, clock_timestamp() FROM served
ON CONFLICT (namespace, questions) DO UPDATE SET claimed_at = excluded.claimed_at

-- Leases of dead workers; one under which a dead worker is writing at this moment is left for the next time.
-- name: lock_leases
SELECT investigation FROM lease WHERE investigation = ANY(:ids::uuid[]) FOR UPDATE SKIP LOCKED

-- A run that was parked goes on with what was left of its deadline.
-- name: take
WITH parked AS MATERIALIZED (
    SELECT id, parked_at, parked_for,
        extract(epoch FROM clock_timestamp() - parked_at)::double precision AS seconds
    FROM investigation WHERE id = ANY(:ids::uuid[]) ORDER BY id FOR UPDATE
), taken AS (
    UPDATE investigation i SET
        state = 'running', attempt = attempt + 1, revision = revision + 1,
        started_at = coalesce(started_at, clock_timestamp()),
        deadline = coalesce(
            deadline, clock_timestamp() + coalesce(seconds_left, limit_seconds) * interval '1 second'
        ),
        waited_seconds = waited_seconds + coalesce(p.seconds, 0),
        parked_at = NULL, parked_for = NULL, parked_note = NULL, wake_at = NULL, seconds_left = NULL,
        held_for = NULL, held_until = NULL
    FROM parked p WHERE i.id = p.id AND i.state IN ('pending', 'running')
    RETURNING i.id, attempt, namespace, name, desired_state, deadline, parent, started_at - accepted_at AS waited,
        p.parked_for, p.seconds, i.triage_for
), leased AS (
    INSERT INTO lease (investigation, attempt, worker) SELECT id, attempt, :worker FROM taken
    ON CONFLICT (investigation) DO UPDATE SET attempt = excluded.attempt, worker = excluded.worker
)
SELECT t.id, t.attempt, t.namespace, t.name, t.desired_state, t.parent, n.plan, n.runbook, n.author, n.precedents,
    CASE WHEN t.parent IS NULL THEN n.alert_data ELSE '' END AS alert_data,
    CASE WHEN t.parent IS NOT NULL THEN coalesce(n.question, n.alert_data) END AS question,
    extract(epoch FROM t.deadline - clock_timestamp())::double precision AS seconds_left,
    extract(epoch FROM t.waited)::double precision AS waited_seconds,
    t.parked_for, coalesce(t.seconds, 0) AS parked_seconds, t.triage_for
FROM taken t JOIN investigation_input n ON n.investigation = t.id
ORDER BY array_position(:ids::uuid[], t.id)

-- A worker that registers holds no lease, even if it held some before. One whose code is too old for the schema (:knows
-- is the newest migration it knows) is not registered.
-- name: register
WITH old AS (
    DELETE FROM lease WHERE worker = :worker
), allowed AS (
    SELECT coalesce(max(min_reader), 0) AS least FROM schema_migrations HAVING coalesce(max(min_reader), 0) <= :knows
)
INSERT INTO worker (
    id, host, expires_at, schema_version, beat_at, places, questions, global_limit, namespace_limit, version
)
SELECT :worker, :host, now() + :ttl_seconds * interval '1 second', :knows, now(), :places, :questions, :global_limit,
    :namespace_limit, :version
FROM allowed
ON CONFLICT (id) DO UPDATE SET host = excluded.host, started_at = now(), expires_at = excluded.expires_at,
    schema_version = excluded.schema_version, beat_at = now(), places = excluded.places,
    questions = excluded.questions, global_limit = excluded.global_limit,
    namespace_limit = excluded.namespace_limit, version = excluded.version, draining = false
RETURNING id

-- No row: the worker is lost. One row without an investigation: it holds nothing.
-- name: heartbeat
WITH beat AS (
    UPDATE worker SET expires_at = now() + :ttl_seconds * interval '1 second', beat_at = now(), draining = :draining
    WHERE id = :worker AND expires_at > now() RETURNING id
)
SELECT l.investigation, l.attempt, i.desired_state
FROM beat LEFT JOIN lease l ON l.worker = beat.id LEFT JOIN investigation i ON i.id = l.investigation

-- Live workers renew their leases long before: a worker sees a short time only for one that has missed heartbeats.
-- name: next_lapse
SELECT extract(epoch FROM min(w.expires_at) - clock_timestamp())::double precision FROM worker w
WHERE w.id <> :worker AND EXISTS (SELECT FROM lease l WHERE l.worker = w.id)

-- name: release
DELETE FROM lease WHERE investigation = :investigation AND attempt = :attempt AND worker = :worker
RETURNING investigation

-- name: deregister
WITH held AS (
    DELETE FROM lease WHERE worker = :worker
)
DELETE FROM worker WHERE id = :worker
