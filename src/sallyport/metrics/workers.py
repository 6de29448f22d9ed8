"""The metrics of several workers, merged at one address.

Counters and histograms get the label `worker`. Without this label, the sum over all workers would fall when one worker
restarts, and a query would take this for a reset. Gauges do not get the label, so a query sees the gauges of a single
service. The gauges in ADDED are the sum over all workers. The gauges in LOWEST have the lowest value of all workers.
All other gauges have the highest value of all workers.
"""

import re
from collections.abc import Mapping
from typing import Final

ADDED: Final = frozenset(
    {
        "sallyport_accounting_spool_bytes",
        "sallyport_accounting_spool_waiting_records",
        "sallyport_agents_waiting",
        "sallyport_process_resident_memory_bytes",
        "sallyport_process_virtual_memory_bytes",
        "sallyport_radius_inflight_requests",
        "sallyport_radsec_connections",
        "sallyport_store_queue_depth",
    }
)
LOWEST: Final = frozenset({"sallyport_config_last_reload_success_timestamp_seconds"})
_HEAD: Final = re.compile(r"# (HELP|TYPE) (\S+) (.*)")
_SAMPLE: Final = re.compile(r'([^ {]+)(\{(?:[^"}]|"(?:\\.|[^"\\])*")*\})? (\S+(?: # .*)?)')
_END: Final = "# EOF"
"""The last line in OpenMetrics. The text format of Prometheus has no such line."""


def merged(texts: Mapping[int, str]) -> str:
    """Merge the metrics of all workers, and return them in the same format.

    texts: the metrics of each worker in the text format of Prometheus or in OpenMetrics, by the number of the worker.
    """
    families: dict[str, list[str]] = {}
    gauges: dict[str, dict[str, float]] = {}
    end: list[str] = []
    for number, text in texts.items():
        family, is_gauge = "", False
        for line in text.removesuffix("\n").split("\n"):  # a name may have other ends of lines
            head = _HEAD.fullmatch(line)
            if line == _END:
                end = [line]
            elif head is None:
                name, labels, value = _SAMPLE.fullmatch(line).groups("")  # type: ignore[union-attr]
                if is_gauge:
                    _join(gauges.setdefault(family, {}), family, name + labels, float(value))
                else:
                    families[family].append(f"{name}{_labelled(labels, number)} {value}")
            elif head[1] == "HELP":
                family = head[2]
                families.setdefault(family, [line])
            else:
                is_gauge = head[3] == "gauge"
                if line not in families[family]:
                    families[family].append(line)
    lines = []
    for family, found in families.items():
        lines += found
        lines += [f"{sample} {value!r}" for sample, value in gauges.get(family, {}).items()]
    return "\n".join([*lines, *end, ""])


def _labelled(labels: str, number: int) -> str:
    return f'{{worker="{number}",{labels[1:]}' if labels else f'{{worker="{number}"}}'


def _join(samples: dict[str, float], family: str, sample: str, value: float) -> None:
    if sample not in samples:
        samples[sample] = value
    elif family in ADDED:
        samples[sample] += value
    else:
        samples[sample] = (min if family in LOWEST else max)(samples[sample], value)
