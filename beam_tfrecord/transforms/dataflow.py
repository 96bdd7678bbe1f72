"""What is peculiar to Dataflow: runs that submit nothing, credentials, staging places, and how its jobs fail."""

from __future__ import annotations

from importlib.util import find_spec

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, TestOptions
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator

from beam_tfrecord.errors import ConfigError, JobError
from beam_tfrecord.options.values import parse_flag


def check_client() -> None:
    """Raise ConfigError when the client of Dataflow is not installed, with which Beam translates and submits a job."""
    if find_spec("google.cloud.dataflow") is None:
        raise ConfigError(
            "--runner DataflowRunner needs Beam with Google's clients: pip install 'beam-tfrecord[dataflow]'"
        )


def read_dry_run(options: PipelineOptions) -> None:
    """Make Beam's ``--dry_run`` True or False: it keeps the text, and takes ``--dry_run=false`` for yes."""
    test = options.view_as(TestOptions)
    try:
        test.dry_run = parse_flag(test.dry_run)
    except ValueError as error:
        raise ConfigError(f"--dry_run {test.dry_run}: {error}") from None


def is_dry_run(options: PipelineOptions) -> bool:
    """Whether the graph is only translated, with no network."""
    return bool(options.view_as(TestOptions).dry_run)


def template_of(options: PipelineOptions) -> str:
    """Where the job is written as a template in place of being started; '' when it is started."""
    return str(options.view_as(GoogleCloudOptions).template_location or "")


def runs_nothing(options: PipelineOptions) -> bool:
    """Whether the run ends with a translated graph or a template, and starts no job."""
    return is_dry_run(options) or bool(template_of(options))


def check_folder(flag: str, place: str) -> None:
    """Raise ConfigError unless a ``gs://`` place is a folder in a bucket.

    Beam would put up with a wrong one: it makes a bucket of its own and stages there.
    """
    bucket, _, folder = place.removeprefix("gs://").partition("/")
    if not PipelineOptionsValidator(PipelineOptions([]), None).is_full_string_match(
        PipelineOptionsValidator.GCS_BUCKET, bucket
    ):
        raise ConfigError(f"{flag} {place}: {bucket!r} cannot be the name of a bucket")
    if not folder:
        raise ConfigError(f"{flag} {place}: give a folder in the bucket, such as gs://{bucket}/tmp")


def check_login(options: PipelineOptions) -> None:
    """Raise JobError when there are no Google Cloud credentials. Beam would look for half a minute and go on without.

    Nothing is looked for where none are needed: with ``--no_auth`` and in a dry run.
    """
    if options.view_as(GoogleCloudOptions).no_auth or is_dry_run(options):
        return
    from google.auth.exceptions import GoogleAuthError  # slow to import, and of no use to other engines

    from beam_tfrecord.storage.gcs_login import LOGIN_HINT, find_credentials

    try:
        found = find_credentials()
    except GoogleAuthError as error:
        raise JobError(f"the Google Cloud credentials cannot be used: {error}; {LOGIN_HINT}") from None
    if found is None:
        raise JobError(f"there are no Google Cloud credentials to submit a job to Dataflow with; {LOGIN_HINT}")


def dataflow_errors() -> tuple[type[BaseException], ...]:
    """What Beam raises for a job that ended badly, for one of that name that runs already, and when it lost sight of
    one."""
    from apache_beam.runners.dataflow.dataflow_runner import DataflowRuntimeException
    from apache_beam.runners.dataflow.internal.apiclient import DataflowJobAlreadyExistsError

    return DataflowRuntimeException, DataflowJobAlreadyExistsError, AssertionError


def dataflow_text(error: BaseException) -> str:
    """What it says, without the words for nothing."""
    from google.auth.exceptions import GoogleAuthError

    from beam_tfrecord.storage.gcs_login import LOGIN_HINT

    text = str(error).removesuffix(", Error:\nNone")
    return f"{text}; {LOGIN_HINT}" if isinstance(error, GoogleAuthError) else text


def console_link(options: PipelineOptions, job_id: str) -> str:
    """The page of a job."""
    cloud = options.view_as(GoogleCloudOptions)
    return f"https://console.cloud.google.com/dataflow/jobs/{cloud.region}/{job_id}?project={cloud.project}"
