#!/bin/bash
gcloud batch jobs submit first --location us-central1 --config first.json
gcloud batch jobs submit second --location us-central1 --config second.json
