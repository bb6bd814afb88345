//! Text is read by those who see little, and the page is small.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::site::Site;

/// Each visible text whose contrast to what is behind it is below 4.5.
const FAINT: &str = r"
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
};
const over = (above, below) => above.slice(0, 3).map((part, i) => part * above[3] / 255 + below[i] * (1 - above[3] / 255));
const behind = node => {
    const colours = [];
    for (let one = node; one; one = one.parentElement) colours.unshift(rgba(getComputedStyle(one).backgroundColor));
    return colours.reduce((below, above) => [...over(above, below), 255], [255, 255, 255, 255]);
};
const luminance = ([r, g, b]) => [r, g, b].map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
const ratio = (one, other) => { const [a, b] = [luminance(one), luminance(other)].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };
return [...document.querySelectorAll('body *')]
    .filter(node => node.checkVisibility() && !node.disabled && !(node instanceof SVGElement))
    .filter(node => [...node.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim() !== ''))
    .map(node => { const below = behind(node); return [ratio(over(rgba(getComputedStyle(node).color), below), below), node.tagName, node.className, node.textContent.trim().slice(0, 40)]; })
    .filter(([ratio]) => ratio < 4.5);
";

#[track_caller]
fn is_readable(page: &Browser, what: &str) {
    for scheme in ["light", "dark"] {
        page.look(1280, scheme);
        assert_eq!(page.script(FAINT), json!([]), "{what}, {scheme}");
    }
}

#[test]
fn every_text_stands_out_from_what_is_behind_it() {
    let site = Site::start();
    let page = site.page();
    page.says("#verdict-sentence", "All is well");
    is_readable(&page, "quiet");
    for number in 0..60 {
        site.log_in(&format!("127.0.1.{}", number % 7 + 1), "alice");
    }
    page.says("#verdict-sentence", "Under attack");
    page.says("#requests-list", "127.0.1.");
    is_readable(&page, "under attack");
}

#[test]
fn all_that_the_page_loads_is_at_most_100_kilobytes() {
    let site = Site::start();
    let page = site.page();
    let sent = page.script(
        "return performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))
            .filter(entry => !entry.name.includes('/api/') && !entry.name.endsWith('/session'))
            .map(entry => [entry.name, entry.decodedBodySize])",
    );
    let files: Vec<(String, u64)> = serde_json::from_value(sent).expect("sizes");
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    assert!(files.len() > 20 && files.iter().all(|(_, bytes)| *bytes > 0), "{files:?}");
    assert!(bytes <= 100_000, "{bytes} bytes in {files:?}");
    assert_eq!(page.script("return document.querySelectorAll('script:not([src]), style').length"), Value::from(0));
}
