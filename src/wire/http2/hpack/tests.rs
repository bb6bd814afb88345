use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use crate::wire::http2::hpack::*;

fn decode(decoder: &mut HpackDecoder, block: &[u8]) -> Result<Vec<Entry>, InvalidHpack> {
    let mut fields = Vec::new();
    let mut rest = block;
    decoder.decode(&mut rest, |field| fields.push(Entry::of(field)))?;
    decoder.end()?;
    if rest.is_empty() { Ok(fields) } else { Err(InvalidHpack) }
}

/// Each field as `name: value`; `?` for an invalid value.
fn lines(fields: &[Entry]) -> Vec<String> {
    let line = |Field { name, value, .. }: Field<'_>| {
        let name = match name {
            Name::Field(name) => name.as_str().to_owned(),
            other => format!("{other:?}"),
        };
        format!("{name}: {}", value.map_or("?".to_owned(), |value| value.escape_ascii().to_string()))
    };
    fields.iter().map(|entry| line(entry.field())).collect()
}

#[track_caller]
fn check(decoder: &mut HpackDecoder, block: &[u8], expected: &[&str]) {
    assert_eq!(
        decode(decoder, block).map(|fields| lines(&fields)),
        Ok(expected.iter().map(ToString::to_string).collect())
    );
}

#[test]
fn the_requests_of_the_standard_are_read_one_after_the_other() {
    // RFC 7541, C.3 and C.4: the same three requests, plain and in Huffman code.
    let plain: [&[u8]; 3] = [
        b"\x82\x86\x84\x41\x0fwww.example.com",
        b"\x82\x86\x84\xbe\x58\x08no-cache",
        b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value",
    ];
    let coded: [&[u8]; 3] = [
        &[0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff],
        &[0x82, 0x86, 0x84, 0xbe, 0x58, 0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf],
        &[
            0x82, 0x87, 0x85, 0xbf, 0x40, 0x88, 0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f, 0x89, 0x25, 0xa8, 0x49,
            0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf,
        ],
    ];
    for blocks in [plain, coded] {
        let mut decoder = HpackDecoder::new(0);
        let first = ["Method: GET", "Scheme: http", "Path: /", "Authority: www.example.com"];
        check(&mut decoder, blocks[0], &first);
        check(&mut decoder, blocks[1], &[&first[..], &["cache-control: no-cache"]].concat());
        let third = [
            "Method: GET",
            "Scheme: https",
            "Path: /index.html",
            "Authority: www.example.com",
            "custom-key: custom-value",
        ];
        check(&mut decoder, blocks[2], &third);
        // The dynamic table, newest field first.
        check(&mut decoder, &[0xbe], &["custom-key: custom-value"]);
        check(&mut decoder, &[0xc0], &["Authority: www.example.com"]);
        assert_eq!(decode(&mut decoder, &[0xc1]), Err(InvalidHpack));
    }
}

#[test]
fn a_table_holds_no_more_than_its_size() {
    let mut decoder = HpackDecoder::new(0);
    check(&mut decoder, b"\x40\x01a\x01b\x40\x01c\x01d", &["a: b", "c: d"]);
    // The table has room for one of the two fields.
    check(&mut decoder, b"\x3f\x03\xbe", &["c: d"]);
    assert_eq!(decode(&mut decoder, &[0xbf]), Err(InvalidHpack));
    // A field that is larger than the table empties it.
    check(&mut decoder, b"\x40\x01e\x02ff", &["e: ff"]);
    assert_eq!(decode(&mut decoder, &[0xbe]), Err(InvalidHpack));
    // The table stays empty when it is enlarged again.
    check(&mut decoder, b"\x3f\xe1\x1f\x40\x01a\x01b\xbe", &["a: b", "a: b"]);
}

#[test]
fn an_invalid_field_is_reported_each_time_it_is_indexed() {
    let mut decoder = HpackDecoder::new(0);
    check(&mut decoder, b"\x40\x01A\x01b", &["Invalid(1): b"]);
    check(&mut decoder, b"\xbe\x7e\x01c", &["Invalid(1): b", "Invalid(1): c"]);
    check(&mut decoder, b"\x40\x01x\x03y\nz\xbe", &["x: ?", "x: ?"]);
    check(&mut decoder, b"\x00\x03x\"y\x01z", &["Invalid(3): z"]);
    check(&mut decoder, b"\x00\x01x\x02 y\x00\x01x\x02y\t", &["x: ?", "x: ?"]);
    check(&mut decoder, b"\x88\x00\x02:x\x01y\x00\x00\x01y", &["Status: 200", "Invalid(2): y", "Invalid(0): y"]);
}

#[test]
fn a_field_that_is_too_long_is_skipped_and_the_table_stays_in_step() {
    let long = [b"\x40\x01a\x01b\x40\x01x\x7f\xa1\x9b\x01", &vec![b'y'; 20_000][..], b"\x40\x01c\x01d\xbe"].concat();
    let mut decoder = HpackDecoder::new(0);
    let (mut fields, mut pending) = (Vec::new(), Vec::new());
    for part in long.chunks(1000) {
        pending.extend_from_slice(part);
        let mut rest = &pending[..];
        decoder.decode(&mut rest, |field| fields.push(Entry::of(field))).unwrap();
        pending = rest.to_vec();
        assert!(pending.len() < 1000, "it is kept");
    }
    assert_eq!((decoder.end(), pending.len(), decoder.take_skipped()), (Ok(()), 0, 20_001));
    assert_eq!(lines(&fields), ["a: b", "c: d", "c: d"]);
    // What the table held before has made room for the long field.
    assert_eq!(decode(&mut decoder, b"\xbf"), Err(InvalidHpack));
}

