#!/bin/bash
LR=0.1
sbatch --time=30 <<EOF
#!/bin/bash
#SBATCH --job-name=digits-$LR
#SBATCH --gres=gpu:1
#SBATCH --time=120
echo "on \$(hostname), job \$SLURM_JOB_ID"
python train.py --lr $LR
EOF
