# Everything starts here and needs nothing but make and Python 3.11 (or uv). Variables given to make reach the commands as
# environment variables, so any of crawlproj's settings can be given: make crawl SEEDS=https://example.org/ POLITENESS_DELAY=5
# A value reaches them as it was written: make would expand a $ in it, and run what stands in $(shell ...).
define as_written
override $(1) := $$(value $(1))
export $(1)
endef
$(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(eval $(call as_written,$(name)))))

PYTHON := .venv/bin/python
COMPILE = uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.PHONY: help crawl test proofs check bench growth deploy lock clean

help:
	@echo 'make crawl                     crawl the built-in demo web'
	@echo 'make crawl SEEDS="https://example.org/" ROBOT_CONTACT="mailto:you@example.org" [ARGS="-s POLITENESS_DELAY=5"]'
	@echo 'make test [ARGS="-k word"]     the tests, ten to fifteen minutes on two cores'
	@echo 'make proofs                    long campaigns: kills, floods, full disks'
	@echo 'make check                     ruff and mypy'
	@echo 'make bench                     benchmarks and their floors'
	@echo 'make growth                    a crawl of a million URLs, the store of copies, by hand'
	@echo 'make deploy                    the egg to the Scrapyd that scrapy.cfg names'
	@echo 'make lock                      new versions into requirements/*.lock (needs uv)'
	@echo 'make clean                     remove what was built; crawled data in .crawl stays'

# Seeds may be parted by commas or spaces.
crawl: .venv/.run
ifneq ($(strip $(value SEEDS)),)
	@$(PYTHON) -m scrapy crawl site -a seeds="$$(printf %s "$$SEEDS" | tr -s '[:space:]' ,)" $(value ARGS)
else
	@$(PYTHON) -m scrapy demo $(value ARGS)
endif

test: .venv/.test
	@$(PYTHON) -m pytest -n 2 --dist loadfile -m 'not proof' --durations=25 $(value ARGS)

proofs: .venv/.test
	@$(PYTHON) -m pytest -n 2 --dist loadfile -m proof --durations=25 $(value ARGS)

check: .venv/.test
	@$(PYTHON) -m ruff check --quiet --output-format concise .
	@$(PYTHON) -m ruff format --quiet --check . || \
		{ echo 'ruff format would change some files: .venv/bin/ruff format .' >&2; exit 1; }
	@$(PYTHON) -m mypy --no-error-summary

bench: .venv/.test
	@$(PYTHON) -m benchmarks.cost $(value ARGS)

growth: .venv/.test
	@$(PYTHON) -m benchmarks.growth $(value ARGS)
	@$(PYTHON) -m benchmarks.duplicates 1e6 1e7 5.7e6

deploy: .venv/.test
	@$(PYTHON) -m crawlproj.cli.deploy $(value ARGS)

lock:
	@command -v uv >/dev/null || { echo 'make lock needs uv' >&2; exit 1; }
	@$(COMPILE) pyproject.toml -o requirements/run.lock
	@$(COMPILE) pyproject.toml --extra test --constraint requirements/run.lock -o requirements/test.lock
	@echo pywb | $(COMPILE) - -o requirements/replay.lock

clean:
	@rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .install.log
	@find . -name __pycache__ -not -path './.git/*' -not -path './.crawl/*' -prune -exec rm -rf {} +

# Stamps: installed once, and again when the lock file changes. Tests need what a run needs, and more.
.venv/.run: requirements/run.lock requirements/install
	@requirements/install requirements/run.lock && touch $@

.venv/.test: requirements/test.lock requirements/install
	@requirements/install requirements/test.lock && touch .venv/.run $@
