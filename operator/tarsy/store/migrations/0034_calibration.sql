-- oldest reader: 4
-- plans: unchanged
-- Chain and confidence beside each verdict, so that the verdicts on the findings of a chain are counted by an index.
-- Code of migration 33 writes summaries without them; the trigger adds them, whatever code writes.

ALTER TABLE review_summary
    ADD COLUMN chain text,
    ADD COLUMN chain_namespace text,
    ADD COLUMN confidence text,
    ADD COLUMN finished_at timestamptz;
COMMENT ON COLUMN review_summary.confidence IS 'of the finding, as its agents said';

CREATE FUNCTION review_summary_of_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT i.chain, i.chain_namespace, i.finding->>'confidence', i.finished_at
    INTO NEW.chain, NEW.chain_namespace, NEW.confidence, NEW.finished_at
    FROM tarsy.investigation i WHERE i.id = NEW.investigation;
    RETURN NEW;
END
$$;
CREATE TRIGGER review_summary_of_run BEFORE INSERT ON review_summary
    FOR EACH ROW EXECUTE FUNCTION review_summary_of_run();

UPDATE review_summary s SET chain = i.chain, chain_namespace = i.chain_namespace,
    confidence = i.finding->>'confidence', finished_at = i.finished_at
FROM investigation i WHERE i.id = s.investigation;

CREATE INDEX review_summary_chain ON review_summary (chain_namespace, chain, finished_at DESC) WHERE verdict IS NOT NULL;
