# syntax is that of the engine's own BuildKit: no frontend is downloaded.
#
# One image for the operator, its workers, the shipped tool server and the gateway of others. Both stages start from the same base, so the
# virtual environment made in the first runs in the second. Any base with python3 (3.11 or newer) and its venv module
# will do. A pip configuration (an index of your own) goes in as the secret `pip`, never into a layer:
#   docker build --secret id=pip,src="$HOME/.config/pip/pip.conf" -t tarsy-operator:dev .
# By tag here; what is released is built with the digest of the day (docs/supply-chain.md):
#   docker build --build-arg BASE_IMAGE=python:3.13-slim-bookworm@sha256:... .
ARG BASE_IMAGE=python:3.13-slim-bookworm
# The page is built by any node that is 20.19 or newer; nothing of it but what Vite makes goes into the image. A
# configuration of npm (a registry of your own) goes in as the secret `npm`.
ARG NODE_IMAGE=node:22-bookworm-slim
# Where there is no such image: `make page` on the machine, and --build-arg PAGE=made takes that.
ARG PAGE=built
ARG COMPILER_IMAGE=gcc:14-bookworm
ARG LAUNCHER=built

FROM ${NODE_IMAGE} AS page-built
WORKDIR /src/operator/page
COPY operator/page/package.json operator/page/package-lock.json operator/page/.npmrc ./
RUN --mount=type=secret,id=npm,target=/root/.npmrc npm ci --omit=dev
COPY operator/page ./
RUN npm run build

FROM scratch AS page-made
COPY operator/tarsy/http/page /src/operator/tarsy/http/page

FROM page-${PAGE} AS page

# What starts tool servers in images of others: one program, linked statically. Any image with a C compiler and a C library
# as an archive will do; where there is none, `make launcher` on the machine, and --build-arg LAUNCHER=made takes that.
FROM ${COMPILER_IMAGE} AS launcher-built
COPY operator/launcher /src
RUN /src/build.sh /tarsy-launcher

FROM scratch AS launcher-made
COPY build/tarsy-launcher /tarsy-launcher

FROM launcher-${LAUNCHER} AS launcher

FROM ${BASE_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/tarsy
WORKDIR /src
COPY requirements-build.lock requirements-run.lock ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    /opt/build/bin/pip install --require-hashes --only-binary :all: -r requirements-build.lock && \
    /opt/build/bin/pip --python /opt/tarsy/bin/python install --no-compile --require-hashes --only-binary :all: \
        -r requirements-run.lock
COPY . .
RUN rm -rf operator/tarsy/http/page
COPY --from=page /src/operator/tarsy/http/page operator/tarsy/http/page
# Hashed bytecode that is never checked: nothing is compiled at run time, where the file system is read-only.
RUN /opt/build/bin/pip wheel --no-index --no-deps --no-build-isolation --wheel-dir /dist . && \
    /opt/build/bin/pip --python /opt/tarsy/bin/python install --no-index --no-deps --no-compile /dist/*.whl && \
    /opt/tarsy/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/tarsy/lib

FROM ${BASE_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="TARSy operator" \
      org.opencontainers.image.description="Investigates alerts with chains of LLM agents holding MCP tools." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# LANGSMITH_TRACING: prompts go to the model that was chosen, and nowhere else. HOME: the one folder that is writable.
# LOGNAME: kopf asks who runs it, and the user below has a number only.
ENV PATH=/opt/tarsy/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    LANGSMITH_TRACING=false \
    HOME=/tmp \
    LOGNAME=tarsy
COPY --from=build /opt/tarsy /opt/tarsy
COPY --from=launcher /tarsy-launcher /opt/tarsy/bin/tarsy-launcher
WORKDIR /tmp
USER 65532:65532
ENTRYPOINT ["tarsy"]
CMD ["run"]
