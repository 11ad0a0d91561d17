"""The code of a job, sent with it: the files of a folder as one archive, named by its content, unpacked in the job.

tree       which files there are
secrets    which of them are credentials, and stay
refused    which cannot be sent
archive    the archive
store      where a target keeps it
inside     the program that unpacks it, in the job
shipping   a job's command with that program before it
"""
