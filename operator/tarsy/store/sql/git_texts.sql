-- Reads and writes texts that were read from Git.

-- name: find_git_text
SELECT content, digest FROM git_text WHERE id = :id

-- name: git_text_used
UPDATE git_text SET used_at = now() WHERE id = :id AND used_at < now() - interval '1 day'

-- name: keep_git_text
INSERT INTO git_text (id, url, commit_id, path, content, digest)
VALUES (:id, :url, :commit_id, :path, :content, :digest)
ON CONFLICT (id) DO UPDATE SET used_at = now()

-- Those that were used last stay.
-- name: trim_git_texts
DELETE FROM git_text g
WHERE g.used_at < now() - interval '90 days'
    OR g.id NOT IN (SELECT id FROM git_text ORDER BY used_at DESC, id LIMIT :kept)
