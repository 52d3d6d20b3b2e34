//! Tables for analysis.
