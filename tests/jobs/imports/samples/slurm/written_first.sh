cat << 'EOF' > job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:a100:2
python train.py "$1"
EOF
sbatch --job-name digits job.sbatch large
