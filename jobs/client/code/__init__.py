"""The code of a job: the files of a folder as one archive, named by its content and unpacked in the job by the program
that `inside` has. `jobs submit --code` enters by `option`."""
