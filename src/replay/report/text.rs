//! The report in words.

use std::fmt;
use std::fmt::Formatter;

use crate::record::DecisionLabel;
use crate::replay::formats::begins_with_addresses;
use crate::replay::input::decompress::SEVERAL_ADDRESSES;
use crate::replay::input::log_file::UnreadableInFile;
use crate::replay::report::counts::{Decisions, TallyReport};
use crate::replay::report::{AgainstReport, DifferenceReport, LimitReport, ReplayReport};

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from.as_deref().map_or("-", moment), self.to.as_deref().map_or("-", moment));
        let files = if self.files == 1 { "one file".to_owned() } else { format!("{} files", self.files) };
        let formats = self.formats.join(", ");
        writeln!(f, "{} in {files} ({formats}), {from} to {to} UTC", requests(self.requests))?;
        writeln!(f, "{}", decisions(&self.decisions))?;
        if self.denied.count > 0 {
            writeln!(f, "denied in any way: {}", clients_text(&self.denied))?;
        }
        writeln!(f, "\nLimits")?;
        if self.limits.is_empty() {
            writeln!(f, "  none was replayed")?;
        }
        for limit in &self.limits {
            write_limit(f, limit)?;
        }
        for list in &self.lists {
            writeln!(f, "  list {}: {} listed; {}", list.name, number(list.tally.count), clients_text(&list.tally))?;
        }
        writeln!(f, "\nRoutes")?;
        for route in self.routes.iter().filter(|route| route.requests > 0) {
            writeln!(f, "  {}: {}: {}", route.name, requests(route.requests), decisions(&route.decisions))?;
        }
        if let Some(against) = &self.against {
            write_against(f, against)?;
        }
        self.write_remarks(f)
    }
}

impl ReplayReport {
    /// Warnings about the figures.
    fn write_remarks(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut remarks: Vec<String> = self.left_out.iter().map(ToString::to_string).collect();
        if self.refused > 0 {
            remarks.push(format!("{} malformed, and refused before any rule", requests(self.refused)));
        }
        if self.lines.without_request > 0 {
            remarks.push(format!("{} without a request for the rules", counted(self.lines.without_request, "line")));
        }
        if self.lines.descriptor_calls > 0 {
            remarks.push(format!(
                "{} about descriptors left out: the log does not hold the descriptors",
                counted(self.lines.descriptor_calls, "call")
            ));
        }
        if self.late > 0 {
            remarks.push(format!(
                "{} so late in the log that others were decided before which had come later",
                requests(self.late)
            ));
        }
        if self.from_trusted_proxies > 0 {
            remarks.push(format!(
                "{} from addresses in trusted_proxies: the log names the proxy there, not the client",
                requests(self.from_trusted_proxies)
            ));
        }
        if self.unknown_outcomes > 0 {
            let therefore = match self.unknown_outcomes {
                1 => "it counts as not answered, and keeps its slot",
                _ => "they count as not answered, and keep their slot",
            };
            let unknown = requests(self.unknown_outcomes);
            remarks.push(format!("{unknown} whose outcome the log does not tell: {therefore}"));
        }
        remarks.extend(self.lines.unreadable_files.iter().map(|file| format!("{file}: no line can be read")));
        if self.lines.unreadable > 0 {
            let (unreadable, all) = (number(self.lines.unreadable), counted(self.lines.lines, "line"));
            remarks.push(match self.lines.unreadable {
                1 => format!("{unreadable} of {all} cannot be read:"),
                _ => format!("{unreadable} of {all} cannot be read, the first ones are:"),
            });
            let lines = self.lines.first_unreadable.iter();
            remarks.extend(lines.clone().map(|line| format!("  {}:{}: {}", line.file, line.line, line.text)));
            if lines.clone().any(|line| begins_with_addresses(&line.text)) {
                remarks.push(SEVERAL_ADDRESSES.to_owned());
            }
        }
        // If there is one file, the lines above say the same.
        for UnreadableInFile { lines, unreadable, first } in self.lines.by_file.iter().filter(|_| self.files > 1) {
            let (unreadable, all) = (number(*unreadable), counted(*lines, "line"));
            remarks.push(format!(
                "{}: {unreadable} of {all} cannot be read, first line {}: {}",
                first.file, first.line, first.text
            ));
        }
        if remarks.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nRemarks")?;
        remarks.iter().try_for_each(|remark| writeln!(f, "  {remark}"))
    }
}

