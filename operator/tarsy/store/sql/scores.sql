-- Stores scores of investigations, and what they cost by day.

-- The beginning stays; a suite that was renamed or has another judge is told.
-- name: enroll
INSERT INTO scoring AS s (suite, namespace_uid, name, judge) VALUES (:suite, :namespace_uid, :name, :judge)
ON CONFLICT (suite) DO UPDATE SET name = excluded.name, judge = excluded.judge
WHERE (s.name, s.judge) IS DISTINCT FROM (excluded.name, excluded.judge)

-- name: withdraw
DELETE FROM scoring WHERE suite = :suite

-- Scores that wait no longer, because the suite scores no more.
-- name: drop_waiting
DELETE FROM score WHERE suite = :suite AND state = 'Waiting' AND attempts = 0 AND requested_by IS NULL

-- Investigations that ended since the suite scores, the newest first; the share is chosen by uid.
-- name: pick
INSERT INTO score (investigation, suite, suite_name, round)
SELECT i.id, c.suite, c.name, 1
FROM scoring c JOIN investigation i ON i.namespace_uid = c.namespace_uid
WHERE c.suite = :suite AND i.chain = ANY(:chains::text[])
    AND i.finished_at > greatest(c.since, now() - make_interval(days => :days))
    AND i.finished_at IS NOT NULL AND i.finding IS NOT NULL AND i.parent IS NULL AND NOT i.replay
    AND i.state <> 'cancelled'
    AND ('x' || substr(md5(i.id::text || c.suite::text), 1, 7))::bit(28)::integer % 100 < :percent
    AND NOT EXISTS (SELECT FROM score s WHERE s.investigation = i.id AND s.suite = c.suite)
ORDER BY i.finished_at DESC, i.id DESC LIMIT :limit
ON CONFLICT DO NOTHING

-- What waited too long is not paid for; what was interrupted too often is not paid for again.
-- name: expire
UPDATE score SET state = CASE WHEN state = 'Started' THEN 'Failed' ELSE 'Expired' END, finished_at = now(),
    problem = CASE WHEN state = 'Started' THEN :interrupted ELSE :expired END,
    tokens = tokens + CASE WHEN state = 'Started' THEN reserved_tokens ELSE 0 END,
    cost_usd = CASE WHEN state = 'Started' THEN coalesce(cost_usd, 0) + reserved_usd ELSE cost_usd END,
    cost_complete = cost_complete AND state <> 'Started'
WHERE suite = :suite AND (
    (state = 'Waiting' AND created_at < now() - make_interval(days => :days))
    OR (state = 'Started' AND expires_at < now() AND interruptions >= :interruptions)
)
RETURNING state

-- Asked for by a person first, then the newest.
-- name: next
SELECT s.investigation, s.round, s.attempts, s.failures FROM score s
WHERE s.suite = :suite AND s.again_at <= now()
    AND (s.state = 'Waiting' OR (s.state = 'Started' AND s.expires_at < now()))
ORDER BY (s.requested_by IS NOT NULL) DESC, s.created_at DESC, s.investigation LIMIT 1

-- name: subject
SELECT i.id, i.name, i.alert_type, i.finding, left(n.alert_data, 8000) AS alert_data, n.plan
FROM investigation i JOIN investigation_input n ON n.investigation = i.id
WHERE i.id = :investigation AND i.finding IS NOT NULL

-- The last calls that have a result, in their order.
-- name: calls
SELECT * FROM (
    SELECT concat_ws('.', nullif(c.server, ''), c.tool) AS tool, left(c.arguments, 1000) AS arguments,
        left(c.result, 2500) AS result, c.state = 'failed' AS failed, c.started_at, c.id, count(*) OVER () AS made
    FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
    WHERE s.investigation = :investigation AND c.made AND c.state IN ('completed', 'failed') AND c.result IS NOT NULL
    ORDER BY c.started_at DESC, c.id DESC LIMIT :limit
) last ORDER BY started_at, id

-- name: offered
SELECT DISTINCT jsonb_array_elements(t.definitions)->>'name' AS name
FROM stage s JOIN execution e ON e.stage = s.id JOIN tool_set t ON t.hash = e.offered
WHERE s.investigation = :investigation ORDER BY 1 LIMIT 500

-- Reserves the most that a call can use, unless that exceeds the budget of the day.
-- name: reserve
INSERT INTO scoring_day AS d (suite, day, tokens, cost_usd)
SELECT :suite, (now() AT TIME ZONE 'utc')::date, :tokens::bigint, :cost_usd::numeric
WHERE :tokens::bigint <= :most_tokens::bigint
    AND (:most_usd::numeric IS NULL OR :cost_usd::numeric <= :most_usd::numeric)
ON CONFLICT (suite, day) DO UPDATE SET tokens = d.tokens + excluded.tokens, cost_usd = d.cost_usd + excluded.cost_usd
WHERE d.tokens + excluded.tokens <= :most_tokens::bigint
    AND (:most_usd::numeric IS NULL OR d.cost_usd + excluded.cost_usd <= :most_usd::numeric)
RETURNING day

-- Begins a call. One that was interrupted stays paid for.
-- name: begin
UPDATE score SET state = 'Started', judge = :judge, attempts = attempts + 1,
    interruptions = interruptions + (state = 'Started')::integer,
    tokens = tokens + CASE WHEN state = 'Started' THEN reserved_tokens ELSE 0 END,
    cost_usd = CASE WHEN state = 'Started' THEN coalesce(cost_usd, 0) + reserved_usd ELSE cost_usd END,
    cost_complete = cost_complete AND state <> 'Started',
    day = :day, reserved_tokens = :tokens, reserved_usd = :cost_usd, problem = NULL,
    expires_at = now() + make_interval(secs => :lease_seconds)
