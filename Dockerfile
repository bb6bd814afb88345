# Built with the registry and the target directory cached, shipped without a shell.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked && cp target/release/portcullis /portcullis

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /portcullis /usr/bin/portcullis
COPY config /etc/portcullis
WORKDIR /etc/portcullis
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s CMD ["portcullis", "health"]
ENTRYPOINT ["portcullis"]
CMD ["run"]
