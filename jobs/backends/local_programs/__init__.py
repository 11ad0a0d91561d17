"""Programs of jobs on this machine: the supervisor of a job and the runner of an attempt. They start as fast as a
command, so nothing here imports a model or a backend."""
