"""The configuration of the log."""

import structlog
from structlog.testing import capture_logs

from sallyport.base import log


def test_a_used_logger_gets_a_new_configuration() -> None:
    """A logger that was used before the settings were read uses the new configuration from then on."""
    before = structlog.get_config()
    try:
        log.configure(form="json")
        logger = structlog.get_logger()
        logger.info("first")
        log.configure(form="text")
        with capture_logs() as logged:
            logger.info("second")
        assert [each["event"] for each in logged] == ["second"]
    finally:
        structlog.configure(**before)
