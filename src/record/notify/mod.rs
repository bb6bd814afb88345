//! Webhooks that are notified when a limit is reached.
//!
//! Each channel has a queue and a task of its own, so that a slow webhook delays no other webhook and no request.

mod notification;
mod post;
mod settings;
mod suppression;
mod webhook;
mod webhook_channel;
mod webhook_channels;

pub use self::settings::ChannelSettings;
pub use self::settings::NotifySettings;
pub use self::webhook::InvalidWebhook;
pub use self::webhook::Webhook;
pub use self::webhook_channel::WebhookChannel;
pub use self::webhook_channels::WebhookChannels;
