-- Stores what the judges of suites were asked and answered.

-- Calls of a controller that is gone will not end.
-- name: interrupt
UPDATE judge_call SET state = 'interrupted', finished_at = now(), problem = :problem
WHERE run = :run AND case_name = :case_name AND about = :about AND number = :number AND state = 'started'
    AND owner <> :owner

-- Begins the next attempt, unless one is under way or has an answer.
-- name: begin
INSERT INTO judge_call (run, case_name, about, number, attempt, owner, state)
SELECT :run, :case_name, :about, :number, coalesce(max(attempt), 0) + 1, :owner, 'started'
FROM judge_call WHERE run = :run AND case_name = :case_name AND about = :about AND number = :number
HAVING count(*) FILTER (WHERE state IN ('started', 'completed')) = 0
ON CONFLICT DO NOTHING RETURNING attempt

-- name: end
UPDATE judge_call SET state = :state, finished_at = now(), answers = :answers::jsonb, problem = :problem,
    tokens = :tokens, cost_usd = :cost_usd, cost_complete = :cost_complete
WHERE run = :run AND case_name = :case_name AND about = :about AND number = :number AND attempt = :attempt
    AND state = 'started'

-- The newest attempt of each item.
-- name: newest
SELECT DISTINCT ON (case_name, about, number) case_name, about, number, attempt, owner, state, answers, problem,
    coalesce(extract(epoch FROM now() - finished_at), 0)::float8 AS seconds_ago
FROM judge_call WHERE run = :run ORDER BY case_name, about, number, attempt DESC

-- name: usage
SELECT run, count(*)::integer AS calls,
    count(*) FILTER (WHERE state IN ('failed', 'interrupted'))::integer AS failed,
    coalesce(sum(tokens), 0)::bigint AS tokens, sum(cost_usd) AS cost_usd,
    coalesce(bool_and(cost_complete), true) AS cost_complete
FROM judge_call WHERE run = ANY(:runs::uuid[]) AND state <> 'started' GROUP BY run

-- The first agreement that was measured stays.
-- name: agree
UPDATE eval_run SET agreement = :agreement::jsonb WHERE id = :run AND agreement IS NULL
