use proptest::collection::vec;
use proptest::prelude::*;

use crate::listen::proxy_protocol::*;

type Taken = Result<(usize, Option<ProxyHeader>), InvalidProxyHeader>;

/// The outcome of bytes that arrive in these parts, and how many of them were taken.
fn taken<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> Taken {
    let mut reader = ProxyHeaderReader::default();
    let mut sum = 0;
    for part in parts {
        let (length, header) = reader.take(part)?;
        sum += length;
        if header.is_some() {
            return Ok((sum, header));
        }
        assert_eq!(length, part.len(), "nothing is left behind while the header goes on");
    }
    Ok((sum, None))
}

/// The outcome is the same for every split, and the bytes behind the header are not taken.
#[track_caller]
fn check(header: &[u8], expected: Result<ProxyHeader, InvalidProxyHeader>) {
    let sent = [header, b"\r\nPROXY GET / HTTP/1.1\r\n"].concat();
    let expected = expected.map(|says| (header.len(), Some(says)));
    for cut in 0..sent.len() {
        let (first, second) = sent.split_at(cut);
        assert_eq!(taken([first, second]), expected, "{} cut at {cut}", header.escape_ascii());
    }
    assert_eq!(taken(sent.chunks(1)), expected);
}

fn from(source: &str, destination: &str) -> ProxyHeader {
    ProxyHeader::Forwarded(ConnectionAddresses {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    })
}

fn block(command: u8, family: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[command, family], &length, content].concat()
}

const V4: &[u8] = &[203, 0, 113, 9, 192, 0, 2, 1, 0x12, 0x67, 0, 80];

#[test]
fn version_1_names_both_ends() {
    check(b"PROXY TCP4 203.0.113.9 192.0.2.1 4711 80\r\n", Ok(from("203.0.113.9:4711", "192.0.2.1:80")));
    check(b"PROXY TCP6 2001:db8::9 2001:DB8::1 4711 80\r\n", Ok(from("[2001:db8::9]:4711", "[2001:db8::1]:80")));
    check(b"PROXY TCP4 203.0.113.9 192.0.2.1 0 65535\r\n", Ok(from("203.0.113.9:0", "192.0.2.1:65535")));
}

#[test]
fn version_1_may_be_107_bytes_and_no_more() {
    let longest = b"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
    assert_eq!(longest.len(), LINE);
    check(longest, Ok(ProxyHeader::Local));
    check(&[&longest[..LINE - 2], b" \r\n"].concat(), Err(InvalidProxyHeader::TooLong));
}

#[test]
fn a_proxy_may_connect_for_itself_or_not_know_the_client() {
    check(b"PROXY UNKNOWN\r\n", Ok(ProxyHeader::Local));
    check(b"PROXY UNKNOWN whatever \xff follows\r\n", Ok(ProxyHeader::Local));
    check(&block(0x20, 0x11, V4), Ok(ProxyHeader::Local));
    check(&block(0x20, 0x00, b""), Ok(ProxyHeader::Local));
    // The family of a local connection is ignored.
    check(&block(0x20, 0xff, b"x"), Ok(ProxyHeader::Local));
    check(&block(0x21, 0x00, b""), Ok(ProxyHeader::Local));
    check(&block(0x21, 0x31, &[b'/'; 216]), Ok(ProxyHeader::Local));
}

#[test]
fn version_2_names_both_ends() {
    check(&block(0x21, 0x11, V4), Ok(from("203.0.113.9:4711", "192.0.2.1:80")));
    let v6: Vec<u8> = [[0x20; 16], [0x30; 16]].concat().into_iter().chain([0, 1, 0, 2]).collect();
    let address = |byte: &str| [byte; 8].join(":");
    let (source, destination) = (format!("[{}]:1", address("2020")), format!("[{}]:2", address("3030")));
    check(&block(0x21, 0x21, &v6), Ok(from(&source, &destination)));
}

