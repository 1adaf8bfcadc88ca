# The image holds one static program, the certificates it trusts by default, and a list of what it was made of.
#
# Two targets that differ in nothing but what they start: `agent` (also the default) and `extender`. Manifests written for the
# reference images set no command, so the image's entrypoint must be the right one. deploy/image.sh builds them.
FROM --platform=$BUILDPLATFORM debian:bookworm-slim AS build
ARG TARGETARCH
WORKDIR /ballast
COPY vendor vendor
RUN sh vendor/setup.sh --build-only --arch "${TARGETARCH:-$(dpkg --print-architecture)}"
COPY . .
RUN sh deploy/image-tree.sh /image "${TARGETARCH:-$(dpkg --print-architecture)}"

FROM scratch AS files
COPY --from=build /image/ /
USER 65532:65532
LABEL org.opencontainers.image.title="ballast" \
      org.opencontainers.image.description="Scales virtual machines and places pods on local disks, on Kubernetes nodes" \
      org.opencontainers.image.licenses="Apache-2.0"

FROM files AS extender
ENTRYPOINT ["/extender"]

FROM files AS agent
ENTRYPOINT ["/usr/bin/autoscaler-agent"]
