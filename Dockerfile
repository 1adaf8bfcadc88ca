# The image holds one static program and nothing else. It is `ballast`; started by the name autoscaler-agent, it is
# `ballast agent`, so existing manifests keep their commands.
FROM debian:bookworm-slim AS build
WORKDIR /ballast
COPY vendor vendor
RUN sh vendor/setup.sh --build-only
COPY . .
RUN cmake --preset release -DBALLAST_TESTS=OFF -DBALLAST_WERROR=OFF \
 && cmake --build build --target ballast \
 && mkdir -p image/usr/bin \
 && strip -o image/usr/bin/ballast build/ballast \
 && ln -s ballast image/usr/bin/autoscaler-agent

FROM scratch
COPY --from=build /ballast/image/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/ballast"]
