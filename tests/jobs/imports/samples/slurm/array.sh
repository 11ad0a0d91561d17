#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --array=0-9%4
#SBATCH --gres=gpu:1
#SBATCH --mem=16G
#SBATCH --time=02:00:00
#SBATCH --partition=gpu
#SBATCH --mail-type=END
module load cuda/12.2
source activate digits
LRS=(0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0)
python train.py --lr ${LRS[$SLURM_ARRAY_TASK_ID]}
