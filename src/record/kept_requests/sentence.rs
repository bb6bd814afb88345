//! The story of a request as a sentence that a support desk can read out.

use std::time::Duration;

use super::{KeptCause, KeptLimit, KeptRequest, LimitFacts, Viewer};
use crate::record::DecisionLabel;
use crate::rules::decision::Grounds;
use crate::rules::limit::{Rate, Standing};
use crate::words::clock::Timestamp;
use crate::words::units::counted;

/// Says what happened to a request, why, and when that ends.
pub(super) fn sentence(request: &KeptRequest, viewer: Viewer) -> String {
    let KeptRequest { decision, facts, .. } = request;
    let time = clock_time(facts.came, facts.came);
    let deciding = request.met_limits().find(|(met, _)| facts.limit == Some(met.limit));
    let what = match (decision, deciding.and_then(|(_, limit)| limit.delay)) {
        (DecisionLabel::Delayed, Some(span)) => format!("Held for {} at {time}, then forwarded", span_words(span)),
        (DecisionLabel::Delayed, None) => format!("Held at {time}, then forwarded"),
        (DecisionLabel::Tarpitted, _) => format!("Held at {time}, then denied"),
        (DecisionLabel::Challenged, _) => format!("Denied at {time}, with a proof of work to solve"),
        _ => format!("Denied at {time}"),
    };
    let why = match deciding {
        Some((met, limit)) => of_limit(request, met, limit, viewer),
        None => without_limit(request),
    };
    let end = match (facts.frees_at, request.ban().is_some()) {
        (Some(end), false) if *decision != DecisionLabel::Delayed => {
            format!("; the next one may pass from {}", clock_time(end, request.facts.came))
        }
        _ => String::new(),
    };
    let not_held = match facts.cause {
        KeptCause::TooManyHeld => "; it was to be held, and as many requests are held as `server.max_held` allows",
        KeptCause::NotHeldAtTheEnd => "; it was to be held, and the gateway was shutting down",
        KeptCause::Rule | KeptCause::TooManyValues | KeptCause::DeniedDescriptor => "",
    };
    let unread = facts.unread.map(|reason| format!(" A part of it was not understood: {reason}."));
    format!("{what}: {why}{not_held}{end}.{}", unread.unwrap_or_default())
}

fn of_limit(request: &KeptRequest, met: &KeptLimit, limit: &LimitFacts, viewer: Viewer) -> String {
    let name = &limit.name;
    let Some(key) = &met.key else {
        let selectors = limit.selectors.join(" and ");
        return format!("the limit {name} counts by {selectors}, and the request lacks a part of it");
    };
    let key = match &*viewer.values(key).into_iter().collect::<Vec<_>>() {
        [] => "all requests together".to_owned(),
        [(selector, address)] if selector == "client_ip" => address.clone(),
        parts => parts.iter().map(|(selector, value)| format!("{selector} {value}")).collect::<Vec<_>>().join(" with "),
    };
    if let Some(ban) = request.ban() {
        let end = request.facts.frees_at.map(|end| format!(" until {}", clock_time(end, request.facts.came)));
        return format!("the limit {name} has banned {key}{} (ban {ban})", end.unwrap_or_default());
    }
    if let (Grounds::Count, Some(most)) = (met.grounds, limit.concurrent) {
        let under_way = if most.get() == 1 { "one was" } else { "so many were" };
        let most = counted(most.get(), "request");
        return format!("the limit {name} allows {most} at a time for {key}, and {under_way} under way");
    }
    let standings = limit.rates.iter().zip(&met.standings);
    let full: Vec<_> = standings.filter(|(_, standing)| is_full(standing)).map(|(rate, _)| rate).collect();
    let shown = if full.is_empty() { limit.rates.iter().collect() } else { full.clone() };
    let allowed = match limit.concurrent {
        Some(most) => format!("{} at a time", counted(most.get(), "request")),
        None => rates_words(&shown, &limit.counted),
    };
    let because = match met.grounds {
        Grounds::Count if full.is_empty() => "there was no room for it",
        Grounds::Count => "so many were counted",
        Grounds::StoreFull => {
            "the store has no room to count it: as many keys as `store.memory.max_keys` allows are being denied"
        }
        Grounds::Part => "the part of that which this gateway grants while Redis does not answer has no room for it",
    };
    format!("the limit {name} allows {allowed} for {key}, and {because}")
}

