xpk workload create --cluster c --workload one --tpu-type=v6e-8 --command a
xpk workload create --cluster c --workload two --tpu-type=v6e-16 --command a
xpk workload create --cluster c --workload three --tpu-type=v6e-32 --command a