#[test]
fn what_follows_the_addresses_of_version_2_is_part_of_the_header_and_all_there() {
    let with = |values: &[u8]| block(0x21, 0x11, &[V4, values].concat());
    check(&with(b"\x04\x00\x02ab"), Ok(from("203.0.113.9:4711", "192.0.2.1:80")));
    check(&with(b"\x04\x00\x02ab\x01\x00\x00"), Ok(from("203.0.113.9:4711", "192.0.2.1:80")));
    for cut in [&b"\x04\xff\xff"[..], b"\x04\x00\x03ab", b"\x04", b"\x04\x00", b"\x04\x00\x02ab\x01", b"\0\0\0\0"] {
        check(&with(cut), Err(InvalidProxyHeader::Values));
    }
    // Behind addresses of an unknown family, the values cannot be found.
    check(&block(0x21, 0x00, b"\x04\xff\xff"), Ok(ProxyHeader::Local));
    check(&block(0x20, 0x11, &[V4, b"\x04\xff\xff"].concat()), Ok(ProxyHeader::Local));
    let most = [V4, &[0; BLOCK - FIXED - 12]].concat();
    check(&block(0x21, 0x11, &most), Ok(from("203.0.113.9:4711", "192.0.2.1:80")));
    check(&block(0x21, 0x11, &[&most, &[0][..]].concat()), Err(InvalidProxyHeader::TooLong));
}

#[test]
fn a_checksum_covers_the_whole_header() {
    // The checksums were computed with another program, between other values and alone.
    let sums = [(&b"\x04\x00\x02ab"[..], &b"\x04\x00\x00"[..], SUM_BETWEEN), (b"", b"", SUM_ALONE)];
    for (before, behind, sum) in sums {
        let with = |sum: u32| block(0x21, 0x11, &[V4, before, b"\x03\x00\x04", &sum.to_be_bytes(), behind].concat());
        check(&with(sum), Ok(from("203.0.113.9:4711", "192.0.2.1:80")));
        check(&with(sum ^ 1), Err(InvalidProxyHeader::Checksum));
        let mut other = with(sum);
        other[FIXED] ^= 1;
        check(&other, Err(InvalidProxyHeader::Checksum));
    }
    let with = |values: &[u8]| block(0x21, 0x11, &[V4, values].concat());
    check(&with(b"\x03\x00\x00"), Err(InvalidProxyHeader::Checksum));
    check(&with(b"\x03\x00\x05abcde"), Err(InvalidProxyHeader::Checksum));
    let twice = [b"\x03\x00\x04", &SUM_ALONE.to_be_bytes()[..]].concat().repeat(2);
    check(&with(&twice), Err(InvalidProxyHeader::Checksum));
}

const SUM_BETWEEN: u32 = 0xb4f7_8e3e;

const SUM_ALONE: u32 = 0x061e_dd72;

