-- oldest reader: 4
-- plans: unchanged
-- Revisions of Chains with spec.promotion: which one new runs use, and which ones were tried. Code before this migration
-- reads none, and plans runs from the newest objects.

CREATE TABLE chain_revision (
    chain_uid text NOT NULL,
    digest text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    generation bigint NOT NULL,
    objects text NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    eval_run text,
    author jsonb,
    noted_at timestamptz NOT NULL DEFAULT now(),
    decided_at timestamptz,
    PRIMARY KEY (chain_uid, digest)
);
COMMENT ON TABLE chain_revision IS 'revisions of Chains that are or were candidates, or served';
COMMENT ON COLUMN chain_revision.digest IS 'of the template of its plans; the same objects later are the same revision';
COMMENT ON COLUMN chain_revision.objects IS 'JSON: the Chain, and the objects that its template was resolved from';
COMMENT ON COLUMN chain_revision.state IS 'candidate, serving, rejected, or retired: it served before';
COMMENT ON COLUMN chain_revision.author IS 'who let it serve without a passed evaluation';
COMMENT ON COLUMN chain_revision.noted_at IS 'when it last became the revision of the current objects';

CREATE UNIQUE INDEX chain_revision_serving ON chain_revision (chain_uid) WHERE state = 'serving';
