xpk workload create-pathways --workload digits --cluster c --tpu-type=v6e-8 --num-slices=2 --command "python3 train.py"
