$ aws batch submit-job --job-name digits --job-queue gpu-queue --job-definition digits-train:7
