#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| portcullis::fuzzing::request_head(bytes));
