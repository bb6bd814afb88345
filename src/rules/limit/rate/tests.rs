use proptest::collection::btree_map;
use proptest::proptest;

use super::*;

#[track_caller]
fn reads(text: &str, expected: &[(u32, u64)]) {
    let rates: Rates = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let found: Vec<_> = rates.iter().map(|rate| (rate.count.get(), rate.per.as_secs())).collect();
    assert_eq!(found, expected, "{text}");
}

#[track_caller]
fn refuses(text: &str, expected: &str) {
    let error = text.parse::<Rates>().map(|rates| rates.to_string()).expect_err(text);
    assert_eq!(error.sentence(), expected, "{text}");
}

#[test]
fn a_rate_is_a_count_and_a_window() {
    reads("10/minute", &[(10, 60)]);
    reads("10 per 3 minutes", &[(10, 180)]);
    reads("10/3 minutes", &[(10, 180)]);
    reads("5/10s", &[(5, 10)]);
    reads("10 / 3minutes", &[(10, 180)]);
    reads("10 per minute", &[(10, 60)]);
    reads("10per3m", &[(10, 180)]);
    reads("4294967295/day", &[(u32::MAX, 86_400)]);
    reads("1/100 years", &[(1, 3_153_600_000)]);
}

#[test]
fn several_rates_stand_behind_each_other() {
    reads("1/second; 20/minute; 200/hour; 800/day", &[(1, 1), (20, 60), (200, 3600), (800, 86_400)]);
    reads("1/s,20/m|200/h;800/d", &[(1, 1), (20, 60), (200, 3600), (800, 86_400)]);
}

#[test]
fn units_have_names_plurals_and_letters() {
    for (seconds, names) in [
        (1, &["s", "second", "seconds"][..]),
        (60, &["m", "minute", "minutes"]),
        (3600, &["h", "hour", "hours"]),
        (86_400, &["d", "day", "days"]),
        (604_800, &["week", "weeks"]),
        (2_592_000, &["month", "months"]),
        (31_536_000, &["year", "years"]),
    ] {
        for name in names {
            reads(&format!("7/{name}"), &[(7, seconds)]);
            reads(&format!("7 PER 2 {}", name.to_uppercase()), &[(7, 2 * seconds)]);
        }
    }
}

#[test]
fn space_does_not_matter() {
    reads("  10   per\t3\nminutes ;1 /s ", &[(10, 180), (1, 1)]);
}

#[test]
fn a_wrong_rate_says_what_is_wrong() {
    const EXAMPLES: &str = "write a count and a window such as `10/minute` or `10 per 3 minutes`";
    const AT_LEAST: &str = "write a count of 1 or more, such as `1/minute`; to refuse a client always, put it on a list under \
                            `access.deny`";
    refuses("", &format!("a rate is missing, {EXAMPLES}"));
    refuses("1/second;", &format!("a rate is missing, {EXAMPLES}"));
    refuses("1/second;;2/minute", &format!("a rate is missing, {EXAMPLES}"));
    refuses("0/minute", &format!("a rate needs a count above zero, {AT_LEAST}"));
    refuses("4294967296/minute", "a count of 4294967296 is too large, write at most `4294967295`");
    refuses("10/0 minutes", "a window of no time counts nothing, write at least one second");
    refuses("10/101 years", "a window of 101 years is too long, write at most `100 years`");
    refuses("10/99999999999999999999s", "a window of 99999999999999999999s is too long, write at most `100 years`");
    refuses(
        "10/18446744073709551615 days",
        "a window of 18446744073709551615 days is too long, write at most `100 years`",
    );
    refuses("10/fortnight", "unknown unit `fortnight`, expected second, minute, hour, day, week, month or year");
    refuses("10/ms", "unknown unit `ms`, expected second, minute, hour, day, week, month or year");
    for text in ["10", "minute", "10 minute", "-1/minute", "1.5/minute", "10/", "10/3", "10 period 3s", "ten/minute"] {
        refuses(text, &format!("`{text}` is not a rate, {EXAMPLES}"));
    }
    refuses("10r/s", "`10r/s` is not a rate, write `10/s`");
    let span = "a window is a span such as `1000/day`, wherever it begins";
    let calendar = "spans of the calendar, as in `9 per Calendar day`, are not implemented in this version yet";
    refuses("9 per Calendar day", &format!("{calendar}, {span}"));
    refuses("10/1.5 minutes", &format!("`10/1.5 minutes` is not a rate, {EXAMPLES}"));
}

#[test]
fn two_rates_for_one_window_are_a_mistake() {
    refuses(
        "5/minute; 10 per 60 seconds",
        "two rates for the same window, `5/minute` and `10/minute`, write the smaller one, `5/minute`",
    );
}

#[test]
fn a_rate_is_printed_in_its_largest_unit() {
    for (text, printed) in [
        ("10 per 60 s", "10/minute"),
        ("10/180s", "10 per 3 minutes"),
        ("5/90 s|1/7d", "5 per 90 seconds; 1/week"),
        ("3/14 days", "3 per 2 weeks"),
    ] {
        assert_eq!(text.parse::<Rates>().expect(text).to_string(), printed);
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_the_same(rates in btree_map(1..=3_153_600_000_u64, 1..u32::MAX, 1..5)) {
        let rates: Vec<Rate> = rates
            .into_iter()
            .map(|(per, count)| Rate { count: count.try_into().expect("above zero"), per: Duration::from_secs(per) })
            .collect();
        let rates = Rates::new(rates).expect("all windows differ");
        assert_eq!(rates.to_string().parse(), Ok(rates));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC*", near in "[0-9]{0,12} ?(/|per|pér)? ?[0-9]{0,22} ?[a-zA-Zß]{0,8}") {
        for text in [text, near] {
            let _ = text.parse::<Rates>();
        }
    }
}
