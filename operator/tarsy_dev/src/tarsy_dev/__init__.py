"""Everything on one machine: Kubernetes API, Postgres, scripted model, sample tools, the stack of them."""
