"""The text and the columns that a device makes are those of the host, also if they are many."""

import pytest
from helpers.device_cases import (  # noqa: F401
    test_the_columns_are_those_of_the_host,
    test_the_text_is_that_of_the_host,
    wrong_columns,
    wrong_text,
)
from helpers.text_cases import STYLES, many_rows

from mummergpu.matching.kmer.cuda_consumers import WINDOW_BYTES

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.mark.parametrize("record_count", [1, 2000])
def test_many_rows_are_those_of_the_host(device, cache, record_count):
    """Lines of several windows."""
    case = many_rows(record_count)
    for style in (STYLES[0], STYLES[7]):
        assert len(case.text(style)) > 2 * WINDOW_BYTES
        assert wrong_text(device, cache, case, style) is None
    assert wrong_columns(device, cache, case) is None
