//! The `client_ip` section.

use ipnet::IpNet;

use super::compiler::Compiler;
use crate::client::ForwardingHeader;
use crate::client::Networks;
use crate::client::Prefix;
use crate::client::TrustedProxies;
use crate::config::raw::Document;
use crate::config::raw::Field;
use crate::config::raw::Spanned;
use crate::config::raw::Text;
use crate::config::raw::forms::OneOrList;

impl Compiler {
    /// The trusted proxies. Also sets the address prefix of one client.
    pub(super) fn clients(&mut self, document: &Document) -> TrustedProxies {
        let Some(client) = document.client_ip.get() else {
            return TrustedProxies::new(Vec::new(), ForwardingHeader::XForwardedFor);
        };
        self.prefix = self.prefix(&client.ipv4_prefix, &client.ipv6_prefix);
        let header = client.header.get().and_then(|name| self.forwarding_header(name));
        let mut networks = Vec::new();
        if let Some(proxies) = client.trusted_proxies.get() {
            self.refuse_everyone(proxies, "trusts everyone: any client could write any address into the header");
            networks.extend(proxies.items.iter().map(|network| network.value));
            if proxies.items.is_empty() && !client.header.is_absent() {
                self.unused_header(client.header.key());
            }
        } else if client.trusted_proxies.is_absent() {
            self.unused_header(client.header.key());
        }
        TrustedProxies::new(networks, header.unwrap_or(ForwardingHeader::XForwardedFor))
    }

    /// A prefix for each address family. The default is that of the `client_ip` section.
    pub(super) fn prefix(&mut self, v4: &Field<Spanned<u64>>, v6: &Field<Spanned<u64>>) -> Prefix {
        Prefix { v4: self.bits(v4, 32, self.prefix.v4), v6: self.bits(v6, 128, self.prefix.v6) }
    }

    fn bits(&mut self, field: &Field<Spanned<u64>>, most: u8, default: u8) -> u8 {
        let Some(Spanned { value, at }) = field.get() else { return default };
        match u8::try_from(*value) {
            Ok(bits) if (1..=most).contains(&bits) => bits,
            _ => {
                let message = format!("`{value}` is not a prefix length, expected 1 to {most}");
                let help = if *value == 0 {
                    format!(
                        "write one such as `{most}`, a whole address; all requests together are counted with `key: []`"
                    )
                } else {
                    format!("write at most `{most}`, a whole address")
                };
                self.mistakes.report(*at, message, help);
                default
            }
        }
    }

    fn forwarding_header(&mut self, name: &Text) -> Option<ForwardingHeader> {
        match name.value.to_ascii_lowercase().as_str() {
            "x-forwarded-for" => Some(ForwardingHeader::XForwardedFor),
            "forwarded" => Some(ForwardingHeader::Forwarded),
            _ if self.refuse_glob(name, "the name of a header", "name one, such as `cf-connecting-ip`") => None,
            single => {
                let Ok(header) = single.parse() else {
                    let message = format!("`{}` is not a header name", name.value);
                    let help =
                        "write `x-forwarded-for`, `forwarded`, or a header of one address such as `cf-connecting-ip`";
                    self.mistakes.report(name.at, message, help);
                    return None;
                };
                Some(ForwardingHeader::Single(header))
            }
        }
    }

    /// Refuses networks of proxies that hold everyone, one alone or all together: such clients choose their address.
    /// `harm` says what that does.
    pub(super) fn refuse_everyone(&mut self, networks: &OneOrList<Spanned<IpNet>>, harm: &str) {
        let help = "name only the networks of your proxies, such as `10.1.2.0/24`";
        let alone: Vec<_> = networks.items.iter().filter(|network| network.value.prefix_len() == 0).collect();
        for network in &alone {
            self.mistakes.report(network.at, format!("`{}` {harm}", network.value), help);
        }
        let together = Networks::new(networks.items.iter().map(|network| network.value)).whole_family();
        if let (true, Some(family)) = (alone.is_empty(), together) {
            self.mistakes.report(networks.at, format!("these networks together are `{family}`, which {harm}"), help);
        }
    }

    fn unused_header(&mut self, key: Option<crate::config::source::SourceRange>) {
        if let Some(at) = key {
            self.mistakes.report(
                at,
                "`header` is never read, because no proxy is trusted",
                "add `trusted_proxies:` with the networks of your proxies, or remove `header`",
            );
        }
    }
}
