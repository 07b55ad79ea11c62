"""Reads one file of one commit of a Git repository over HTTPS, without a working copy and without the program `git`.

Decision: the smallest part of the protocol instead of a library. A pinned commit needs three requests of protocol 2
(commit, tree, file; servers of Git 2.18 and later), and a reader of packs. `dulwich` is well kept, but it brings its
own HTTP client, which would have to be taught to connect to checked addresses only (`tarsy.outbound`), and it unpacks
objects before their sizes can be limited. Here every size is checked before memory is used.

Decision: the server is not trusted. The identity of an object is its hash, so each object is hashed again, from the
commit down to the file: a server, or somebody between, can withhold a file but not replace it.

The room is a program of its own (`python -m tarsy.git`, a tool server with one tool) that needs no right and no
secret. It runs as a workload of its own in a cluster (component `git-fetcher`), and as a child process without an
environment on one machine. `tarsy.runtime.git_files` calls it. Whatever else reads files from Git uses the same.
"""
