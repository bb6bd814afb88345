# Built with the registry and the target directory cached, shipped without a shell, run by nobody in particular.
FROM rust:1.95-bookworm AS build
WORKDIR /src
# What the binary is made of, and nothing else: a change of a configuration or a page of documentation builds nothing.
COPY Cargo.toml Cargo.lock build.rs ./
COPY benches benches
COPY src src
# What `portcullis --version` names: docker build --build-arg PORTCULLIS_COMMIT=$(git rev-parse --short=12 HEAD)
ARG PORTCULLIS_COMMIT
# `dist` is what ships; `release` and `dev` build sooner.
ARG PROFILE=dist
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo install --locked --path . --profile "$PROFILE" --root /installed

FROM gcr.io/distroless/cc-debian12:nonroot
ARG PORTCULLIS_COMMIT
LABEL org.opencontainers.image.title="portcullis" \
      org.opencontainers.image.description="A reverse proxy that keeps abuse away from applications nobody wants to touch" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$PORTCULLIS_COMMIT"
COPY --from=build /installed/bin/portcullis /usr/bin/portcullis
COPY config /etc/portcullis
WORKDIR /etc/portcullis
# The number of `nonroot`: Kubernetes, asked to run nothing as root, does not look names up.
USER 65532:65532
EXPOSE 8080
# Asks http://127.0.0.1:9090, where the files in config/ have their admin listener; PORTCULLIS_ADMIN says otherwise.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["portcullis", "health"]
ENTRYPOINT ["portcullis"]
CMD ["run"]
