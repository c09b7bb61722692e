#!/bin/sh
# Builds the site into build/site. The pages are those of docs, with the README as the first; links to files of the repository
# that are no pages become their names.
set -e
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
venv=build/site-tools
[ -x $venv/bin/mkdocs ] || { $python -m venv $venv && $venv/bin/pip install -q -r ci/site/requirements.txt; }
rm -rf build/site build/site-pages
mkdir -p build/site-pages
cp -R docs/*.md docs/pictures docs/schema ci/site/assets build/site-pages
sed -E 's#\]\(docs/#](#g' README.md > build/site-pages/index.md
sed -E -i 's#\[([^]]*)\]\((\.\./)?(deploy|examples|bench|tests|engine|ci|CONTRIBUTING|ARCHITECTURE|CHANGELOG|LICENSE)[^)]*\)#\1#g' build/site-pages/*.md
$venv/bin/mkdocs build -q --strict -f ci/site/mkdocs.yml
echo "open build/site/index.html"
