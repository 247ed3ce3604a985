# polyseme serve in a slim image without a compiler, run as an unprivileged user. It installs the wheels in dist/:
#     make dist && docker build -t polyseme .
# See docs/deploy.md.
FROM python:3.11-slim
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# The first command takes Polyseme from the wheels alone: the native one on x86-64, else the pure one.
RUN --mount=type=bind,source=dist,target=/dist \
    python -m venv /opt/polyseme \
    && /opt/polyseme/bin/pip install --no-cache-dir --no-deps --no-index --find-links /dist polyseme \
    && /opt/polyseme/bin/pip install --no-cache-dir --index-url "$TORCH_INDEX" "torch~=2.13.0" \
    && /opt/polyseme/bin/pip install --no-cache-dir --only-binary :all: "polyseme[serve,search]" \
    && useradd --uid 10001 --no-create-home polyseme
USER 10001
# Nothing is written: mount a tmpfs at /tmp, and the file system may be read-only.
ENV PATH=/opt/polyseme/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 POLYSEME_CACHE=/tmp/polyseme
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=2)"]
ENTRYPOINT ["polyseme"]
CMD ["serve", "zh-classic", "--host", "0.0.0.0", "--port", "8000"]