#[test]
fn a_doubtful_header_is_invalid() {
    for none in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"\r\n",
        b" PROXY TCP4 203.0.113.9 192.0.2.1 4711 80\r\n",
        b"proxy TCP4 203.0.113.9 192.0.2.1 4711 80\r\n",
        b"PROXY\tTCP4 203.0.113.9 192.0.2.1 4711 80\r\n",
        b"PROXY\r\n",
        b"\r\n\r\n\0\r\nQUIT\r",
        b"\r\n\r\n\x01\r\nQUIT\n\x21\x11\0\x0c",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        check(none, Err(InvalidProxyHeader::Missing));
    }
    check(b"PROXY TCP4 203.0.113.9 192.0.2.1 4711 80\n", Err(InvalidProxyHeader::LineEnd));
    check(b"PROXY TCP4 203.0.113.9 192.0.2.1 4711 80\r\r\n", Err(InvalidProxyHeader::LineEnd));
    check(b"PROXY TCP4 203.0.113.9 192.0.2.1 4711 80\rGET", Err(InvalidProxyHeader::LineEnd));
    check(b"PROXY UNKNOWN a\nb\r\n", Err(InvalidProxyHeader::LineEnd));
    check(b"PROXY UNKNOWN\ra\r\n", Err(InvalidProxyHeader::LineEnd));
    for line in [
        "PROXY TCP4 203.0.113.9 192.0.2.1 +4711 80\r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 04711 80\r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 65536 80\r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 -1 80\r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 4711 http\r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 4711\r\n",
        "PROXY TCP4 203.0.113.9\r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 4711 80 \r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 4711 80 x\r\n",
        "PROXY TCP4  203.0.113.9 192.0.2.1 4711 80\r\n",
        "PROXY  TCP4 203.0.113.9 192.0.2.1 4711 80\r\n",
        "PROXY TCP4 2001:db8::9 192.0.2.1 4711 80\r\n",
        "PROXY TCP4 203.0.113.009 192.0.2.1 4711 80\r\n",
        "PROXY TCP4 203.0.113.256 192.0.2.1 4711 80\r\n",
        "PROXY TCP4 3405803785 192.0.2.1 4711 80\r\n",
        "PROXY TCP6 203.0.113.9 192.0.2.1 4711 80\r\n",
        "PROXY TCP6 [2001:db8::9] [2001:db8::1] 4711 80\r\n",
        "PROXY TCP6 2001:db8::9::1 2001:db8::1 4711 80\r\n",
        "PROXY TCP6 fe80::9%1 fe80::1 4711 80\r\n",
        "PROXY tcp4 203.0.113.9 192.0.2.1 4711 80\r\n",
        "PROXY TCP5 203.0.113.9 192.0.2.1 4711 80\r\n",
        "PROXY UDP4 203.0.113.9 192.0.2.1 4711 80\r\n",
        "PROXY unknown\r\n",
        "PROXY UNKNOWNS\r\n",
        "PROXY \r\n",
    ] {
        check(line.as_bytes(), Err(InvalidProxyHeader::Addresses));
    }
    for version in [0x01, 0x11, 0x31, 0xf1] {
        check(&block(version, 0x11, V4), Err(InvalidProxyHeader::Version));
    }
    for command in [0x22, 0x2f] {
        check(&block(command, 0x11, V4), Err(InvalidProxyHeader::Command));
    }
    for family in [0x01, 0x10, 0x12, 0x20, 0x22, 0x32, 0x41, 0xff] {
        check(&block(0x21, family, V4), Err(InvalidProxyHeader::Family));
    }
    check(&block(0x21, 0x11, b""), Err(InvalidProxyHeader::Addresses));
    check(&block(0x21, 0x11, &V4[1..]), Err(InvalidProxyHeader::Addresses));
    check(&block(0x21, 0x21, V4), Err(InvalidProxyHeader::Addresses));
    check(&block(0x21, 0x31, V4), Err(InvalidProxyHeader::Addresses));
}

/// Bytes that are sometimes a header, or nearly one.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just(b"PROXY ".to_vec()),
        Just(b"TCP4 ".to_vec()),
        Just(b"TCP6 ".to_vec()),
        Just(b"UNKNOWN".to_vec()),
        Just(b"203.0.113.9 ".to_vec()),
        Just(b"2001:db8::9 ".to_vec()),
        Just(b"80".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(SIGNATURE.to_vec()),
        vec(any::<u8>(), 0..4),
    ];
    let words = vec(word, 0..12).prop_map(|words| words.concat());
    let binary = (0x1f..0x23_u8, 0..0x33_u8, 0..64_u16, vec(any::<u8>(), 0..80)).prop_map(
        |(command, family, length, content)| [SIGNATURE, &[command, family], &length.to_be_bytes(), &content].concat(),
    );
    prop_oneof![words, binary, vec(any::<u8>(), 0..200)]
}

proptest! {
    #[test]
    fn any_bytes_cut_anywhere_give_one_outcome_and_nothing_behind_the_header_is_taken(
        bytes in likely(),
        cuts in vec(0..200_usize, 0..5),
        behind in vec(any::<u8>(), 0..20),
    ) {
        let whole = taken([&bytes[..]]);
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        prop_assert_eq!(taken(cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]])), whole);
        if let Ok((length, Some(header))) = whole {
            let declared = match &bytes[..] {
                [b'P', ..] => bytes.iter().position(|byte| *byte == b'\n').map(|end| end + 1),
                _ => Some(FIXED + usize::from(u16::from_be_bytes([bytes[14], bytes[15]]))),
            };
            prop_assert_eq!(Some(length), declared);
            let followed = [&bytes[..length], &behind].concat();
            prop_assert_eq!(taken([&followed[..]]), Ok((length, Some(header))));
        }
    }
}
