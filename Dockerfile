# One image for the workers of a cluster and for the launcher of a Dataflow Flex Template: docs/clusters.md.
#
#   docker build -t IMAGE .                               with s3://, HEIC, COCO masks: --build-arg EXTRAS=aws,heif,coco
#   beam-tfrecord convert ... --runner DataflowRunner --sdk_container_image IMAGE
#
# No Docker engine was at hand: `make test-image` builds this file without one, with stand-ins for both base images, and
# runs it as a worker pool and as a launcher. docs/clusters.md says what stood in for what.

ARG BEAM_VERSION=2.77.0

FROM gcr.io/dataflow-templates-base/python311-template-launcher-base:latest AS launcher

# The Beam image has Python 3.11 and, as /opt/apache/beam/boot, the program that starts the SDK harness.
# Its Beam must be the one that constraints.txt pins.
FROM apache/beam_python3.11_sdk:${BEAM_VERSION}

COPY --from=launcher /opt/google/dataflow/python_template_launcher /opt/google/dataflow/python_template_launcher

# Dependencies in a layer of their own; what the Beam image has already at the pinned version stays as it is.
# No TensorFlow: neither the workers nor the convert job import it. What pip builds in this folder does not stay.
ARG EXTRAS=""
WORKDIR /opt/beam_tfrecord
COPY setup.py pyproject.toml constraints.txt README.md LICENSE ./
COPY beam_tfrecord beam_tfrecord
COPY pipelines pipelines
RUN pip install --no-cache-dir --constraint constraints.txt ".[dataflow${EXTRAS:+,${EXTRAS}}]" \
    && rm -rf build ./*.egg-info \
    && pip check \
    && python -c "import importlib.util as u; assert u.find_spec('tensorflow') is None, 'TensorFlow in the image'"

# The package is installed in the image's own Python. A virtual environment beside it, which the harness would make at
# every start below /opt/apache, would only cost time and a folder that must be writable.
ENV RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1

# What the launcher runs to build the graph. It imports the installed package; flex_template.json tells its parameters.
ENV FLEX_TEMPLATE_PYTHON_PY_FILE=/opt/beam_tfrecord/pipelines/flex_template.py

# Where the cluster lets a container choose its user (a Flink worker pool on Kubernetes: runAsUser: 10001), it needs no
# root: only the temporary and the staging folder are written. The default stays root, because Dataflow mounts its
# staging folder /var/opt/google as root.
RUN useradd --uid 10001 --create-home beam
ARG RUN_AS=root
USER ${RUN_AS}
WORKDIR /tmp

ENTRYPOINT ["/opt/apache/beam/boot"]
