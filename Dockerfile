# The build caches the registry and the target directory. The image has no shell and runs as user `nonroot`.

# Empty, unless `docker build --build-context given=DIR` names what an earlier build has saved: then the binary is built by
# that, and has the same bytes.
FROM scratch AS given
WORKDIR /

FROM rust:1.95-bookworm AS build
WORKDIR /src
# `dist` is what ships; `release` and `dev` build sooner.
ARG PROFILE=dist
# What scripts/build-release needs, of the compiler's version of LLVM.
RUN if [ "$PROFILE" = dist ]; then \
        llvm=$(rustc --version --verbose | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p') \
        && apt-get update -qq && apt-get install -y -qq --no-install-recommends "llvm-$llvm" "bolt-$llvm"; \
    fi
# Only the sources of the binary, so that a change of a configuration or of the documentation builds nothing.
COPY Cargo.toml Cargo.lock build.rs ./
COPY .cargo .cargo
COPY benches benches
COPY scripts scripts
COPY src src
COPY --from=given / /given/
# The commit that `portcullis --version` shows: docker build --build-arg PORTCULLIS_COMMIT=$(git rev-parse --short=12 HEAD)
ARG PORTCULLIS_COMMIT
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    mkdir -p /profile; \
    if [ "$PROFILE" = dist ]; then \
        if [ -e /given/compiler.profdata ]; then use="--use-profile /given"; fi; \
        install -D "$(scripts/build-release --save-profile /profile $use)" /installed/bin/portcullis; \
    else cargo install --locked --path . --profile "$PROFILE" --root /installed; fi

# What the binary was built by: docker build --target profile --output DIR .
FROM scratch AS profile
COPY --from=build /profile /

FROM gcr.io/distroless/cc-debian12:nonroot
ARG PORTCULLIS_COMMIT
LABEL org.opencontainers.image.title="portcullis" \
      org.opencontainers.image.description="A reverse proxy and rate limiter that protects web applications from abuse" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$PORTCULLIS_COMMIT"
COPY --from=build /installed/bin/portcullis /usr/bin/portcullis
COPY config /etc/portcullis
WORKDIR /etc/portcullis
# The number of `nonroot`, because Kubernetes checks `runAsNonRoot` by number, not by name.
USER 65532:65532
EXPOSE 8080
# Asks http://127.0.0.1:9090, the admin listener of the files in config/. PORTCULLIS_ADMIN names another one.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["portcullis", "health"]
ENTRYPOINT ["portcullis"]
CMD ["run"]
