# Every target runs on the sandbox: no cloud account, no credentials. A real deployment is plain `pulumi up -s prod`.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
STACK ?= dev
# Not empty: the logs of all jobs of `make up`.
V ?=
export V
# aws or gcp: only this cloud of the sandbox's environment; empty: both.
CLOUD ?=
JOB ?= examples/jobs/digits.yaml
BIN := .venv/bin
# Named after the content of what it installs, so that a checkout that only moves file times installs nothing.
FUNCTIONS := components/gcp/data/budget-function.txt components/gcp/data/reconcile-function.txt
STAMP := .venv/made-$(shell cat requirements.txt requirements-dev.txt $(FUNCTIONS) Makefile | cksum | cut -d' ' -f1)

# In two steps: a failure inside eval "$$(...)" goes unseen, and Pulumi would then run on the caller's own backend.
ON_SANDBOX = values=$$($(BIN)/sandbox env) || exit; eval "$$values"; : "$${PULUMI_BACKEND_URL:?}";

.PHONY: help install up deployed down preview test check soak bench lint types audit format sandbox-start sandbox-stop clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The engine is linked beside the commands, so that `. .venv/bin/activate` is all that a shell needs.
install: $(STAMP) ## Install what a deployment needs into .venv: packages, the commands, Pulumi's engine
	@engine=$$($(BIN)/python -m sandbox.toolchain --print) && \
	for command in "$$engine"/pulumi "$$engine"/pulumi-language-python*; do \
		[ "$$command" -ef "$(BIN)/$${command##*/}" ] || ln -sf "$$command" $(BIN)/; \
	done
	@echo "installed: $$($(BIN)/pulumi version) and accel; now: . $(BIN)/activate"

# On a machine without the commands of Kubernetes they are made at low priority while the AWS half is deployed and trains
# its job; the rest follows.
up: $(STAMP) ## Deploy on the sandbox (CLOUD=aws or gcp for one), run a job on every target at once (V=1: all logs)
	@if [ -z "$(CLOUD)$${ACCEL_SANDBOX_ONLY:-}" ] && ! $(BIN)/python -m sandbox.toolchain --check; then \
		log=.venv/kubernetes.log; \
		echo "AWS comes first: the commands of Kubernetes are made meanwhile (progress: $$log)" >&2; \
		nice -n 19 $(BIN)/python -m sandbox.toolchain --kubernetes 2> $$log & \
		ACCEL_SANDBOX_ONLY=aws $(MAKE) --no-print-directory deployed CLOUD=aws && \
		echo "Now Google Cloud, once the commands of Kubernetes are there (progress: $$log)" >&2 && \
		wait; \
	fi
	@$(MAKE) --no-print-directory deployed

deployed: sandbox-start
	@$(ON_SANDBOX) \
	config=$$($(BIN)/sandbox config $(if $(CLOUD),--cloud $(CLOUD))) && \
	pulumi stack select --create sandbox && \
	pulumi up --stack sandbox --config-file "$$config" --refresh --yes --skip-preview --suppress-outputs --non-interactive && \
	$(BIN)/stacks export --stack sandbox && \
	$(BIN)/python -m sandbox.first_jobs "$(JOB)"

down: sandbox-start ## Destroy what `make up` made, and stop the sandbox
	@$(ON_SANDBOX) \
	if pulumi stack select sandbox 2>/dev/null; then \
		pulumi destroy --stack sandbox --config-file "$$($(BIN)/sandbox config $(if $(CLOUD),--cloud $(CLOUD)))" \
			--yes --skip-preview --non-interactive --run-program && \
		pulumi stack rm sandbox --yes --preserve-config; \
	fi
	@$(BIN)/sandbox stop

# Pulumi writes an encryption salt into the file of each stack it touches, and a real stack's key is out of reach here:
# so a copy without them is read, and the tracked file stays as it is.
preview: sandbox-start ## Preview any environment on the sandbox without credentials: make preview STACK=prod
	@test -f Pulumi.$(STACK).yaml || { echo "error: there is no Pulumi.$(STACK).yaml" >&2; exit 2; }
	@$(ON_SANDBOX) \
	copy="$$SANDBOX_HOME/preview/Pulumi.$(STACK).yaml" && mkdir -p "$${copy%/*}" && cp Pulumi.yaml "$${copy%/*}" && \
	grep -vE '^(secretsprovider|encryptedkey|encryptionsalt):' Pulumi.$(STACK).yaml > "$$copy" && \
	echo "The sandbox knows nothing that $(STACK) already has, so every resource shows as a create." >&2 && \
	echo "Its quotas are its own too; one that is too small ends the preview here." >&2 && \
	$(BIN)/stacks quota $(STACK) && \
	pulumi --cwd "$${copy%/*}" stack select --create $(STACK) > /dev/null && \
	pulumi preview --stack $(STACK) --config-file "$$copy" --non-interactive

# The engine and the commands of Kubernetes are made before the tests: none of them waits for a build.
test: $(STAMP) ## Run the tests: of the long ones a sample, and of several proofs of the same thing one
	@$(BIN)/python -m sandbox.toolchain
	@$(BIN)/python -m pytest -n 4

# What a change breaks at once: these tests need no sandbox and no engine.
UNITS := tests/accel/catalog tests/accel/rules tests/policy/test_policies.py tests/test_house.py tests/docs/test_links.py
# `git diff` and `git ls-files`: what differs from the last commit, and what is new.
check: $(STAMP) ## The inner loop, under a minute: lint, types of the changed files, unit tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@changed=$$({ git diff --name-only --diff-filter=d HEAD; git ls-files --others --exclude-standard; } | grep '\.py$$' || true); \
	if [ -n "$$changed" ]; then $(BIN)/pyright $$changed; fi
	@$(BIN)/python -m pytest -q -n 2 $(UNITS)