WHERE investigation = :investigation AND suite = :suite AND round = :round AND attempts = :attempts
    AND (state = 'Waiting' OR (state = 'Started' AND expires_at < now()))
RETURNING attempts

-- Ends a call, if it is still the last one.
-- name: end
UPDATE score SET state = :state, again_at = now() + make_interval(secs => :pause_seconds),
    finished_at = CASE WHEN :state::text = 'Waiting' THEN NULL ELSE now() END,
    tokens = tokens + coalesce(:tokens::bigint, reserved_tokens),
    cost_usd = CASE WHEN :known_rates::boolean THEN coalesce(cost_usd, 0) + coalesce(:cost_usd::numeric, reserved_usd)
        ELSE cost_usd END,
    cost_complete = cost_complete AND :tokens::bigint IS NOT NULL AND :known_rates::boolean,
    failures = failures + :counted::boolean::integer, points = :points, answer = :answer::jsonb, problem = :problem
WHERE investigation = :investigation AND suite = :suite AND round = :round AND attempts = :attempts AND state = 'Started'
RETURNING day, reserved_tokens, reserved_usd

-- Gives back what a call did not use; it may have used more than was reserved.
-- name: settle
UPDATE scoring_day SET tokens = tokens + :tokens, cost_usd = cost_usd + :cost_usd WHERE suite = :suite AND day = :day

-- Ends one that is not asked about.
-- name: refuse
UPDATE score SET state = :state, problem = :problem, finished_at = now()
WHERE investigation = :investigation AND suite = :suite AND round = :round AND state = 'Waiting'

-- Asks for another score of an investigation, once for each request, unless one waits.
-- name: request
INSERT INTO score (investigation, suite, suite_name, round, requested_by)
SELECT i.id, c.suite, c.name,
    coalesce((SELECT max(s.round) FROM score s WHERE s.investigation = i.id AND s.suite = c.suite), 0) + 1, :request
FROM scoring c JOIN investigation i ON i.namespace_uid = c.namespace_uid
WHERE c.suite = :suite AND i.id = :investigation
    AND i.finished_at IS NOT NULL AND i.finding IS NOT NULL AND i.parent IS NULL AND NOT i.replay
    AND NOT EXISTS (
        SELECT FROM score s WHERE s.investigation = i.id AND s.suite = c.suite AND s.requested_by = :request
    )
ON CONFLICT DO NOTHING

-- The same for the newest investigations of some chains that ended in the days before a request.
-- name: request_days
INSERT INTO score (investigation, suite, suite_name, round, requested_by)
SELECT i.id, c.suite, c.name,
    coalesce((SELECT max(s.round) FROM score s WHERE s.investigation = i.id AND s.suite = c.suite), 0) + 1, :request
FROM scoring c JOIN investigation i ON i.namespace_uid = c.namespace_uid
WHERE c.suite = :suite AND i.chain = ANY(:chains::text[])
    AND i.finished_at BETWEEN :asked_at::timestamptz - make_interval(days => :days) AND :asked_at::timestamptz
    AND i.finding IS NOT NULL AND i.parent IS NULL AND NOT i.replay AND i.state <> 'cancelled'
    AND NOT EXISTS (
        SELECT FROM score s WHERE s.investigation = i.id AND s.suite = c.suite AND s.requested_by = :request
    )
ORDER BY i.finished_at DESC, i.id DESC LIMIT :limit
ON CONFLICT DO NOTHING

-- name: summary
SELECT (SELECT count(*) FROM score WHERE suite = :suite AND state = 'Completed') AS scored,
    (SELECT count(*) FROM score WHERE suite = :suite AND state IN ('Waiting', 'Started')) AS waiting,
    (SELECT count(*) FROM score WHERE suite = :suite AND state IN ('Failed', 'Refused')) AS failed,
    coalesce(d.tokens, 0) AS tokens, coalesce(d.cost_usd, 0) AS cost_usd, c.judge
FROM (SELECT :suite::uuid AS suite) one
    LEFT JOIN scoring_day d ON d.suite = one.suite AND d.day = (now() AT TIME ZONE 'utc')::date
    LEFT JOIN scoring c ON c.suite = one.suite

-- All scorings of an investigation: of each suite those of its present judge first, then the newest.
-- name: of_run
SELECT s.*, coalesce(s.judge = c.judge, false) AS current
FROM score s LEFT JOIN scoring c ON c.suite = s.suite
WHERE s.investigation = :investigation
ORDER BY s.suite_name, s.suite, (s.state = 'Completed') DESC, coalesce(s.judge = c.judge, false) DESC, s.round DESC
LIMIT :limit

-- The newest score of each investigation by the present judge, of the newest investigations.
-- name: newest
SELECT DISTINCT ON (s.investigation) i.chain, i.name, s.points, s.answer, s.finished_at
FROM scoring c JOIN score s ON s.suite = c.suite AND s.judge = c.judge JOIN investigation i ON i.id = s.investigation
WHERE c.suite = :suite AND s.state = 'Completed' AND s.finished_at > now() - make_interval(days => :days)
ORDER BY s.investigation, s.round DESC LIMIT :limit

-- Days whose budget nobody asks about any more.
-- name: purge_days
DELETE FROM scoring_day WHERE day < (now() AT TIME ZONE 'utc')::date - 62
