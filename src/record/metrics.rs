//! Counters and histograms for Prometheus, labelled only by names from the configuration.