soak: $(STAMP) ## Run every test, with the full counts, in parts (PARTS="kills budgets": some of them)
	@$(BIN)/python -m sandbox.toolchain
	@$(BIN)/python -m tests.soak $(PARTS)

bench: export ACCEL_SANDBOX_ONLY = aws
bench: sandbox-start ## Print ratios against named peers and limits
	@$(ON_SANDBOX) $(BIN)/python -m benchmarks

lint: $(STAMP) ## Check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP) ## Check types
	@$(BIN)/pyright --threads 2

AUDIT := .venv/audit/$(shell cksum < requirements-audit.txt | cut -d' ' -f1)
# Tests hold names of secrets, and no secret.
audit: $(STAMP) $(AUDIT) ## Have scanners look: zizmor at the workflows, Checkov for secrets and at what is deployed
	@$(AUDIT)/bin/zizmor --offline .github/workflows
	@$(AUDIT)/bin/checkov -d . --framework secrets --skip-download --quiet --compact --skip-path .venv --skip-path tests
	@ACCEL_CHECKOV="$$PWD/$(AUDIT)/bin/checkov" $(BIN)/python -m pytest -q tests/audit

$(AUDIT): | $(STAMP)
	@$(PYTHON) -m venv $@ && $@/bin/pip install --quiet -r requirements-audit.txt || { rm -rf $@; exit 1; }

format: $(STAMP) ## Format, and fix what can be fixed without a thought
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

sandbox-start: $(STAMP) # Started here, and never anything but the sandbox used
	@asked="$${PULUMI_BACKEND_URL:-}"; $(BIN)/sandbox start >&2 || exit; $(ON_SANDBOX) \
	if [ -n "$$asked" ] && [ "$$asked" != "$$PULUMI_BACKEND_URL" ]; then \
		echo "error: PULUMI_BACKEND_URL is $$asked, and make runs on the sandbox only" >&2; \
		echo "hint: unset PULUMI_BACKEND_URL, or deploy with pulumi up --stack NAME" >&2; \
		exit 2; \
	fi; \
	pulumi="$$SANDBOX_HOME/backend/.pulumi"; state="$$pulumi/stacks/accel/sandbox.json"; lost=; kept=; \
	made=$$(grep -oE '"type": *"(aws|gcp):' "$$state" 2>/dev/null | sort -u || true); \
	for part in cloud:AWS:aws google:Google:gcp; do \
		IFS=: read -r told name package <<< "$$part"; told="$$SANDBOX_HOME/$$told.json"; \
		if [ ! -e "$$told" ] || [[ -n "$$made" && "$$made" != *"$$package:"* ]]; then continue; fi; \
		if [ "$$told" -nt "$$state" ]; then lost="$$lost $$name"; else kept="$$kept $$name"; fi; \
	done; \
	if [ ! -e "$$state" ]; then \
		exit 0; \
	elif [ -z "$$kept" ]; then \
		echo "The sandbox was started again, and its clouds have forgotten what make up made: so does its state." >&2; \
		pulumi cancel sandbox --yes >&2; \
		pulumi stack rm sandbox --force --yes --preserve-config >&2; \
	elif compgen -G "$$pulumi/locks/organization/accel/sandbox/*.json" > /dev/null; then \
		echo "The last make was killed: what it left is put right first." >&2; \
		$(BIN)/stacks recover sandbox --yes >&2; \
	fi; \
	if [ -n "$$lost" ] && [ -n "$$kept" ]; then \
		echo "The sandbox's$$lost was started again, and has forgotten what make up made there: make up makes it again." >&2; \
		part="$$SANDBOX_HOME/state.json"; \
		pulumi stack export --stack sandbox | $(BIN)/python -m sandbox.state_filter $$lost > "$$part"; \
		pulumi stack import --stack sandbox --file "$$part" >&2; \
		rm "$$part"; \
	fi

sandbox-stop: $(STAMP) ## Stop the sandbox and keep its state
	@$(BIN)/sandbox stop

clean: ## Stop the sandbox and remove its state, the environment and build outputs
	@if [ -x $(BIN)/sandbox ]; then $(BIN)/sandbox stop --wipe; fi
	@rm -rf .venv .sandbox .accel build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# `jobs` is a builtin of every shell, so the same command is there under its installed name, accel-jobs, too.
# What the Cloud Run functions are built from is installed in the same versions: the sandbox calls them with what is here.
# The commands run the code of this checkout from any folder: the .pth line is relative to site-packages, so a checkout
# that is moved or copied still runs itself.
$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: accel needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) --version 2>&1)" >&2; \
		echo "hint: name another one: make PYTHON=python3.12" >&2; exit 2; }
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@echo "installing requirements-dev.txt into .venv" >&2
	@sed -n 's/^\([A-Za-z0-9_.-]*==[^ ]*\) .*/\1/p' $(FUNCTIONS) | sort -u > .venv/functions.txt
	@$(BIN)/python sandbox/toolchain/packages.py requirements-dev.txt .venv/functions.txt
	@site=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
		echo ../../../.. > "$$site/accel-checkout.pth"
	@for command in jobs accel-jobs stacks sandbox; do \
		printf '#!/bin/sh\nexec "$$(dirname -- "$$(readlink -f -- "$$0")")/python" -P -m %s "$$@"\n' \
			"$${command#accel-}" > $(BIN)/$$command && chmod 755 $(BIN)/$$command; \
	done
	@rm -f .venv/made-* && touch $@
