cd digits
sbatch --nodes 2 --gpus-per-node 8 train.sbatch
