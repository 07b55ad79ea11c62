"""The Kubernetes API as this project needs it: a client, credentials, Events, a Lease."""
