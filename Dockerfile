# FedGenie in a container. `docker build -t fedgenie .`, then
# `docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" fedgenie run SCENARIO --out results/NAME`.

FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package fedgenie

FROM debian:12.11-slim
RUN useradd --uid 10001 --no-create-home fedgenie && mkdir /work && chown fedgenie /work
COPY --from=build /source/target/release/fedgenie /usr/local/bin/fedgenie
USER 10001
WORKDIR /work
ENTRYPOINT ["fedgenie"]
CMD ["--help"]
