-- oldest reader: 4
-- plans: unchanged
-- The status that a finished run was published with, as a digest: an operator that starts finds out from one query that
-- tens of thousands of objects are as it left them. Code before this migration writes none, and then each is looked at.

ALTER TABLE investigation ADD COLUMN published_digest bytea;
COMMENT ON COLUMN investigation.published_digest IS
    'of a finished run: digest of the status of its object, as published and kept by the API; null: unknown';
