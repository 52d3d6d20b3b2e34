//! The log of the server, on standard error.

use tracing_subscriber::filter::LevelFilter;

use crate::args::{LogForm, LogLevel};

/// Begins to log. Only what Quipu itself says: libraries may say what requests hold.
pub(super) fn start(form: LogForm, level: LogLevel) {
    use tracing_subscriber::Layer as _;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let own = tracing_subscriber::filter::Targets::new().with_target("quipu", level);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(false);
    let layer = match form {
        LogForm::Text => layer.with_filter(own).boxed(),
        LogForm::Json => layer.json().flatten_event(true).with_filter(own).boxed(),
    };
    // A second server of the same process logs to the same place.
    drop(tracing_subscriber::registry().with(layer).try_init());
}
