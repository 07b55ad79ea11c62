-- Finds finished investigations that a new run is told about.

-- name: _told
i.id, i.namespace, i.name, i.finished_at, i.finding, i.executive_summary

-- A finding that says nothing is no precedent.
-- name: _usable
i.parent IS NULL AND NOT i.replay AND i.state = 'completed' AND i.finding IS NOT NULL
    AND i.finding->>'confidence' IN ('High', 'Medium', 'Low')

-- The latest runs of a namespace that have one of the keys.
-- name: by_key
SELECT wanted.key, {_told}
FROM unnest(:keys::text[]) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT i.* FROM precedent_key k JOIN investigation i ON i.id = k.investigation
    WHERE k.namespace_uid = :namespace_uid AND k.key = wanted.key AND i.id <> :run AND {_usable}
    ORDER BY k.accepted_at DESC LIMIT :limit
) i

-- Objects of these kinds that were changed in the last :seconds, as keys, the latest first.
-- name: changed
SELECT 'object:' || kind || '/' || name AS key FROM object_head
WHERE namespace_uid = :namespace_uid AND kind = ANY(:kinds::text[])
    AND changed_at > now() - make_interval(secs => :seconds)
ORDER BY changed_at DESC LIMIT :limit

-- Of the latest :looked runs with the required words, those whose words fit best; a name in common weighs more than any
-- number of words.
-- name: by_words
SELECT {_told}, found.score
FROM (
    SELECT latest.id, ts_rank(latest.words, to_tsquery('pg_catalog.simple', :words))
        + CASE WHEN latest.words @@ to_tsquery('pg_catalog.simple', :entities) THEN 1 ELSE 0 END AS score
    FROM (
        SELECT i.id, w.words FROM investigation_words w JOIN investigation i ON i.id = w.investigation
        WHERE w.words @@ to_tsquery('pg_catalog.simple', :required) AND i.id <> :run
            AND i.namespace = ANY(:namespaces::text[]) AND i.namespace_uid = ANY(:namespace_uids::text[]) AND {_usable}
        ORDER BY w.accepted_at DESC LIMIT :looked
    ) latest
    ORDER BY score DESC, latest.id LIMIT :limit
) found JOIN investigation i ON i.id = found.id
ORDER BY found.score DESC, i.id
