# torchmigrate in a container. The project is mounted at /project:
#
#     docker build --tag torchmigrate .
#     docker run --rm --volume "$PWD:/project" --user "$(id -u):$(id -g)" torchmigrate check --target 2.9
FROM python:3.13-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels /source

FROM python:3.13-slim
# git is needed by `check --changed-since`. Its owner check refuses a directory that is mounted.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && git config --system --add safe.directory '*'
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels torchmigrate \
    && useradd --create-home --uid 1000 torchmigrate
USER 1000
WORKDIR /project
ENTRYPOINT ["torchmigrate"]
CMD ["check"]