#[test]
fn a_long_field_that_is_cut_short_is_reported() {
    let mut decoder = HpackDecoder::new(0);
    let long = b"\x00\x01x\x7f\xa1\x9b\x01yyy";
    assert_eq!(decode(&mut decoder, long), Err(InvalidHpack));
}

#[test]
fn an_invalid_block_is_reported() {
    let wrong: [&[u8]; 12] = [
        &[0x80],
        &[0xff],
        &[0xff, 0xff, 0x7f],
        &[0xff, 0x80, 0x80, 0x80, 0x80, 0x00],
        &[0x40],
        &[0x00, 0x01, b'a'],
        &[0x00, 0x01, b'a', 0x02, b'b'],
        &[0x0f],
        &[0x3f, 0xe2, 0x1f],
        &[0x82, 0x20],
        &[0x00, 0x82, 0xff, 0xff, 0x81, 0xff],
        &[0x00, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    ];
    for block in wrong {
        assert_eq!(decode(&mut HpackDecoder::new(0), block), Err(InvalidHpack), "{block:x?}");
    }
}

/// The blocks that an h2 client writes for the heads of these requests.
async fn written_by_h2(requests: Vec<http::Request<()>>) -> Vec<Vec<u8>> {
    use tokio::io::AsyncReadExt;
    let count = requests.len();
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (mut sender, connection) = h2::client::handshake(theirs).await.unwrap();
    let driver = tokio::spawn(connection);
    let (mut reading, _writing) = tokio::io::split(ours);
    let mut answers = Vec::new();
    for request in requests {
        answers.push(sender.send_request(request, true).unwrap());
    }
    let mut preface = [0; 24];
    reading.read_exact(&mut preface).await.unwrap();
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let mut is_whole = true;
    while blocks.len() < count || !is_whole {
        let mut header = [0; 9];
        reading.read_exact(&mut header).await.unwrap();
        let mut payload = vec![0; usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2])];
        reading.read_exact(&mut payload).await.unwrap();
        match header[3] {
            1 => blocks.push(payload),
            9 => blocks.last_mut().unwrap().extend(payload),
            _ => continue,
        }
        is_whole = header[4] & 4 != 0;
    }
    driver.abort();
    blocks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_h2_has_packed_is_unpacked(
        requests in prop::collection::vec(
            ("/[a-z0-9/]{0,20}", prop::collection::vec(("[a-z][a-z0-9-]{0,12}|cookie|accept|user-agent", "[!-~]{0,60}"), 0..8)),
            1..12,
        )
    ) {
        let requests: Vec<_> = requests.into_iter().map(|(path, fields)| {
            let mut request = http::Request::get(format!("http://a.example{path}")).body(()).unwrap();
            for (name, value) in fields {
                let name = HeaderName::try_from(name).unwrap();
                if !["te", "connection", "upgrade"].contains(&name.as_str()) {
                    request.headers_mut().append(name, HeaderValue::try_from(value).unwrap());
                }
            }
            request
        }).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let copies = requests.clone();
        let blocks = runtime.block_on(written_by_h2(copies));
        let mut decoder = HpackDecoder::new(0);
        for (block, request) in blocks.iter().zip(&requests) {
            let mut fields = http::HeaderMap::new();
            let mut path = None;
            decoder.decode(&mut &block[..], |field| match field.name {
                Name::Field(name) => {
                    let name = HeaderName::try_from(name.as_str()).unwrap();
                    fields.append(name, HeaderValue::from_bytes(field.value.unwrap()).unwrap());
                }
                Name::Path => path = field.value.map(<[u8]>::to_vec),
                _ => {}
            }).unwrap();
            decoder.end()?;
            prop_assert_eq!(&fields, request.headers());
            prop_assert_eq!(path.unwrap(), request.uri().path().as_bytes());
        }
    }

    #[test]
    fn wherever_a_block_is_cut_its_fields_are_the_same(
        block in prop::collection::vec(any::<u8>(), 0..80),
        cut in 0..80_usize,
    ) {
        let whole = decode(&mut HpackDecoder::new(0), &block);
        let mut decoder = HpackDecoder::new(0);
        let mut fields = Vec::new();
        let (first, _) = block.split_at(cut.min(block.len()));
        let mut rest = first;
        let begun = decoder.decode(&mut rest, |field| fields.push(Entry::of(field)));
        let read = first.len() - rest.len();
        let ended = begun.and_then(|()| {
            let mut rest = &block[read..];
            decoder.decode(&mut rest, |field| fields.push(Entry::of(field)))?;
            decoder.end()?;
            if rest.is_empty() { Ok(fields) } else { Err(InvalidHpack) }
        });
        prop_assert_eq!(ended, whole);
    }

    #[test]
    fn no_block_makes_it_panic_or_take_more_than_its_table(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20)) {
        let mut decoder = HpackDecoder::new(0);
        for block in blocks {
            if decode(&mut decoder, &block).is_err() {
                break;
            }
        }
    }
}
