"""The code of a job: the files of a folder as one archive, named by its content and unpacked in the job.

tree          the files of a folder
archive       the archive, and the files that it leaves out or refuses
requirements  the packages of the job, in a file for pip
shipping      the stores of archives, and a job's command with the fetching program before it
inside        the program that unpacks the archive, in the job
option        `jobs submit --code`
"""
