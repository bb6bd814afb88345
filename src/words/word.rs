//! Words that people write and read, in the configuration, in the API and in what commands print, and the help for those who
//! wrote something else.
//!
//! The macro [`words!`] makes everything that knows the words of an enum from one table.

/// The error of a text that someone wrote. Its message says what is wrong.
pub trait Help: std::fmt::Display {
    /// What to write instead.
    fn help(&self) -> String;

    /// The message and the help, where one line has to say both.
    fn sentence(&self) -> String {
        format!("{self}, {}", self.help())
    }
}

/// An enum of words.
pub trait Word: Copy + 'static {
    /// In the order of the variants.
    const WORDS: &'static [&'static str];

    /// The variant that is written so.
    fn of_word(word: &str) -> Option<Self>;
}

/// Defines an enum of words: with its table, its reader, `as_str`, `Display`, serde, and the schema in the API. The schema has no
/// description of its own: the field that has the word describes it.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $( $(#[$of_variant:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, serde::Deserialize, serde::Serialize)]
        pub enum $name { $( $(#[$of_variant])* #[serde(rename = $word)] $variant, )+ }

        impl $name {
            pub const ALL: [Self; [$( $word ),+].len()] = [ $( Self::$variant ),+ ];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        impl $crate::words::word::Word for $name {
            const WORDS: &'static [&'static str] = &[ $( $word ),+ ];

            fn of_word(word: &str) -> Option<Self> {
                match word {
                    $( $word => Some(Self::$variant), )+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some([ $( $word ),+ ]))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro defines what is public")]
mod tests {
    use super::*;

    words! {
        /// Two of them.
        #[derive(Default)]
        pub enum Color {
            #[default]
            Red = "red",
            DarkBlue = "dark-blue",
        }
    }

    #[test]
    fn a_word_is_the_same_wherever_it_is_written() {
        assert_eq!(Color::WORDS, Color::ALL.map(Color::as_str));
        for color in Color::ALL {
            assert_eq!(Color::of_word(color.as_str()), Some(color));
            assert_eq!(color.to_string(), color.as_str());
            let json = serde_json::to_value(color).unwrap();
            assert_eq!(json, color.as_str());
            assert_eq!(serde_json::from_value::<Color>(json).unwrap(), color);
        }
        let schema = serde_json::to_value(<Color as utoipa::PartialSchema>::schema()).unwrap();
        assert_eq!(schema, serde_json::json!({"type": "string", "enum": ["red", "dark-blue"]}));
        assert_eq!((Color::of_word("Red"), Color::default()), (None, Color::Red));
    }
}
