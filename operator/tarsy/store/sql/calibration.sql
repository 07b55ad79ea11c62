-- Counts the verdicts of people on findings by Chain and confidence.

-- Chains with a verdict on findings in some namespaces (null: all), by namespace and name.
-- name: chains
SELECT DISTINCT s.chain_namespace, s.chain
FROM review_summary s JOIN investigation i ON i.id = s.investigation
WHERE s.verdict IS NOT NULL AND s.confidence IS NOT NULL
    AND (:namespace_uids::text[] IS NULL OR i.namespace_uid = ANY(:namespace_uids))
    AND (:after_namespace::text IS NULL OR (s.chain_namespace, s.chain) > (:after_namespace, :after_chain::text))
ORDER BY s.chain_namespace, s.chain LIMIT :limit

-- The newest verdicts on findings of each Chain, the newest first, by confidence.
-- name: verdicts
SELECT c.namespace, c.name, newest.confidence,
    array_agg(newest.verdict ORDER BY newest.finished_at DESC) AS verdicts
FROM unnest(:namespaces::text[], :names::text[]) AS c (namespace, name), LATERAL (
    SELECT r.confidence, r.verdict, r.finished_at FROM review_summary r
    WHERE r.chain_namespace = c.namespace AND r.chain = c.name AND r.verdict IS NOT NULL AND r.confidence IS NOT NULL
    ORDER BY r.finished_at DESC LIMIT :judged
) newest
GROUP BY c.namespace, c.name, newest.confidence

-- The newest findings of a Chain with confidence High whose Investigation is still there.
-- name: high_findings
SELECT id, namespace, name FROM investigation
WHERE chain_namespace = :namespace AND chain = :chain AND finished_at IS NOT NULL AND object_deleted_at IS NULL
    AND parent IS NULL AND finding->>'confidence' = 'High'
ORDER BY finished_at DESC LIMIT :limit
