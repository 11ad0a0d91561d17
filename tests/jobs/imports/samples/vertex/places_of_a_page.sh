gcloud ai custom-jobs create --region=<LOCATION> --display-name=<JOB_NAME> \
  --worker-pool-spec=machine-type=<MACHINE_TYPE>,replica-count=1,container-image-uri=<IMAGE_URI>
