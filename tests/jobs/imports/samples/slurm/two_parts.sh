#!/bin/bash
#SBATCH --ntasks=1
#SBATCH hetjob
#SBATCH --ntasks=4 --gres=gpu:4
srun --het-group=0 ./server : --het-group=1 ./worker
