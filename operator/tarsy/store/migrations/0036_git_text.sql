-- oldest reader: 4
-- plans: unchanged
-- Texts of skills and runbooks that were read from Git, so that a run need not wait for the repository again. Code before
-- this migration reads none. Decides nothing: the plan of a run has its own copy.

CREATE TABLE git_text (
    id text PRIMARY KEY,
    url text NOT NULL,
    commit_id text NOT NULL,
    path text NOT NULL,
    content text NOT NULL,
    digest text NOT NULL,
    used_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX git_text_used ON git_text (used_at);
COMMENT ON TABLE git_text IS 'files of commits of public repositories, as read for skills and runbooks';
COMMENT ON COLUMN git_text.id IS 'SHA-256 of URL, commit and path';
COMMENT ON COLUMN git_text.content IS 'the file, without NUL; not masked, because it is public';
COMMENT ON COLUMN git_text.digest IS 'SHA-256 of the file';
COMMENT ON COLUMN git_text.used_at IS 'when the operator last used it, within a day';
