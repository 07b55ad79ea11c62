"""Emits the metrics, traces and logs of a process.

Read `metric_table` first: it declares every metric with its labels and their values. `metrics` counts them,
`metrics_server` serves them to Prometheus. `tracing` makes the spans of a run, `tracing_export` sends them by OTLP
(needs the extra `otel`). `logs` formats log lines and binds the context of a task to them.

This package imports no other package of the product but `listening`: the code that is measured gets a `Metrics` or a
`Tracing` as an argument. None of the three contains text of alerts, models or tools.
"""
