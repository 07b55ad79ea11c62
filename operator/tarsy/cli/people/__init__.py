"""What a person does from a terminal: through an API, as themselves, never past it.

`door` is how the API is reached, `kubeconfig` as whom; `refusals` says what to do where it says no. The other modules
are the commands: each reads what the API tells and prints it for people, or as it is for programs.
"""
