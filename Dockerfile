# Built with the registry and the target directory cached, shipped without a shell, run by nobody in particular.
FROM rust:1.95-bookworm AS build
WORKDIR /src
# What the binary is made of, and nothing else: a change of a configuration or a page of documentation builds nothing.
COPY Cargo.toml Cargo.lock build.rs ./
COPY benches benches
COPY src src
# What `portcullis --version` names: docker build --build-arg PORTCULLIS_COMMIT=$(git rev-parse --short=12 HEAD)
ARG PORTCULLIS_COMMIT
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked && cp target/release/portcullis /portcullis

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /portcullis /usr/bin/portcullis
COPY config /etc/portcullis
WORKDIR /etc/portcullis
USER nonroot
EXPOSE 8080
# Asks http://127.0.0.1:9090, where the files in config/ have their admin listener; PORTCULLIS_ADMIN says otherwise.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["portcullis", "health"]
ENTRYPOINT ["portcullis"]
CMD ["run"]
