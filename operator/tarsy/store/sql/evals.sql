-- Stores the cases of EvalSuites, and the runs and samples that were measured with them.

-- name: cases
SELECT name, digest, source FROM eval_case WHERE suite = :suite AND retired_at IS NULL ORDER BY name

-- name: retire_case
UPDATE eval_case SET retired_at = now()
WHERE suite = :suite AND name = :name AND retired_at IS NULL AND digest <> :digest

-- name: put_case
INSERT INTO eval_case AS c (suite, name, digest, namespace, namespace_uid, source, plan, cassette)
VALUES (:suite, :name, :digest, :namespace, :namespace_uid, :source::jsonb, :plan, :cassette)
ON CONFLICT (suite, name, digest) DO UPDATE SET source = excluded.source, plan = excluded.plan, retired_at = NULL

-- name: keep_cases
UPDATE eval_case SET retired_at = now()
WHERE suite = :suite AND retired_at IS NULL AND NOT name = ANY(:names::text[])

-- name: case
SELECT namespace, cassette, source, plan FROM eval_case WHERE suite = :suite AND name = :name AND digest = :digest

-- name: case_plans
SELECT name, plan FROM eval_case WHERE suite = :suite AND retired_at IS NULL AND plan IS NOT NULL

-- name: begin
INSERT INTO eval_run (
    id, namespace, namespace_uid, name, suite, suite_name, suite_digest, terms, chain, chain_namespace, revision, baseline
) VALUES (
    :id, :namespace, :namespace_uid, :name, :suite, :suite_name, :suite_digest, :terms::jsonb, :chain, :chain_namespace,
    :revision, :baseline
) ON CONFLICT (id) DO NOTHING

-- name: run
SELECT * FROM eval_run WHERE id = :id

-- name: last_finished
SELECT name, verdict FROM eval_run WHERE suite = :suite AND finished_at IS NOT NULL
ORDER BY finished_at DESC, id LIMIT 1

-- name: finish
UPDATE eval_run SET finished_at = now(), verdict = :verdict, summary = :summary
WHERE id = :id AND finished_at IS NULL

-- name: add_sample
INSERT INTO eval_sample (run, case_name, sample, investigation)
VALUES (:run, :case_name, :sample, :investigation) ON CONFLICT (run, case_name, sample) DO NOTHING

-- The number of samples that have an outcome never goes back: the first outcome stays.
-- name: end_sample
UPDATE eval_sample SET outcome = :outcome, checks = :checks::jsonb, confident_wrong = :confident_wrong,
    coverage = :coverage, tokens = :tokens, cost_usd = :cost_usd, cost_complete = :cost_complete, finished_at = now()
WHERE run = :run AND case_name = :case_name AND sample = :sample AND outcome IS NULL

-- name: begun
SELECT case_name, sample, investigation, outcome IS NOT NULL AS ended FROM eval_sample WHERE run = :run
ORDER BY case_name, sample

-- name: totals
SELECT coalesce(sum(tokens), 0)::bigint AS tokens, sum(cost_usd) AS cost_usd,
    coalesce(bool_and(cost_complete), true) AS cost_complete
FROM eval_sample WHERE run = :run AND outcome IS NOT NULL

-- name: by_case
SELECT case_name AS name,
    count(*) FILTER (WHERE outcome = 'Passed')::integer AS passed,
    count(*) FILTER (WHERE outcome = 'Failed')::integer AS failed,
    count(*) FILTER (WHERE outcome = 'Inconclusive')::integer AS inconclusive,
    count(*) FILTER (WHERE confident_wrong)::integer AS confident_wrong
FROM eval_sample WHERE run = :run GROUP BY case_name ORDER BY case_name

-- name: samples
SELECT case_name, sample, investigation, outcome, checks, confident_wrong, coverage, tokens, cost_usd, cost_complete
FROM eval_sample WHERE run = :run ORDER BY case_name, sample LIMIT :limit

-- The newest runs of a suite.
-- name: suite_runs
SELECT r.*, b.name AS baseline_name FROM eval_run r LEFT JOIN eval_run b ON b.id = r.baseline
WHERE r.suite = :suite ORDER BY r.started_at DESC, r.id LIMIT :limit

