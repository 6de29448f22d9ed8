"""The encoding of spans as the protobuf messages of OTLP 1.x (`opentelemetry-proto`, the extra `otel`)."""

import time
from collections.abc import Iterable, Mapping
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from sallyport import __version__
from sallyport.outgoing.spans import AttributeValue, Span

_AT_ONCE: Final = 128
"""Number of spans that are encoded in a row. After that, logins get the interpreter lock."""


def encode(spans: Iterable[Span], resource: Mapping[str, AttributeValue]) -> bytes:
    """Return the body of a request to a collector. resource: the attributes of this process."""
    encoded = []
    for number, span in enumerate(spans, 1):
        encoded.append(_span(span))
        if number % _AT_ONCE == 0:
            time.sleep(0.001)
    scope = trace_pb2.ScopeSpans(scope=InstrumentationScope(name="sallyport", version=__version__), spans=encoded)
    of_process = trace_pb2.ResourceSpans(resource=Resource(attributes=_pairs(resource)), scope_spans=[scope])
    octets: bytes = ExportTraceServiceRequest(resource_spans=[of_process]).SerializeToString()
    return octets


def _span(span: Span) -> trace_pb2.Span:
    return trace_pb2.Span(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id),
        name=span.name,
        kind=trace_pb2.Span.SPAN_KIND_SERVER if span.is_server else trace_pb2.Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.start_us * 1000,
        end_time_unix_nano=span.end_us * 1000,
        attributes=_pairs(span.attributes),
    )


def _pairs(values: Mapping[str, AttributeValue]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(each)) for name, each in values.items()]


def _value(value: AttributeValue) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value)
