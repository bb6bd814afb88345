//! The macro that defines a section of the configuration.

/// Defines a section: a struct whose fields are all [`Field`](crate::config::raw::field::Field)s, how it is read, and its schema.
///
/// `required` keys are reported when they are missing. Keys after `later` are reported as not implemented, each with its
/// help.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $( $(#[doc = $doc:literal])+ $key:ident: $kind:ty, )+
        }
        $( required { $( $required:ident => $example:literal, )+ } )?
        $( later { $( $late:literal => $help:literal, )+ } )?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub struct $name {
            pub at: $crate::config::source::SourceRange,
            $( $(#[doc = $doc])+ pub $key: $crate::config::raw::field::Field<$kind>, )+
        }

        impl $name {
            const KEYS: $crate::config::raw::field::Keys = $crate::config::raw::field::Keys {
                known: &[ $( $crate::config::raw::field::key_name(stringify!($key)), )+ ],
                required: &[ $( $( ($crate::config::raw::field::key_name(stringify!($required)), $example), )+ )? ],
                later: &[ $( $( ($late, $help), )+ )? ],
            };
        }

        impl $crate::config::raw::value::RawValue for $name {
            fn read(
                node: &$crate::config::yaml::Node,
                mistakes: &mut $crate::config::mistakes::Mistakes,
            ) -> Option<Self> {
                let entries = $crate::config::raw::field::entries(node, &Self::KEYS, mistakes)?;
                Some(Self {
                    at: node.at,
                    $( $key: $crate::config::raw::field::Field::read(
                        &entries, $crate::config::raw::field::key_name(stringify!($key)), mistakes,
                    ), )+
                })
            }

            fn schema(
                definitions: &mut std::collections::BTreeMap<&'static str, serde_json::Value>,
            ) -> serde_json::Value {
                $crate::config::raw::field::define(
                    stringify!($name),
                    concat!($($about, "\n"),+),
                    &Self::KEYS,
                    definitions,
                    |definitions| vec![ $( (
                        $crate::config::raw::field::key_name(stringify!($key)),
                        concat!($($doc, "\n"),+),
                        <$kind as $crate::config::raw::value::RawValue>::schema(definitions),
                    ), )+ ],
                )
            }
        }
    };
}

pub(super) use section;