fn without_limit(request: &KeptRequest) -> String {
    let client = request.client;
    match request.facts.cause {
        KeptCause::TooManyValues => return "it sent a field that a limit counts too often".to_owned(),
        KeptCause::DeniedDescriptor => {
            let route = request.route().unwrap_or_default();
            return format!("the route {route} denies such descriptors by its configuration, whatever was counted");
        }
        KeptCause::Rule | KeptCause::TooManyHeld | KeptCause::NotHeldAtTheEnd => {}
    }
    match (request.list(), request.ban(), request.route()) {
        (Some(list), ..) if request.decision == DecisionLabel::Challenged => {
            format!("the list {list} lets {client} in only after a challenge")
        }
        (Some(list), ..) => format!("the list {list} denies {client}"),
        (None, Some(ban), _) => {
            let end = request.facts.frees_at.map(|end| format!(" until {}", clock_time(end, request.facts.came)));
            format!("{client} is banned{} (ban {ban})", end.unwrap_or_default())
        }
        (None, None, route) if request.decision == DecisionLabel::Listed => match (route, request.only()) {
            (Some(route), [list]) => {
                format!("the route {route} lets only members of the list {list} in, and {client} is not on it")
            }
            (Some(route), [lists @ .., last]) => {
                let lists = lists.join(", ");
                format!(
                    "the route {route} lets only members of the lists {lists} and {last} in, and {client} is on none"
                )
            }
            // The request may be read as one for several routes, and any of them may have lists.
            (_, []) | (None, _) => {
                format!("a route that it may be read for lets only members of its lists in, and {client} is not on one")
            }
        },
        _ => format!("a rule of the gateway denies {client}"),
    }
}

fn is_full(standing: &Standing) -> bool {
    standing.remaining == 0
}

/// `5 requests a minute and 20 an hour`, `10 failures in 3 minutes`
fn rates_words(rates: &[&Rate], [one, several]: &[String; 2]) -> String {
    let words = rates.iter().enumerate().map(|(position, rate)| {
        let span = match rate.per.as_secs() {
            1 => "a second".to_owned(),
            60 => "a minute".to_owned(),
            3600 => "an hour".to_owned(),
            86_400 => "a day".to_owned(),
            _ => format!("in {}", span_words(rate.per)),
        };
        let count = rate.count.get();
        match position {
            0 => format!("{count} {} {span}", if count == 1 { one } else { several }),
            _ => format!("{count} {span}"),
        }
    });
    words.collect::<Vec<_>>().join(" and ")
}

/// `20 seconds`, `3 minutes`: in the largest unit that needs no fraction.
fn span_words(span: Duration) -> String {
    let seconds = span.as_secs();
    let (count, unit) = match seconds {
        0 => return counted(span.as_millis(), "millisecond"),
        _ if span.subsec_nanos() > 0 => return format!("{:.1} seconds", span.as_secs_f64()),
        _ if seconds.is_multiple_of(86_400) => (seconds / 86_400, "day"),
        _ if seconds.is_multiple_of(3600) => (seconds / 3600, "hour"),
        _ if seconds.is_multiple_of(60) => (seconds / 60, "minute"),
        _ => (seconds, "second"),
    };
    counted(count, unit)
}

/// `14:02:48 UTC`, with the date if it differs from the date of `seen`. A moment in the future is rounded up.
fn clock_time(moment: Timestamp, seen: Timestamp) -> String {
    let whole = if moment > seen { moment + Duration::from_micros(999_999) } else { moment };
    let (text, seen) = (whole.to_string(), seen.to_string());
    match (text.get(..10), text.get(11..19)) {
        (Some(date), Some(time)) if seen.starts_with(date) => format!("{time} UTC"),
        (Some(date), Some(time)) => format!("{date} {time} UTC"),
        _ => text,
    }
}

#[cfg(test)]
mod tests;
