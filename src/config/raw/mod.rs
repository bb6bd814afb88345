//! What was written: the document with the place of every part, read so that every mistake is found at once.
//!
//! One definition per section (the [`section!`] macro) makes the struct, its reader and its JSON Schema, so that the three
//! cannot disagree.

pub mod client;
pub mod document;
pub mod field;
pub mod forms;
pub mod leaf;
pub mod limit;
pub mod list;
pub mod outcome;
pub mod record;
pub mod route;
pub mod server;
pub mod store;
pub mod then;
pub mod upstream;

use std::collections::BTreeMap;

use serde_json::Value;

use super::diagnostic::Mistakes;
use super::source::Place;
use super::yaml::Node;

pub use self::document::Document;
pub use self::field::Field;

/// Something that can stand in the configuration.
pub trait Raw: Sized {
    /// Reads it; `None` when it is not what was expected, which is then reported.
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self>;

    /// Its JSON Schema. Sections go into `definitions` under their names.
    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value;
}

/// A value and where it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spanned<T> {
    pub value: T,
    pub at: Place,
}

/// A text whose meaning is not known yet.
pub type Text = Spanned<String>;

/// Defines a section: a struct whose fields are all [`Field`]s, how it is read, and its schema.
///
/// `required` keys are reported when they are missing. Keys after `later` are known but not built; each has the help that
/// is given with the refusal.
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
            pub at: $crate::config::source::Place,
            $( $(#[doc = $doc])+ pub $key: $crate::config::raw::Field<$kind>, )+
        }

        impl $name {
            const KEYS: $crate::config::raw::field::Keys = $crate::config::raw::field::Keys {
                known: &[ $( $crate::config::raw::field::written(stringify!($key)), )+ ],
                required: &[ $( $( ($crate::config::raw::field::written(stringify!($required)), $example), )+ )? ],
                later: &[ $( $( ($late, $help), )+ )? ],
            };
        }

        impl $crate::config::raw::Raw for $name {
            fn read(
                node: &$crate::config::yaml::Node,
                mistakes: &mut $crate::config::diagnostic::Mistakes,
            ) -> Option<Self> {
                let entries = $crate::config::raw::field::entries(node, &Self::KEYS, mistakes)?;
                Some(Self {
                    at: node.at,
                    $( $key: $crate::config::raw::Field::read(
                        &entries, $crate::config::raw::field::written(stringify!($key)), mistakes,
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
                        $crate::config::raw::field::written(stringify!($key)),
                        concat!($($doc, "\n"),+),
                        <$kind as $crate::config::raw::Raw>::schema(definitions),
                    ), )+ ],
                )
            }
        }
    };
}

use section;
