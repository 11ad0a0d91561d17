#!/bin/bash
source ../env.sh
gcloud batch jobs submit --job-prefix=digits --location=${Location} --project=${ProjectID} --config - <<EOF
$(envsubst < ./job_with_volume.json)
EOF
