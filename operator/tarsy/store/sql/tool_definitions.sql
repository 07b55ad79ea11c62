-- Reads and writes the definitions of tools that people accept.

-- name: note
INSERT INTO tool_definition (server_uid, digest, tool, definition)
SELECT :server_uid, d.digest, d.tool, d.definition
FROM unnest(:digests::text[], :tools::text[], :definitions::text[]) AS d(digest, tool, definition)
ON CONFLICT (server_uid, digest) DO UPDATE SET last_seen = now()

-- Those that were seen last stay.
-- name: trim_definitions
DELETE FROM tool_definition t
WHERE t.server_uid = :server_uid AND t.digest NOT IN (
    SELECT digest FROM tool_definition WHERE server_uid = :server_uid ORDER BY last_seen DESC, digest LIMIT :kept)
    OR t.last_seen < now() - interval '1 year'

-- name: of_server
SELECT tool, digest, definition, first_seen FROM tool_definition WHERE server_uid = :server_uid
ORDER BY tool, first_seen, digest

-- name: forget_server
DELETE FROM tool_definition WHERE server_uid = :server_uid
