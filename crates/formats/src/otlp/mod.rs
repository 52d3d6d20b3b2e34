//! Traces of OpenTelemetry.