-- name: cells
SELECT run, case_name AS name,
    count(*) FILTER (WHERE outcome = 'Passed')::integer AS passed,
    count(*) FILTER (WHERE outcome = 'Failed')::integer AS failed,
    count(*) FILTER (WHERE outcome = 'Inconclusive')::integer AS inconclusive,
    count(*) FILTER (WHERE confident_wrong)::integer AS confident_wrong,
    avg(coverage)::float8 AS coverage, coalesce(sum(tokens), 0)::bigint AS tokens, sum(cost_usd) AS cost_usd,
    coalesce(bool_and(cost_complete), true) AS cost_complete
FROM eval_sample WHERE run = ANY(:runs::uuid[]) GROUP BY run, case_name

-- Tool calls by the origin of their answers, of the samples whose investigations are on record.
-- name: cell_rungs
SELECT s.run, s.case_name AS name, r.key AS rung, sum(r.value::integer)::integer AS calls
FROM eval_sample s JOIN investigation i ON i.id = s.investigation
CROSS JOIN LATERAL jsonb_each_text(coalesce(i.replay_report->'rungs', '{}'::jsonb)) r
WHERE s.run = ANY(:runs::uuid[]) GROUP BY s.run, s.case_name, r.key

-- name: sample_page
SELECT s.case_name, s.sample, i.name AS investigation, s.outcome, s.checks, s.confident_wrong, s.coverage, s.tokens,
    s.cost_usd, s.cost_complete
FROM eval_sample s LEFT JOIN investigation i ON i.id = s.investigation
WHERE s.run = :run AND (s.case_name, s.sample) > (:case_name, :sample::integer)
    AND (:only::text IS NULL OR s.case_name = :only)
ORDER BY s.case_name, s.sample LIMIT :limit

-- The tool calls of a run, each once: an interrupted try counts only where no later one followed.
-- name: made_calls
SELECT DISTINCT ON (s.index, e.index, c.message_seq, c.index)
    c.server || '.' || c.tool AS tool, c.state = 'failed' AS failed, c.rung
FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
WHERE s.investigation = :investigation AND c.made
ORDER BY s.index, e.index, c.message_seq, c.index, c.attempt DESC

-- name: purge_cases
DELETE FROM eval_case c
WHERE c.retired_at < now() - make_interval(secs => :seconds)
    AND (cardinality(:namespaces::text[]) = 0 OR c.namespace = ANY(:namespaces::text[]))
    AND NOT EXISTS (SELECT FROM eval_run r WHERE r.suite = c.suite AND r.finished_at IS NULL)

-- The run that let a serving revision serve stays, and so does the newest one of each suite that passed it: the next
-- revision is compared with them.
-- name: purge_runs
DELETE FROM eval_run r
WHERE r.finished_at < now() - make_interval(secs => :seconds)
    AND (cardinality(:namespaces::text[]) = 0 OR r.namespace = ANY(:namespaces::text[]))
    AND NOT EXISTS (
        SELECT FROM chain_revision c
        WHERE c.state = 'serving' AND c.namespace = r.chain_namespace AND c.name = r.chain AND c.namespace = r.namespace
            AND (c.eval_run = r.name OR r.verdict = 'Passed' AND starts_with(c.digest, r.revision) AND NOT EXISTS (
                SELECT FROM eval_run l
                WHERE (l.suite, l.chain, l.revision, l.verdict) = (r.suite, r.chain, r.revision, 'Passed')
                    AND (l.finished_at, l.id) > (r.finished_at, r.id)
            ))
    )

-- A run whose object is gone ends without a verdict, and its retention begins.
-- name: end_deleted
UPDATE eval_run SET finished_at = now(), verdict = 'Cancelled', summary = 'The EvalRun was deleted.'
WHERE id = :id AND finished_at IS NULL

-- name: retire_suite
UPDATE eval_case SET retired_at = now() WHERE suite = :suite AND retired_at IS NULL

-- Deletions that no controller saw: :living are the uids of all EvalRuns and EvalSuites of :namespaces (none: all). What
-- is younger than a minute may be newer than the list.
-- name: end_missing
UPDATE eval_run SET finished_at = now(), verdict = 'Cancelled', summary = 'The EvalRun was deleted.'
WHERE finished_at IS NULL AND started_at < now() - interval '1 minute' AND NOT id = ANY(:living::uuid[])
    AND (cardinality(:namespaces::text[]) = 0 OR namespace = ANY(:namespaces::text[]))

-- name: retire_missing
UPDATE eval_case SET retired_at = now()
WHERE retired_at IS NULL AND stored_at < now() - interval '1 minute' AND NOT suite = ANY(:living::uuid[])
    AND (cardinality(:namespaces::text[]) = 0 OR namespace = ANY(:namespaces::text[]))
