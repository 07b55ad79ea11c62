-- Finds finished investigations that a new run is told about.

-- name: _told
i.id, i.namespace, i.name, i.finished_at, i.finding, i.executive_summary, i.verdict, i.reviewed_by, i.incident_outcome

-- A verdict counts as the reviews of the run say; without one nobody knows. Confirmed findings first, then those of which
-- less is known, refuted ones last.
-- name: _verdict_rank
array_position(ARRAY['Right', 'Partly', '', 'Wrong'], coalesce(r.verdict, ''))

-- A finding that says nothing is no precedent.
-- name: _usable
i.parent IS NULL AND NOT i.replay AND i.state = 'completed' AND i.finding IS NOT NULL
    AND i.finding->>'confidence' IN ('High', 'Medium', 'Low')

-- Of the latest :looked runs of a namespace that have one of the keys, the best by verdict, then the latest. Only the first
-- :read of them are read, as some say nothing.
-- name: by_key
SELECT wanted.key, {_told}
FROM unnest(:keys::text[]) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT i.*, k.at, k.verdict, k.reviewed_by, k.verdict_rank
    FROM (
        SELECT k.*, r.verdict, r.reviewed_by, {_verdict_rank} AS verdict_rank
        FROM (
            SELECT investigation, accepted_at AS at FROM precedent_key
            WHERE namespace_uid = :namespace_uid AND key = wanted.key AND investigation <> :run
            ORDER BY accepted_at DESC LIMIT :looked
        ) k LEFT JOIN review_summary r ON r.investigation = k.investigation
        ORDER BY verdict_rank, k.at DESC LIMIT :read
    ) k JOIN investigation i ON i.id = k.investigation
    WHERE {_usable} ORDER BY k.verdict_rank, k.at DESC LIMIT :limit
) i

-- Objects of these kinds that were changed in the last :seconds, as keys, the latest first.
-- name: changed
SELECT 'object:' || kind || '/' || name AS key FROM object_head
WHERE namespace_uid = :namespace_uid AND kind = ANY(:kinds::text[])
    AND changed_at > now() - make_interval(secs => :seconds)
ORDER BY changed_at DESC LIMIT :limit

-- Runs of these namespaces with the required words, :looked at most. They are looked for among the latest :walked runs of
-- each namespace first. If those have fewer than :enough, the words are rare, and the index of words and namespaces finds
-- all runs that have them: OFFSET 0 keeps the planner from walking back through time for them instead.
-- name: _with_words
met AS MATERIALIZED (
    SELECT w.investigation, w.accepted_at, w.words FROM unnest(:namespace_uids::text[]) AS space (uid)
    CROSS JOIN LATERAL (
        SELECT w.investigation, w.accepted_at, w.words FROM investigation_words w
        WHERE w.precedent_of = space.uid ORDER BY w.accepted_at DESC LIMIT :walked
    ) w
    WHERE w.words @@ to_tsquery('pg_catalog.simple', :required) AND w.investigation <> :run
), common AS MATERIALIZED (
    SELECT count(*) >= :enough AS so FROM met
), found AS (
    (SELECT met.* FROM met, common WHERE common.so ORDER BY accepted_at DESC LIMIT :looked)
    UNION ALL
    (
        SELECT rare.* FROM (
            SELECT w.investigation, w.accepted_at, w.words FROM investigation_words w
            WHERE NOT (SELECT so FROM common) AND w.words @@ to_tsquery('pg_catalog.simple', :required)
                AND ARRAY[w.precedent_of] && :namespace_uids::text[] AND w.investigation <> :run
            OFFSET 0
        ) rare ORDER BY accepted_at DESC LIMIT :looked
    )
)

-- Of runs with the required words, the best by verdict, then those whose words fit best; a name in common weighs more than
-- any number of words.
-- name: by_words
WITH {_with_words}, best AS (
    SELECT f.investigation, r.verdict, r.reviewed_by, {_verdict_rank} AS verdict_rank,
        ts_rank(f.words, to_tsquery('pg_catalog.simple', :words))
        + CASE WHEN f.words @@ to_tsquery('pg_catalog.simple', :entities) THEN 1 ELSE 0 END AS score
    FROM found f LEFT JOIN review_summary r ON r.investigation = f.investigation
    ORDER BY verdict_rank, score DESC, f.investigation LIMIT :limit
)
SELECT {_told}, i.score
FROM (
    SELECT i.*, b.verdict, b.reviewed_by, b.verdict_rank, b.score
    FROM best b JOIN investigation i ON i.id = b.investigation
) i
ORDER BY i.verdict_rank, i.score DESC, i.id