fn write_limit(f: &mut Formatter<'_>, limit: &LimitReport) -> fmt::Result {
    let shadow = if limit.shadow { " (shadow)" } else { "" };
    if limit.tally.count == 0 {
        return writeln!(f, "  {}{shadow}: lets all of {} pass", limit.name, requests(limit.met));
    }
    let mut did: Vec<_> =
        limit.decisions.all().map(|(label, count)| format!("{} {}", number(count), label.as_str())).collect();
    if limit.shadow_denied > 0 {
        did.push(format!("{} would be denied", number(limit.shadow_denied)));
    }
    writeln!(f, "  {}{shadow}: {} of {}", limit.name, did.join(", "), requests(limit.met))?;
    writeln!(f, "    {}", clients_text(&limit.tally))
}

fn write_against(f: &mut Formatter<'_>, against: &AgainstReport) -> fmt::Result {
    writeln!(f, "\nAgainst the old configuration")?;
    writeln!(f, "  it had: {}", decisions(&against.decisions))?;
    if against.differences.is_empty() {
        writeln!(f, "  no request is treated differently")?;
    }
    for DifferenceReport { limit, before, now, tally } in &against.differences {
        let were = if tally.count == 1 { "was" } else { "were" };
        writeln!(f, "  {limit}: {} {now} that {were} {before}", number(tally.count))?;
        writeln!(f, "    {}", clients_text(tally))?;
    }
    for left_out in &against.left_out {
        writeln!(f, "  {left_out}")?;
    }
    Ok(())
}

/// `998,114 allowed, 86 delayed`
fn decisions(decisions: &Decisions) -> String {
    let words = decisions.all().map(|(label, count)| {
        let label = if label == DecisionLabel::Error { "refused" } else { label.as_str() };
        format!("{} {label}", number(count))
    });
    let words: Vec<_> = words.collect();
    if words.is_empty() { "no request".to_owned() } else { words.join(", ") }
}

/// Which clients, since when, and the worst minute.
fn clients_text(tally: &TallyReport) -> String {
    let top: Vec<_> = tally.top.iter().map(|one| format!("{} ({})", one.client, number(one.count))).collect();
    let at_least = if tally.clients_are_exact { "" } else { "at least " };
    let mut text = format!("{at_least}{}: {}", counted(tally.clients as u64, "client"), top.join(", "));
    if tally.clients > tally.top.len() {
        text.push_str(", ...");
    }
    if let Some(first) = &tally.first {
        text = format!("{text}; first at {}", moment(first));
    }
    if let Some(worst) = &tally.worst_minute {
        text = format!("{text}; worst minute {} ({})", to_the_minute(&worst.from), number(worst.count));
    }
    text
}

/// `2026-11-21T07:58:52.123Z` as `2026-11-21 07:58:52` would be read, without its fraction.
fn moment(text: &str) -> &str {
    text.split('.').next().unwrap_or(text)
}

fn to_the_minute(text: &str) -> &str {
    text.get(..16).unwrap_or(text)
}

fn requests(count: u64) -> String {
    counted(count, "request")
}

/// `1 line`, `1,234 lines`
pub(in crate::replay) fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", number(count), if count == 1 { "" } else { "s" })
}

/// `1,234,567`
pub(in crate::replay) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        for (value, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(value), expected);
        }
    }
}
