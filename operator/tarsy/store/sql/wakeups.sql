-- Sends wake-ups, several in one round trip.

-- name: send
SELECT pg_notify(wake.channel, wake.payload)
FROM unnest(:channels::text[], :payloads::text[]) AS wake (channel, payload)

-- name: send_to
SELECT pg_notify(:channel, wake.payload) FROM unnest(:payloads::text[]) AS wake (payload)
