-- Fragments that statements of several files contain.

-- The head of the chain of seals (`seal.next_head`) after the first step of a run, after a later step, and after the one
-- that ends a run before a worker had it. `i` is the investigation before the step.
-- name: _sealed_at
int8send((extract(epoch FROM now()) * 1000000)::bigint)

-- name: _first_head
sha256(:seal_digest::bytea || {_sealed_at})

-- name: _next_head
sha256(coalesce(i.seal, '') || :seal_digest::bytea || {_sealed_at})

-- name: _ended_head
sha256(coalesce(i.seal, '') || :ended_seal_digest::bytea || {_sealed_at})
