gcloud ai-platform jobs submit prediction digits_predict --model digits --region us-central1 \
  --input-paths gs://acme-digits/in/* --output-path gs://acme-digits/out --data-format TEXT
