#!/bin/bash
#SBATCH --job-name={{ name }}-fsdp
#SBATCH --nodes={{ nodes }}
srun torchrun train.py
