-- Finds finished investigations that a new run is told about.

-- name: _told
i.id, i.namespace, i.name, i.finished_at, i.finding, i.executive_summary, i.verdict, i.reviewed_by, i.incident_outcome

-- A verdict counts as the reviews of the run say; without one nobody knows.
-- name: _reviews
LEFT JOIN review_summary r ON r.investigation = i.id

-- Confirmed findings first, then those of which less is known, refuted ones last.
-- name: _by_verdict
array_position(ARRAY['Right', 'Partly', '', 'Wrong'], coalesce(i.verdict, ''))

-- A finding that says nothing is no precedent.
-- name: _usable
i.parent IS NULL AND NOT i.replay AND i.state = 'completed' AND i.finding IS NOT NULL
    AND i.finding->>'confidence' IN ('High', 'Medium', 'Low')

-- Of the latest :looked runs of a namespace that have one of the keys, the best by verdict, then the latest.
-- name: by_key
SELECT wanted.key, {_told}
FROM unnest(:keys::text[]) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT i.* FROM (
        SELECT i.*, k.accepted_at AS at, r.verdict, r.reviewed_by
        FROM precedent_key k JOIN investigation i ON i.id = k.investigation {_reviews}
        WHERE k.namespace_uid = :namespace_uid AND k.key = wanted.key AND i.id <> :run AND {_usable}
        ORDER BY k.accepted_at DESC LIMIT :looked
    ) i ORDER BY {_by_verdict}, i.at DESC LIMIT :limit
) i

-- Objects of these kinds that were changed in the last :seconds, as keys, the latest first.
-- name: changed
SELECT 'object:' || kind || '/' || name AS key FROM object_head
WHERE namespace_uid = :namespace_uid AND kind = ANY(:kinds::text[])
    AND changed_at > now() - make_interval(secs => :seconds)
ORDER BY changed_at DESC LIMIT :limit

-- Of the latest :looked runs with the required words, the best by verdict, then those whose words fit best; a name in
-- common weighs more than any number of words.
-- name: by_words
SELECT {_told}, i.score
FROM (
    SELECT i.*, r.verdict, r.reviewed_by, ts_rank(i.words, to_tsquery('pg_catalog.simple', :words))
        + CASE WHEN i.words @@ to_tsquery('pg_catalog.simple', :entities) THEN 1 ELSE 0 END AS score
    FROM (
        SELECT i.*, w.words FROM investigation_words w JOIN investigation i ON i.id = w.investigation
        WHERE w.words @@ to_tsquery('pg_catalog.simple', :required) AND i.id <> :run
            AND i.namespace = ANY(:namespaces::text[]) AND i.namespace_uid = ANY(:namespace_uids::text[]) AND {_usable}
        ORDER BY w.accepted_at DESC LIMIT :looked
    ) i {_reviews}
) i
ORDER BY {_by_verdict}, i.score DESC, i.id LIMIT :limit
