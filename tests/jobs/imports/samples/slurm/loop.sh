for seed in 1 2 3; do
    sbatch <<EOT
#!/bin/sh
#SBATCH -n 2
#SBATCH -t 5:00:00
#SBATCH -J seed_$seed
python train.py --seed $seed
EOT
done
