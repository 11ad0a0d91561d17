#!/bin/bash
#SBATCH -p gpu -A chem -c 8
#SBATCH --gres=gpu:v100:1
module load apptainer
apptainer exec --nv docker://nvcr.io/nvidia/pytorch:24.10-py3 python train.py
