-- Keeps the book of applied migrations.

-- name: lock
SELECT pg_advisory_xact_lock(:key)

-- name: note
INSERT INTO schema_migrations (version, name, checksum, min_reader) VALUES (:version, :name, :checksum, :min_reader)

-- name: applied
SELECT version, checksum, min_reader FROM schema_migrations

-- name: has_column
SELECT EXISTS (
    SELECT FROM information_schema.columns
    WHERE table_schema = :schema AND table_name = :table AND column_name = :column
)

-- The first few live workers whose code is older than :version.
-- name: older_workers
SELECT host, schema_version FROM worker WHERE expires_at > clock_timestamp() AND schema_version < :version
ORDER BY schema_version, host LIMIT 3
