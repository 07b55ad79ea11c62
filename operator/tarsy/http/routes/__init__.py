"""What can be asked, a module a subject: each has its parameters, its handlers and its part of the table of routes."""
