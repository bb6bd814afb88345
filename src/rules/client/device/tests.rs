//! Genuine cookies, and all kinds of forged ones.

use http::HeaderValue;
use proptest::prelude::*;

use super::*;
use crate::words::signing::KeySeed;

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

const ALICE: DeviceOwner<'_> = DeviceOwner { route: "login", name: "alice" };

const BOB: DeviceOwner<'_> = DeviceOwner { route: "login", name: "bob" };

const DEVICE: DeviceId = DeviceId([7; 16]);

fn key_ring(secret: u8) -> KeyRing {
    KeyRing::new(KeySeed { made: NOW, secret: [secret; 32] })
}

fn cookies(lines: &[String]) -> Fields {
    lines.iter().map(|line| (KnownName::COOKIE, line)).collect()
}

fn pair(issued: &IssuedCookie) -> String {
    format!("{}={}", issued.name, issued.value)
}

fn found(ring: &KeyRing, now: Timestamp, subject: DeviceOwner<'_>, lines: &[String]) -> Option<DeviceId> {
    DeviceCookies::read(&cookies(lines)).find(ring, now, subject)
}

#[test]
fn a_device_is_known_only_for_the_user_and_route_of_its_cookie() {
    let (ring, device) = (key_ring(1), DEVICE);
    let cookie = pair(&issue(&ring, NOW, ALICE, device, MONTH));
    let of = |subject| found(&ring, NOW, subject, std::slice::from_ref(&cookie));
    assert_eq!(of(ALICE), Some(device));
    assert_eq!(of(BOB), None);
    assert_eq!(of(DeviceOwner { route: "admin", name: "alice" }), None);
    assert_eq!(found(&key_ring(2), NOW, ALICE, &[cookie]), None);
}

#[test]
fn a_cookie_under_another_name_is_invalid() {
    let ring = key_ring(1);
    let (alice, bob) = [ALICE, BOB].map(|subject| issue(&ring, NOW, subject, DEVICE, MONTH)).into();
    let swapped = format!("{}={}", bob.name, alice.value);
    assert_eq!(found(&ring, NOW, ALICE, std::slice::from_ref(&swapped)), None);
    assert_eq!(found(&ring, NOW, BOB, &[swapped]), None);
}

#[test]
fn it_expires() {
    let (ring, device) = (key_ring(1), DEVICE);
    let cookie = pair(&issue(&ring, NOW, ALICE, device, MONTH));
    let at = |span| found(&ring, NOW + span, ALICE, std::slice::from_ref(&cookie));
    assert_eq!(at(MONTH * 9 / 10), Some(device));
    assert_eq!(at(MONTH), None);
    // An older key is still believed.
    let long = pair(&issue(&ring, NOW, ALICE, device, MONTH * 12));
    assert!(ring.needs_rotation(NOW + MONTH * 3));
    let ring = ring.rotated(KeySeed { made: NOW + MONTH * 3, secret: [2; 32] });
    let new = issue(&ring, NOW + MONTH * 3, ALICE, device, MONTH);
    assert!(!long.starts_with(&new.name), "there is a new key");
    assert_eq!(found(&ring, NOW + MONTH * 4, ALICE, &[long]), Some(device));
}

#[test]
fn two_people_on_one_browser_keep_a_cookie_each() {
    let ring = key_ring(1);
    let devices = [DEVICE, DeviceId::new([8; 16])];
    let [alice, bob] =
        [(ALICE, devices[0]), (BOB, devices[1])].map(|(subject, device)| issue(&ring, NOW, subject, device, MONTH));
    assert_ne!(alice.name, bob.name);
    let both = format!("session=1; {}; {} ; theme=dark", pair(&alice), pair(&bob));
    assert_eq!(found(&ring, NOW, ALICE, std::slice::from_ref(&both)), Some(devices[0]));
    assert_eq!(found(&ring, NOW, BOB, &[both]), Some(devices[1]));
    let lines = ["a=b".to_owned(), pair(&bob), pair(&alice)];
    assert_eq!(found(&ring, NOW, ALICE, &lines), Some(devices[0]));
}

#[test]
fn a_cookie_is_short_and_says_nothing() {
    let issued = issue(&key_ring(1), NOW, ALICE, DEVICE, MONTH);
    assert_eq!(issued.name.len(), COOKIE_PREFIX.len() + 16);
    assert_eq!(issued.value.len(), DIGITS);
    assert!(issued.value.bytes().all(|byte| base64::URL.contains(&byte)));
    assert_eq!(format!("{ALICE:?}"), "DeviceOwner(***)");
}

#[test]
fn any_change_makes_a_cookie_invalid() {
    let (ring, device) = (key_ring(1), DEVICE);
    let IssuedCookie { name, value } = issue(&ring, NOW, ALICE, device, MONTH);
    let of = |value: String| found(&ring, NOW, ALICE, &[format!("{name}={value}")]);
    assert_eq!(of(value.clone()), Some(device));
    for place in 0..value.len() {
        for other in ["A", "_", "=", " ", "\"", "%41"] {
            if &value[place..=place] != other {
                assert_eq!(of(format!("{}{other}{}", &value[..place], &value[place + 1..])), None, "{place} {other}");
            }
        }
        assert_eq!(of(value[..place].to_owned()), None);
    }
    assert_eq!(of(format!("{value}A")), None);
    assert_eq!(of(format!("{value}={}", "A".repeat(60_000))), None);
    assert_eq!(of(format!("\"{value}\"")), None);
}

#[test]
fn a_few_forged_ones_of_its_name_do_not_hide_a_genuine_one_and_many_cost_little() {
    let (ring, device) = (key_ring(1), DEVICE);
    let genuine = issue(&ring, NOW, ALICE, device, MONTH);
    let forged = issue(&ring, NOW, BOB, device, MONTH).value;
    let line = |count: usize| {
        let mut pairs = vec![format!("{}={forged}", genuine.name); count];
        pairs.push(pair(&genuine));
        [pairs.join("; ")]
    };
    assert_eq!(found(&ring, NOW, ALICE, &line(MOST_OF_ONE_NAME - 1)), Some(device));
    assert_eq!(found(&ring, NOW, ALICE, &line(500)), None);
}

proptest! {
    #[test]
    fn what_is_written_is_read(content in any::<[u8; LENGTH]>()) {
        prop_assert_eq!(decode(base64::encode_url(&content).as_bytes()), Some(content));
    }

    #[test]
    fn any_line_is_read(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let line = [COOKIE_PREFIX.as_bytes(), &line].concat();
        if let Ok(value) = HeaderValue::from_bytes(&line) {
            let fields = Fields::from_iter([(KnownName::COOKIE, value)]);
            prop_assert!(DeviceCookies::read(&fields).find(&key_ring(1), NOW, ALICE).is_none());
        }
    }
}
