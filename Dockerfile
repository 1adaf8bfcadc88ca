# The image holds one static program and nothing else. It is `ballast`; started by the name autoscaler-agent, it is
# `ballast agent`, and by the name extender, `ballast extender`, so existing manifests keep their commands. /health_probe is
# what the readiness probe of csi-baremetal's operator runs.
FROM debian:bookworm-slim AS build
WORKDIR /ballast
COPY vendor vendor
RUN sh vendor/setup.sh --build-only
COPY . .
RUN cmake --preset release -DBALLAST_TESTS=OFF -DBALLAST_WERROR=OFF \
 && cmake --build build --target ballast \
 && mkdir -p image/usr/bin \
 && strip -o image/usr/bin/ballast build/ballast \
 && ln -s ballast image/usr/bin/autoscaler-agent \
 && ln -s ballast image/usr/bin/extender \
 && ln -s usr/bin/ballast image/health_probe

FROM scratch
COPY --from=build /ballast/image/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/ballast"]
