-- The line of each namespace and chain, in the order in which its runs are claimed: a claim reads the heads of the
-- lines, not every run that waits. It takes the place of the index over all open runs.

CREATE INDEX investigation_line ON investigation (namespace, chain_namespace, chain, priority DESC, accepted_at, id)
    WHERE state IN ('pending', 'running');
DROP INDEX investigation_open;
