# polyseme serve in a slim image, run as an unprivileged user. See docs/deploy.md.
FROM python:3.11-slim AS build
# The compiler stays out of the final image; pinned versions of it disappear from the mirrors.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
RUN python -m venv /opt/polyseme \
    && /opt/polyseme/bin/pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu "torch~=2.13.0" \
    && /opt/polyseme/bin/pip install --no-cache-dir ".[serve,search]"

FROM python:3.11-slim
RUN useradd --uid 10001 --no-create-home polyseme
COPY --from=build /opt/polyseme /opt/polyseme
USER 10001
ENV PATH=/opt/polyseme/bin:$PATH PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=2)"]
ENTRYPOINT ["polyseme"]
CMD ["serve", "zh-classic", "--host", "0.0.0.0", "--port", "8000"]
