//! What a conversion did not carry.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quipu_api::convert::{Conversion, Places, Reading};
use quipu_convert::Report;
use quipu_formats::loss::Tally;

use super::path;

/// What became of a session on its way to another format.
pub fn conversion(report: &Report) -> Conversion {
    let (reading, loss) = (&report.reading, &report.loss);
    Conversion {
        source: path(&report.source),
        from: report.from.clone(),
        to: report.to.to_owned(),
        run_id: report.run_id.clone(),
        reading: Reading {
            records: reading.records,
            dropped: reading.dropped.clone(),
            mended: reading.mended.clone(),
            problems: reading.problems.clone(),
            remarks: reading.remarks.clone(),
            unkept: reading.unkept.clone(),
            read_as: reading.read_as.clone(),
        },
        secrets: report.secrets,
        events: loss.events,
        carried: loss.carried,
        dropped: places(&loss.dropped),
        wrapped: places(&loss.wrapped),
        inferred: places(&loss.inferred),
    }
}

fn places(tallies: &BTreeMap<Cow<'static, str>, Tally>) -> BTreeMap<String, Places> {
    let places = tallies.iter().map(|(what, tally)| {
        let places = Places {
            count: tally.count,
            first_seq: tally.first_seq,
            examples: tally.examples.clone(),
        };
        (what.to_string(), places)
    });
    places.collect()
}
